# ruff: noqa: N802 (Spark names the methods)
"""Topics as a stream.

The offset of a stream is `{topic: {partition: next offset}}`, kept by Spark in its checkpoint. Partitions that appear
later are read from their first record. With `Trigger.AvailableNow` the ends are fixed when the query starts. The
source commits nothing to Kafka.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from moldau.names import TopicPartition
from moldau.pipeline.options import LATEST, Edge, Options
from moldau.pipeline.positions import (
    DataLost,
    Offsets,
    at_edge,
    earliest,
    latest,
    subscribed,
    waits_for_transaction,
    within_log,
)
from moldau.pipeline.ranges import between, ration
from moldau.pipeline.source.reading import read_range, task_partitions

if TYPE_CHECKING:
    import pyarrow

LOSS_HINT = "set failOnDataLoss to false to continue with the remaining records"


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: Spark requests the next end, then the ranges up to it. Spark keeps the positions; this object has no
    state."""

    def __init__(self, options: Options):
        self._options = options
        self._fixed_end: Offsets | None = None

    def initialOffset(self) -> dict[str, Any]:
        options = self._options
        partitions = subscribed(options.bootstrap_servers, options.subscription)
        return to_tree(at_edge(options, options.starting or Edge(LATEST), partitions, "starting"))

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.offsets_per_trigger_max
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._fixed_end = self._log_ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = from_tree(start)
        end = self._log_ends() if self._fixed_end is None else dict(self._fixed_end)
        new = [tp for tp in sorted(end) if tp not in begin]
        begin.update(earliest(self._options.bootstrap_servers, new) if new else {})
        for tp, offset in begin.items():
            self._check_still_there(tp, offset, end)
        if isinstance(limit, ReadMaxRows):
            end = ration(begin, end, limit.max_rows)
        return to_tree({**begin, **end})

    def reportLatestOffset(self) -> dict[str, Any]:
        return to_tree(self._log_ends())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        options, begin, until = self._options, from_tree(start), from_tree(end)
        there = set(subscribed(options.bootstrap_servers, options.subscription))
        gone = [tp for tp in sorted(until) if tp not in there]
        for tp in gone:
            if until.pop(tp) > begin.get(tp, 0) and options.fail_on_data_loss:
                raise DataLost(f"Partition {tp.partition} of topic {tp.topic} is gone; {LOSS_HINT}.")
        first = earliest(options.bootstrap_servers, sorted(until))
        begin = {tp: begin.get(tp, first[tp]) for tp in until}
        return task_partitions(
            between(within_log(begin, first, options.fail_on_data_loss), until), options.partitions_min
        )

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_range(self._options, partition)

    def _log_ends(self) -> Offsets:
        partitions = subscribed(self._options.bootstrap_servers, self._options.subscription)
        return latest(self._options.bootstrap_servers, partitions, self._options.isolation_level)

    def _check_still_there(self, tp: TopicPartition, offset: int, end: Offsets) -> None:
        """Raise `DataLost` if the partition is gone or ends before `offset`; without failOnDataLoss do nothing."""
        if tp in end and end[tp] >= offset:
            return
        if tp in end and waits_for_transaction(self._options.bootstrap_servers, tp, offset):
            end[tp] = offset
            return
        if self._options.fail_on_data_loss:
            what = f"ends at offset {end[tp]}, before {offset} which was already read" if tp in end else "is gone"
            raise DataLost(f"Partition {tp.partition} of topic {tp.topic} {what}; {LOSS_HINT}.")
        end[tp] = offset


def to_tree(offsets: Offsets) -> dict[str, Any]:
    """Offsets as JSON: readable in the checkpoint, and valid as startingOffsets."""
    tree: dict[str, Any] = {}
    for tp in sorted(offsets):
        tree.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return tree


def from_tree(tree: dict[str, Any]) -> Offsets:
    return {TopicPartition(topic, int(p)): int(tree[topic][p]) for topic in tree for p in tree[topic]}
