# ruff: noqa: N802 (Spark names the methods)
"""A batch read of topics: the ranges between the start and end offsets, planned on the driver and narrowed by Spark's
filters."""

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from moldau.names import TopicPartition
from moldau.pipeline.options import EARLIEST, LATEST, Edge, OptionError, Options
from moldau.pipeline.positions import (
    Offsets,
    at_edge,
    first_contact,
    look_up,
    starting_offsets,
    waits_for_transaction,
    within_log,
)
from moldau.pipeline.ranges import between
from moldau.pipeline.sentences import in_a_sentence
from moldau.pipeline.source.filters import Narrowing, narrowing
from moldau.pipeline.source.reading import read_range, task_partitions

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.datasource import Filter

logger = logging.getLogger(__name__)
OF_STREAMS = {
    "maxOffsetsPerTrigger": "offsets_per_trigger_max",
    "minOffsetsPerTrigger": "offsets_per_trigger_min",
}


class BatchReader(DataSourceReader):
    """A batch read: plans on the driver between the start and end offsets, reads in the tasks."""

    def __init__(self, options: Options):
        for name, field in OF_STREAMS.items():
            if getattr(options, field):
                raise OptionError(f"Option {name} is for streams; this is a batch read.")
        starting = options.starting or Edge(EARLIEST)
        if not starting.is_by_time and (starting.default == LATEST or LATEST in dict(starting.offsets).values()):
            raise OptionError("A batch read cannot start at latest: it would read nothing.")
        self._options = options
        self._starting = starting
        self._ending = options.ending or Edge(LATEST)
        self._narrowing = Narrowing()

    def partitions(self) -> list[InputPartition]:
        options, narrowed = self._options, self._narrowing
        with in_a_sentence():
            subscribed = first_contact(options)
            partitions = [tp for tp in subscribed if narrowed.admits(*tp)]
            if not partitions:
                return []
            check_order(self._starting, self._ending, subscribed)
            starts = starting_offsets(options, self._starting, subscribed)
            wanted_ends = at_edge(options, self._ending, subscribed, "ending")
            ends = look_up(options, dict.fromkeys(partitions, LATEST))
            end = _not_beyond_log({tp: wanted_ends[tp] for tp in partitions}, ends, options)
            start, end = self._narrowed({tp: starts[tp] for tp in partitions}, end)
            first = look_up(options, dict.fromkeys(partitions, EARLIEST))
            ranges = between(within_log(start, first, options.fail_on_data_loss), end)
            return task_partitions(ranges, subscribed, options)

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_range(self._options, partition, self._narrowing)

    def _narrow(self, filters: Iterable["Filter"]) -> None:
        self._narrowing = narrowing(filters)

    def _narrowed(self, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """The ranges without the offsets that Spark's filters exclude. The time index finds the first record at or
        after a time; records that are older can follow it, so a latest time excludes no offset."""
        low, high, since_us = self._narrowing.offset_low, self._narrowing.offset_high, self._narrowing.time_low_us
        if low is not None:
            start = {tp: max(offset, low) for tp, offset in start.items()}
        if high is not None:
            end = {tp: min(offset, high + 1) for tp, offset in end.items()}
        if since_us is not None and since_us > 0:
            firsts = look_up(self._options, dict.fromkeys(start, -(-since_us // 1000)))
            start = {tp: max(offset, firsts[tp]) if firsts[tp] >= 0 else end[tp] for tp, offset in start.items()}
        return start, end


def check_order(starting: Edge, ending: Edge, partitions: Iterable[TopicPartition]) -> None:
    """Raise `OptionError` if an offset or a time is given as the start of a partition that is after its given end."""
    for name, unit, starts, ends in (
        ("Offsets", "offset", starting.given_offsets, ending.given_offsets),
        ("Timestamp", "time", starting.times_of(partitions), ending.times_of(partitions)),
    ):
        for tp in sorted(starts.keys() & ends.keys()):
            if starts[tp] > ends[tp] >= 0:
                raise OptionError(
                    f"Option starting{name} starts {tp} at {unit} {starts[tp]}, after its end at {unit} {ends[tp]}."
                )


class FilteringBatchReader(BatchReader):
    """A batch read that is given Spark's filters; Spark applies them all again."""

    def pushFilters(self, filters: list["Filter"]) -> Iterable["Filter"]:
        self._narrow(filters)
        return filters


def _not_beyond_log(wanted: Offsets, ends: Offsets, options: Options) -> Offsets:
    for tp, offset in sorted(wanted.items()):
        if offset > ends[tp]:
            open_there = waits_for_transaction(options.bootstrap_servers, tp, offset)
            what = "a transaction is open from" if open_there else "the log ends at"
            where = f"Option endingOffsets names offset {offset} of {tp}, but {what} {ends[tp]}"
            if options.fail_on_data_loss:
                raise OptionError(f"{where}; set failOnDataLoss to false to read up to there.")
            logger.warning("%s: reading ends there.", where)
    return {tp: min(offset, ends[tp]) for tp, offset in wanted.items()}
