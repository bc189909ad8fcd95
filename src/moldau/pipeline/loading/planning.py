"""What a load is going to read: from the tables' offsets to the ends of the logs, or to a time."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.client.fetching import list_offsets
from moldau.names import TopicPartition
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.positions import DataLost, Offsets, earliest, latest, waits_for_transaction
from moldau.pipeline.ranges import OffsetRange, between, ration


class Plan(NamedTuple):
    """The ranges of a load, and whether records are left for another commit. Each of the `notes` is a sentence about
    removed rows that the user has accepted."""

    ranges: tuple[OffsetRange, ...]
    more: bool = False
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """The number of offsets; some may have no record."""
        return sum(part.size for part in self.ranges)

    @property
    def topics(self) -> list[str]:
        return sorted({part.topic for part in self.ranges})


def plan(
    bootstrap: str, partitions: Sequence[TopicPartition], loaded: Mapping[TopicPartition, int], settings: Settings
) -> Plan:
    """What to load of these partitions. Raises `DataLost` if a log no longer fits the tables' offsets."""
    first, end = earliest(bootstrap, partitions), latest(bootstrap, partitions, settings.isolation_level)
    begin = first if settings.since_ms is None else _at(bootstrap, settings.since_ms, end)
    start: Offsets = {}
    for tp in partitions:
        at = loaded.get(tp, max(begin[tp], first[tp]))
        if at > end[tp] and not waits_for_transaction(bootstrap, tp, at):
            raise DataLost(
                f"The warehouse has {tp.topic} partition {tp.partition} up to offset {at}, but its log ends at "
                f"{end[tp]}: the topic was deleted and created again, so load it into another warehouse."
            )
        if at < first[tp] and settings.fail_on_data_loss:
            raise DataLost(
                f"Offsets {at} to {first[tp] - 1} of {tp.topic} partition {tp.partition} are gone from the log and "
                "were never loaded; use --allow-data-loss to continue without them."
            )
        start[tp] = max(at, first[tp])
    if settings.until_ms is not None:
        end = _at(bootstrap, settings.until_ms, end)
    limited = end if settings.records_max is None else ration(start, end, settings.records_max)
    return Plan(tuple(between(start, limited)), limited != end)


def _at(bootstrap: str, time_ms: int, end: Offsets) -> Offsets:
    """The offset of the first record of a time or later, or the end."""
    firsts = list_offsets(bootstrap, dict.fromkeys(end, time_ms)) if end else {}
    return {tp: min(firsts[tp], end[tp]) if firsts[tp] >= 0 else end[tp] for tp in end}
