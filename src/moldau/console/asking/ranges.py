"""The ranges of offsets that a search has to look through."""

from collections.abc import Iterable
from typing import NamedTuple

from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.search.rounds import Ranges
from moldau.console.search.wanted import OFFSET, TIME, SearchWanted
from moldau.errors import ConfigError
from moldau.names import TopicPartition

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


class SearchRanges(NamedTuple):
    """`of`: partition -> first offset and end, as of now; `unled`: the partitions without a leader that answers."""

    of: dict[int, tuple[int, int]]
    unled: list[int]

    @property
    def left_out(self) -> list[str]:
        """A sentence for each partition that cannot be read."""
        return [f"partition {number} cannot be read: no leader of it answers" for number in self.unled]


async def ranges_of(admin: ClusterAdmin, topic: str, wanted: SearchWanted) -> SearchRanges:
    """The offsets of the partitions that are wanted. Raises `ConfigError` for a partition that does not exist, and
    `KafkaError`."""
    views = await admin.describe_topics([topic])
    numbers = chosen(topic, views[topic].partitions, wanted)
    places = [TopicPartition(topic, number) for number in numbers]
    starts = await admin.starts(places)
    level = COMMITTED if wanted.committed else UNCOMMITTED
    listed = await admin.list_offsets(dict.fromkeys(places, "latest"), isolation_level=level, known_only=True)
    ends = {tp: one.offset for tp, one in listed.items() if one is not None}
    if wanted.start == OFFSET:
        starts = {tp: max(start, wanted.at) for tp, start in starts.items()}
    elif wanted.start == TIME:
        at = await admin.offsets(dict.fromkeys(places, wanted.at), known_only=True)
        starts = {tp: ends.get(tp, 0) if offset < 0 else offset for tp, offset in at.items()}
    known = {tp.partition: (starts[tp], ends[tp]) for tp in places if tp in starts and tp in ends}
    return SearchRanges(known, [number for number in numbers if number not in known])


def chosen(topic: str, partitions: Iterable[int], wanted: SearchWanted) -> list[int]:
    """The partitions to look at. Raises `ConfigError`."""
    there = sorted(partitions)
    if wanted.partitions is None:
        return there
    missing = sorted(wanted.partitions.difference(there))
    if missing:
        raise ConfigError(f"topic {topic} has no partition {missing[0]}")
    return sorted(wanted.partitions)


def one_record(partition: int, offset: int) -> Ranges:
    return {partition: (offset, offset + 1)}
