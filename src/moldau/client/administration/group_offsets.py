"""Where the offsets of a group are moved: parses targets (durations, times, offsets, partitions), finds the new
positions, and limits them to the log. Pure.

As in Kafka's tool, an offset outside the log becomes the nearer end of the log, and a time after the last record means
the end.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from moldau.client.given_positions import EPOCH_MAX
from moldau.errors import ConfigError
from moldau.names import OffsetAndMetadata, TopicPartition

_DURATION: Final = re.compile(
    r"(?P<sign>-?)P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,3})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS_MS: Final = {"weeks": 604_800_000, "days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


WAYS: Final = ("earliest", "latest", "time", "offset", "shift", "current", "file")
"""The ways that `moved` knows."""


def duration_ms(text: str) -> int:
    """An ISO 8601 duration such as PT1H30M or P7D, in ms. Raises `ConfigError`."""
    match = _DURATION.fullmatch(text)
    parts = {unit: match[unit] for unit in _UNITS_MS if match[unit]} if match else {}
    if not match or not parts or match["sign"] or text[-1] in "Tt":
        raise ConfigError(f"{text!r} is not an ISO 8601 duration such as PT30M, PT12H or P7D")
    try:
        return int(sum(float(number) * _UNITS_MS[unit] for unit, number in parts.items()))
    except OverflowError:
        raise ConfigError(f"{text[:40]!r} is longer than any log") from None


def time_ms(text: str) -> int:
    """An ISO 8601 time such as 2026-11-21T08:00:00 in ms since 1970; UTC if it has no zone. Raises `ConfigError`."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not an ISO 8601 time such as 2026-11-21T08:00:00") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_offsets(lines: Iterable[str], name: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets from lines of TOPIC,PARTITION,OFFSET, the format of Kafka's tool, or TOPIC,PARTITION,OFFSET,EPOCH with
    the leader epoch of the record before the offset. `name` names the source in errors. Raises `ConfigError`."""
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row:
            continue
        numbers = [cell.strip() for cell in row[1:]]
        if len(row) not in (3, 4) or not all(re.fullmatch(r"\d{1,18}", cell, re.ASCII) for cell in numbers):
            raise ConfigError(f"line {number} of {name} is not TOPIC,PARTITION,OFFSET or TOPIC,PARTITION,OFFSET,EPOCH")
        partition, offset, *epoch = map(int, numbers)
        if epoch and epoch[0] > EPOCH_MAX:
            raise ConfigError(
                f"line {number} of {name}: {epoch[0]} is not a leader epoch, which is at most {EPOCH_MAX}"
            )
        at = OffsetAndMetadata(offset, leader_epoch=epoch[0] if epoch else None)
        offsets[TopicPartition(row[0].strip(), partition)] = at
    return offsets


def parse_partitions(text: str) -> tuple[str, list[int] | None]:
    """A topic and its partitions from TOPIC (all of them: None) or TOPIC:0,2. Raises `ConfigError`."""
    topic, colon, numbers = text.partition(":")
    if not colon:
        return topic, None
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", numbers, re.ASCII):
        raise ConfigError(f"{text!r} is neither TOPIC nor TOPIC:PARTITION,PARTITION")
    return topic, [int(number) for number in numbers.split(",")]


def within(
    wanted: Mapping[TopicPartition, OffsetAndMetadata],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Each position, or the nearer end of its partition's log if it is outside."""
    limited = {tp: min(max(at.offset, starts[tp]), ends[tp]) for tp, at in wanted.items()}
    return {tp: at if limited[tp] == at.offset else OffsetAndMetadata(limited[tp]) for tp, at in wanted.items()}


class LogEnds(NamedTuple):
    """The first offset and the end of each partition; `at_times` has the first offset at or after the time that is
    wanted, -1 if no record is."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    at_times: Mapping[TopicPartition, int] = {}


def moved(
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    way: str,
    number: int,
    log: LogEnds,
    listed: Mapping[TopicPartition, OffsetAndMetadata] = {},
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The new position of each partition, between the ends of its log. `way` is one of `WAYS`; `number` is that of
    `offset` and `shift`. Only committed positions can be shifted or kept. Positions that stay, or are `listed`, keep
    their leader epochs: consumers compare them with the log. Raises `ConfigError`."""
    chosen = [*partitions]
    if way == "earliest":
        return _positions({tp: log.starts[tp] for tp in chosen})
    if way == "latest":
        return _positions({tp: log.ends[tp] for tp in chosen})
    if way == "time":
        return _positions({tp: log.ends[tp] if log.at_times[tp] < 0 else log.at_times[tp] for tp in chosen})
    if way == "offset":
        return within(dict.fromkeys(chosen, OffsetAndMetadata(number)), log.starts, log.ends)
    if way == "file":
        return within({tp: listed[tp] for tp in chosen if tp in listed}, log.starts, log.ends)
    missing = [tp for tp in chosen if tp not in committed]
    if missing:
        raise ConfigError(f"the group has no committed offset for {missing[0]} to start from")
    if way == "shift" and number:
        return within({tp: OffsetAndMetadata(committed[tp].offset + number) for tp in chosen}, log.starts, log.ends)
    return within({tp: committed[tp] for tp in chosen}, log.starts, log.ends)


def _positions(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
