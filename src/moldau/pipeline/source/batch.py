"""A batch read of topics: the ranges between the start and end offsets, planned on the driver."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from moldau.pipeline.options import Edge, OptionError, Options
from moldau.pipeline.positions import (
    Offsets,
    at_edge,
    earliest,
    latest,
    subscribed,
    waits_for_transaction,
    within_log,
)
from moldau.pipeline.ranges import between
from moldau.pipeline.source.reading import read_range, task_partitions

if TYPE_CHECKING:
    import pyarrow


class BatchReader(DataSourceReader):
    """A batch read: plans on the driver between the start and end offsets, reads in the tasks."""

    def __init__(self, options: Options, starting: Edge, ending: Edge):
        self._options = options
        self._starting = starting
        self._ending = ending

    def partitions(self) -> list[InputPartition]:
        options = self._options
        partitions = subscribed(options.bootstrap_servers, options.subscription)
        first = earliest(options.bootstrap_servers, partitions)
        start = within_log(at_edge(options, self._starting, partitions, "starting"), first, options.fail_on_data_loss)
        end = _not_beyond_log(
            at_edge(options, self._ending, partitions, "ending"),
            latest(options.bootstrap_servers, partitions, options.isolation_level), options,
        )  # fmt: skip
        return task_partitions(between(start, end), options.partitions_min)

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_range(self._options, partition)


def _not_beyond_log(wanted: Offsets, ends: Offsets, options: Options) -> Offsets:
    for tp, offset in sorted(wanted.items()):
        if offset > ends[tp] and options.fail_on_data_loss:
            open_there = waits_for_transaction(options.bootstrap_servers, tp, offset)
            what = "a transaction is open from" if open_there else "the log ends at"
            raise OptionError(f"Option endingOffsets names offset {offset} of {tp}, but {what} {ends[tp]}.")
    return {tp: min(offset, ends[tp]) for tp, offset in wanted.items()}
