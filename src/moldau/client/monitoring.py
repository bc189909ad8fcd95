"""Monitoring events: what a producer reports of the records that brokers have acknowledged (docs/audit.md).

An event covers the records of one topic and one window of event time since the producer's previous event. Events of one
instance of a producer are numbered from 0, so a reader counts an event once and notices a missing one. The last event
has no topic and says that the producer was closed.
"""

import json
from dataclasses import dataclass
from typing import Any

from moldau.errors import MoldauError
from moldau.records.columns import DELAY_BUCKETS, delay_bucket
from moldau.records.digests import LONGEST_IN, MASK, Delays, Digest, added

FORMAT = 2
POWERS_OF_TWO = 1
"""The format of earlier producers, whose delays are counted in powers of two, and whose start is not said."""
POWERS_MAX = 42


class InvalidEvent(MoldauError):
    """A record of the audit topic is not a monitoring event."""


@dataclass(frozen=True)
class MonitoringEvent:
    """One report. Times are in ms since 1970; `instance` is new whenever a producer starts, at `started_ms` if it is
    known."""

    instance: str
    sequence: int
    server: str
    producer: str
    topic: str
    window_start_ms: int
    window_ms: int
    digest: Digest
    sent_ms: int
    closed: bool = False
    started_ms: int | None = None


def to_json(event: MonitoringEvent) -> bytes:
    digest = event.digest
    tree = {
        "format": FORMAT,
        "instance": event.instance,
        "sequence": event.sequence,
        "server": event.server,
        "producer": event.producer,
        "topic": event.topic,
        "window_start_ms": event.window_start_ms,
        "window_ms": event.window_ms,
        "count": digest.records,
        "hash_sum": f"{digest.hash_sum:016x}",
        "late": digest.late,
        "delay_ms_max": digest.delay_ms_max,
        "delays": digest.delays,
        "started_ms": event.started_ms,
        "sent_ms": event.sent_ms,
        "closed": event.closed,
    }
    return json.dumps(tree).encode()


def from_json(data: bytes) -> MonitoringEvent:
    """Parse an event. Raises `InvalidEvent`, a sentence, for anything else."""
    try:
        tree: Any = json.loads(data)
        if tree["format"] not in (FORMAT, POWERS_OF_TWO):
            raise InvalidEvent(f"it has format {tree['format']!r}; this version reads formats 1 and {FORMAT}")
        delays = (_delays if tree["format"] == FORMAT else _powers_of_two)(tree["delays"])
        hash_sum = int(tree["hash_sum"], 16)
        if not 0 <= hash_sum <= MASK:
            raise ValueError
        digest = Digest(_number(tree["count"]), hash_sum, _number(tree["late"]), _number(tree["delay_ms_max"]), delays)
        names = [tree[name] for name in ("instance", "server", "producer", "topic")]
        if not all(isinstance(name, str) for name in names) or _number(tree["window_ms"]) < 1:
            raise ValueError
        return MonitoringEvent(
            instance=names[0],
            sequence=_number(tree["sequence"]),
            server=names[1],
            producer=names[2],
            topic=names[3],
            window_start_ms=_time(tree["window_start_ms"]),
            window_ms=tree["window_ms"],
            digest=digest,
            sent_ms=_time(tree["sent_ms"]),
            closed=tree["closed"] is True,
            started_ms=_time(tree["started_ms"]) if tree["format"] == FORMAT else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise InvalidEvent("it is not a monitoring event") from None


def _delays(pairs: list[Any]) -> Delays:
    """Pairs of a delay in ms and a count, each delay as the longest one of its bucket. Raises `ValueError`."""
    if len(pairs) > DELAY_BUCKETS:
        raise ValueError
    return added([tuple((LONGEST_IN[delay_bucket(_number(ms))], _number(count)) for ms, count in pairs)])


def _powers_of_two(counts: list[Any]) -> Delays:
    """Count n is of delays below 2^n ms and not below 2^(n-1). Raises `ValueError`."""
    if len(counts) > POWERS_MAX:
        raise ValueError
    return tuple(((1 << n) - 1, _number(count)) for n, count in enumerate(counts) if _number(count))


def _number(value: object) -> int:
    """A whole number that is not negative. Raises `ValueError`."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value


def _time(value: object) -> int:
    """A time in ms since 1970, or before. Raises `ValueError`."""
    if type(value) is not int or not -(1 << 62) < value < 1 << 62:
        raise ValueError
    return value
