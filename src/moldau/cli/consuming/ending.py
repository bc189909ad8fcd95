"""Where `moldau consume` ends: at the ends that the partitions have when it begins, or before a time."""

from collections.abc import Mapping

from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.names import TopicPartition


class Ending:
    """The offset of each partition at which reading ends. A partition that has reached it is paused."""

    def __init__(self, ends: Mapping[TopicPartition, int]):
        self._ends = dict(ends)
        self._left = set(ends)

    def before(self, records: list[Record]) -> list[Record]:
        """Those of the records that are before the end."""
        return [record for record in records if record.offset < self._ends[record.topic_partition]]

    def is_reached(self, consumer: Consumer) -> bool:
        """Whether all partitions were read to their ends, also if the last offsets hold no record (markers of
        transactions, compacted records)."""
        positions = consumer.positions()
        reached = [tp for tp in self._left if positions[tp].offset >= self._ends[tp]]
        if reached:
            consumer.pause(reached)
            self._left -= {*reached}
        return not self._left


def ending_of(consumer: Consumer, tps: list[TopicPartition], until_ms: int | None) -> Ending:
    """The ends that these partitions have now; with `until_ms` the first record of this time or a later one."""
    ends = consumer.end_offsets(tps)
    if until_ms is not None:
        for tp, found in consumer.offsets_for_times(dict.fromkeys(tps, until_ms)).items():
            if found is not None:
                ends[tp] = min(ends[tp], found.offset)
    return Ending(ends)
