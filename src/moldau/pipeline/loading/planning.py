"""What a load is going to read: from the tables' offsets to the ends of the logs, or to a time.

A log may have been truncated since it was loaded, by an unclean election or by a broker that lost what it had not
flushed, and other records may be at the offsets that were loaded. The leader epoch of the last record that was loaded
tells (KIP-320).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.client.blocking import Caller
from moldau.client.epoch_look_ups import epochs_before, lost_since
from moldau.client.fetching import list_offsets
from moldau.names import TopicPartition
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.positions import DataLost, Offsets, earliest, latest, waits_for_transaction
from moldau.pipeline.ranges import OffsetRange, between, ration


class Plan(NamedTuple):
    """The ranges of a load, and whether records are left for another commit. Each of the `notes` is a sentence about
    lost records or removed rows that the user has accepted. `epochs` are the leader epochs of the records before the
    ends, as far as brokers tell."""

    ranges: tuple[OffsetRange, ...]
    more: bool = False
    notes: tuple[str, ...] = ()
    epochs: Mapping[TopicPartition, int] = {}

    @property
    def records(self) -> int:
        """The number of offsets; some may have no record."""
        return sum(part.size for part in self.ranges)

    @property
    def topics(self) -> list[str]:
        return sorted({part.topic for part in self.ranges})


class Reached(NamedTuple):
    """How far the tables are: the next offset of each partition, and the leader epochs of the records before, as far as
    they are known."""

    offsets: Mapping[TopicPartition, int]
    epochs: Mapping[TopicPartition, int]


def plan(bootstrap: str, partitions: Sequence[TopicPartition], reached: Reached, settings: Settings) -> Plan:
    """What to load of these partitions. Raises `DataLost` if a log no longer fits the tables' offsets."""
    first, end = earliest(bootstrap, partitions), latest(bootstrap, partitions, settings.isolation_level)
    begin = first if settings.since_ms is None else _at(bootstrap, settings.since_ms, end)
    lost = _lost(bootstrap, reached)
    notes: list[str] = []
    start: Offsets = {}
    for tp in partitions:
        at = reached.offsets.get(tp, max(begin[tp], first[tp]))
        if tp in lost:
            if settings.fail_on_data_loss:
                raise DataLost(truncated(tp, at, lost[tp], can_delete=not settings.upsert))
            if at < end[tp]:
                notes.append(gone_on(tp, at, lost[tp]))
        elif at > end[tp] and not waits_for_transaction(bootstrap, tp, at):
            raise DataLost(
                f"The warehouse has {tp.topic} partition {tp.partition} up to offset {at}, but its log ends at "
                f"{end[tp]}: it has lost records, or the topic was deleted and created again, so load it into another "
                "warehouse."
            )
        gone = OffsetRange(*tp, at, first[tp])
        if gone.size > 0 and settings.fail_on_data_loss:
            raise DataLost(f"{_gone(gone)} use --allow-data-loss to continue without them.")
        if gone.size > 0 and first[tp] < end[tp]:
            notes.append(went_on(gone))
        start[tp] = max(at, first[tp])
    if settings.until_ms is not None:
        end = _at(bootstrap, settings.until_ms, end)
    limited = end if settings.records_max is None else ration(start, end, settings.records_max)
    ranges = tuple(between(start, limited))
    at_least = {tp: epoch for tp, epoch in reached.epochs.items() if tp not in lost}
    return Plan(ranges, limited != end, tuple(notes), _epochs(bootstrap, ranges, at_least))


def _lost(bootstrap: str, reached: Reached) -> dict[TopicPartition, int | None]:
    """The partitions whose log no longer has the last record that was loaded: since which offset, if that is known."""
    offsets, epochs = reached
    positions = {tp: (offsets[tp], epoch) for tp, epoch in epochs.items() if offsets.get(tp, 0) > 0}
    if not positions:
        return {}
    with Caller(bootstrap) as caller:
        return lost_since(caller, positions)


def _epochs(
    bootstrap: str, ranges: Sequence[OffsetRange], at_least: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The leader epochs of the records before the ends of these ranges."""
    if not ranges:
        return {}
    with Caller(bootstrap) as caller:
        return epochs_before(caller, {part.topic_partition: part.end for part in ranges}, at_least)


def _gone(part: OffsetRange) -> str:
    offsets = f"Offsets {part.start} to {part.end - 1} of {part.topic} partition {part.partition}"
    return f"{offsets} are gone from the log and were never loaded;"


def went_on(part: OffsetRange) -> str:
    """What a load says about expired records whose loss the user has accepted."""
    return f"{_gone(part)} the load goes on without them."


def truncated(tp: TopicPartition, at: int, first: int | None, *, can_delete: bool) -> str:
    """The log was truncated at `first`, if that is known, after it had been loaded up to `at`."""
    again = "load it into another warehouse"
    if first is not None and can_delete:
        again = f"delete its rows from offset {first} on, also rejected ones, and load anew with --offsets-from-table"
    cut = _cut(first, at)
    return (
        f"The log of {tp.topic} partition {tp.partition} {cut}: {again}, or continue at offset {at} with "
        "--allow-data-loss."
    )


def gone_on(tp: TopicPartition, at: int, first: int | None) -> str:
    """As `truncated`, where the user has accepted it."""
    return (
        f"{tp.topic} partition {tp.partition}: the log {_cut(first, at)}; the rows stay, and what was written in their "
        "place is left out."
    )


def _cut(first: int | None, at: int) -> str:
    where = "an unknown offset" if first is None else f"offset {first}"
    return f"was truncated at {where} after it had been loaded up to offset {at}"


def _at(bootstrap: str, time_ms: int, end: Offsets) -> Offsets:
    """The offset of the first record of a time or later, or the end."""
    firsts = list_offsets(bootstrap, dict.fromkeys(end, time_ms)) if end else {}
    return {tp: min(firsts[tp], end[tp]) if firsts[tp] >= 0 else end[tp] for tp in end}
