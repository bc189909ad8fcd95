"""Where a read starts or ends: parses startingOffsets, startingTimestamp, startingOffsetsByTimestamp and the same for
the end, with the meaning of Spark's Kafka connector. Pure.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from moldau.errors import MoldauError
from moldau.names import TopicPartition

EARLIEST = -2
LATEST = -1
TOPIC_IDS, LEADER_EPOCHS, STARTING_OFFSETS = "topic ids", "leader epochs", "starting offsets"
BESIDE_TOPICS = (TOPIC_IDS, LEADER_EPOCHS, STARTING_OFFSETS)
"""In the offset of a stream, beside its topics: no topic can have these names. `stream_offset.py` has the format."""
OFFSETS_EXAMPLE = 'earliest, latest or JSON like {"topic":{"0":23,"1":-2}}'
TIMES_EXAMPLE = 'JSON like {"topic":{"0":1700000000000}}, in milliseconds since 1970'

Numbers = tuple[tuple[TopicPartition, int], ...]


class OptionError(MoldauError):
    """An invalid option; its text is one sentence for the user."""


class Edge(NamedTuple):
    """Where reading starts or ends: at `default` (EARLIEST or LATEST), at offsets by partition, at one time, or at
    times by partition."""

    default: int = EARLIEST
    offsets: Numbers = ()
    timestamp_ms: int | None = None
    timestamps_ms: Numbers = ()

    @property
    def is_by_time(self) -> bool:
        return self.timestamp_ms is not None or bool(self.timestamps_ms)

    @property
    def given_offsets(self) -> dict[TopicPartition, int]:
        """The offsets by partition, EARLIEST and LATEST among them, if they count."""
        return {} if self.is_by_time else dict(self.offsets)

    def times_of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The times of these partitions in ms, if the edge is given as times."""
        return dict(self.timestamps_ms) if self.timestamp_ms is None else dict.fromkeys(partitions, self.timestamp_ms)


def read_edge(values: Mapping[str, str], side: str) -> Edge | None:
    """The starting or ending edge in options with lower-case names. One timestamp wins over timestamps by partition,
    and these over offsets, as in the Kafka connector."""
    default = LATEST if side == "ending" else EARLIEST
    if f"{side}timestamp" in values:
        timestamp = values[f"{side}timestamp"]
        if not timestamp.isdecimal():
            raise OptionError(f"Option {side}Timestamp is milliseconds since 1970, not {timestamp!r}.")
        return Edge(default, timestamp_ms=int(timestamp))
    if f"{side}offsetsbytimestamp" in values:
        name = f"{side}OffsetsByTimestamp"
        times = _by_partition(values[name.lower()], name, TIMES_EXAMPLE, lowest=0)
        if not times:
            raise OptionError(f"Option {name} names no partition.")
        return Edge(default, timestamps_ms=times)
    text = values.get(f"{side}offsets")
    if text is None:
        return None
    name = f"{side}Offsets"
    if text.lower() in ("earliest", "latest"):
        named = EARLIEST if text.lower() == "earliest" else LATEST
        if side == "ending" and named == EARLIEST:
            raise OptionError("Option endingOffsets cannot be earliest: no record is before that.")
        return Edge(named)
    offsets = _by_partition(text, name, OFFSETS_EXAMPLE, lowest=EARLIEST)
    for tp, offset in offsets:
        if side == "ending" and offset == EARLIEST:
            raise OptionError(f"Option {name} cannot be {offset} for {tp.topic} partition {tp.partition}.")
    return Edge(default, offsets=offsets)


def _by_partition(text: str, name: str, example: str, lowest: int) -> Numbers:
    """A number for each partition, sorted."""
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in json_object(text, name, example).items():
        if topic in BESIDE_TOPICS:
            continue  # copied from a checkpoint
        if not isinstance(partitions, dict):
            raise OptionError(f"Option {name} must be {example}; topic {topic} has no object of partitions.")
        for partition, number in partitions.items():
            if not partition.isdecimal() or type(number) is not int or number < lowest:
                raise OptionError(f"Option {name} must be {example}, not {topic} partition {partition} at {number!r}.")
            numbers[TopicPartition(topic, int(partition))] = number
    return tuple(sorted(numbers.items()))


def json_object(text: str, name: str, example: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise OptionError(f"Option {name} must be {example}, not {text[:80]!r}.") from None
    if not isinstance(tree, dict):
        raise OptionError(f"Option {name} must be {example}, not {text[:80]!r}.")
    return tree
