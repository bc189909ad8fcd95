# ruff: noqa: N802 (Spark names the methods)
"""Topics as a stream.

`stream_offset.py` is the position, which Spark keeps in its checkpoint. Partitions that appear later are read from
their first record, and so is a topic that was deleted and created again, if failOnDataLoss is false. If a log was
truncated and written anew since a batch ended there, that is data loss; without failOnDataLoss, reading goes on at the
first record that took the place of another. With `Trigger.AvailableNow` the ends are fixed when the query starts.
`progress.py` publishes what the query has finished; nothing here depends on it.
"""

import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from moldau.client.blocking import Caller
from moldau.client.epoch_look_ups import epochs_before, lost_since
from moldau.names import TopicPartition
from moldau.pipeline.options import EARLIEST, LATEST, Edge, OptionError, Options
from moldau.pipeline.positions import (
    DataLost,
    Offsets,
    Subscribed,
    at_edge,
    first_contact,
    look_up,
    subscribed,
    waits_for_transaction,
    within_log,
)
from moldau.pipeline.ranges import between, ration
from moldau.pipeline.sentences import in_a_sentence
from moldau.pipeline.source.progress import GroupProgress
from moldau.pipeline.source.reading import read_range, task_partitions
from moldau.pipeline.source.stream_offset import StreamOffset, from_tree, ids_of
from moldau.pipeline.spark_versions import (
    HAS_READ_LIMITS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    of_this_spark,
)

if TYPE_CHECKING:
    import pyarrow

LOSS_HINT = "set failOnDataLoss to false to continue with the remaining records"


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: Spark requests the next end, then the ranges up to it. Spark keeps the positions; the state here is the
    fixed end of Trigger.AvailableNow, the time of the latest batch, the latest position with its leader epochs, and
    where the batch that is planned begins."""

    def __init__(self, options: Options):
        self._options = options
        self._fixed_end: StreamOffset | None = None
        self._met = False
        self._batch_at_s = -inf
        self._known = nowhere = StreamOffset({}, {})
        self._placed = nowhere, nowhere
        self._progress = GroupProgress(options)

    def initialOffset(self) -> dict[str, Any]:
        options = self._options
        with in_a_sentence():
            partitions = self._subscribed(starting=True)
            offsets = at_edge(options, options.starting or Edge(LATEST), partitions, "starting")
            return self._with_epochs(StreamOffset(offsets, ids_of(partitions))).to_tree()

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.offsets_per_trigger_max
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        with in_a_sentence():
            self._fixed_end = self._log_ends()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """The end of the next batch. Spark before 4.2 does not say where it starts."""
        with in_a_sentence():
            log_ends = self._fixed_end or self._log_ends()
            if start is None:
                return self._with_epochs(log_ends).to_tree()
            reached = from_tree(start)
            self._progress.publish(reached.positions)
            reached = reached.without(self._created_again(reached, log_ends.topic_ids))
            placed = self._still_in_log(reached, log_ends.offsets)
            self._placed, reached = (reached, placed), placed
            self._known = reached
            begin, end = reached.offsets, dict(log_ends.offsets)
            new = [tp for tp in sorted(end) if tp not in begin]
            begin.update(look_up(self._options, dict.fromkeys(new, EARLIEST)))
            for tp, offset in begin.items():
                self._check_still_there(tp, offset, end)
            if self._too_few(begin, end):
                return start
            self._batch_at_s = time.monotonic()
            if isinstance(limit, ReadMaxRows):
                end = ration(begin, end, limit.max_rows)
            goal = StreamOffset({**begin, **end}, {**reached.topic_ids, **log_ends.topic_ids})
            return self._with_epochs(goal).to_tree()

    def reportLatestOffset(self) -> dict[str, Any]:
        with in_a_sentence():
            return self._log_ends().to_tree()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        options, reached, goal = self._options, from_tree(start), from_tree(end)
        with in_a_sentence():
            there = self._subscribed()
            reached = reached.without(self._created_again(reached, goal.topic_ids))
            made_anew = self._created_again(goal, ids_of(there))
            same = [tp for tp in there if tp.topic not in made_anew]
            asked, placed = self._placed  # a moment ago, if this batch follows at once
            begin = (placed if asked == reached else self._still_in_log(reached, same)).offsets
            until = dict(goal.offsets if goal == self._known else self._still_in_log(goal, same).offsets)
            for tp in sorted({*begin, *until}):
                if tp in until and tp in there and tp.topic not in made_anew:
                    self._check_still_there(tp, begin.get(tp, 0), until)
                    continue
                is_lost = tp not in until or until.pop(tp) > begin.get(tp, 0)
                if is_lost and options.fail_on_data_loss:
                    raise DataLost(f"Partition {tp.partition} of topic {tp.topic} is gone; {LOSS_HINT}.")
            first = look_up(options, dict.fromkeys(sorted(until), EARLIEST))
            begin = {tp: begin.get(tp, first[tp]) for tp in until}
            ranges = between(within_log(begin, first, options.fail_on_data_loss), until)
            return task_partitions(ranges, there, options)

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_range(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._progress.publish(from_tree(end).positions)

    def stop(self) -> None:
        self._progress.close()

    def _too_few(self, begin: Offsets, end: Offsets) -> bool:
        """Whether minOffsetsPerTrigger asks to wait for more; not for longer than maxTriggerDelay."""
        least = self._options.offsets_per_trigger_min
        if not least or self._fixed_end is not None:
            return False
        waiting = sum(max(0, end[tp] - begin.get(tp, end[tp])) for tp in end)
        return waiting < least and time.monotonic() - self._batch_at_s < self._options.trigger_delay_max_s

    def _subscribed(self, *, starting: bool = False) -> Subscribed:
        """The partitions; the first request of this query fails within seconds if no broker answers. A named topic
        may be missing without failOnDataLoss, except when the query starts."""
        options, missing_ok = self._options, not (starting or self._options.fail_on_data_loss)
        if not self._met:
            check_of_stream(options)
            found = first_contact(options, missing_ok=missing_ok)
            self._met = True
            return found
        return subscribed(
            options.bootstrap_servers, options.subscription, missing_ok=missing_ok, timeout_ms=options.timeout_ms,
            client_id=options.client_id,
        )  # fmt: skip

    def _log_ends(self) -> StreamOffset:
        partitions = self._subscribed()
        return StreamOffset(look_up(self._options, dict.fromkeys(partitions, LATEST)), ids_of(partitions))

    def _still_in_log(self, reached: StreamOffset, there: Collection[TopicPartition]) -> StreamOffset:
        """Where to go on: at the first record that was written in place of one that the stream has read. Raises
        `DataLost` with failOnDataLoss."""
        asked = {tp: position for tp, position in reached.comparable.items() if tp in there}
        if not asked:
            return reached
        with self._caller() as caller:
            lost = lost_since(caller, asked)
        for tp, first in sorted(lost.items()):
            if self._options.fail_on_data_loss:
                where = "at an unknown offset" if first is None else f"at offset {first}"
                raise DataLost(
                    f"Partition {tp.partition} of topic {tp.topic} was truncated {where}, before {asked[tp][0]} which "
                    f"was already read, and other records were written since; {LOSS_HINT}."
                )
        unknown = look_up(self._options, {tp: EARLIEST for tp, first in lost.items() if first is None})
        moved = {tp: unknown[tp] if first is None else first for tp, first in lost.items()}
        epochs = {tp: epoch for tp, epoch in reached.epochs.items() if tp not in lost}
        return reached._replace(offsets={**reached.offsets, **moved}, epochs=epochs)

    def _with_epochs(self, goal: StreamOffset) -> StreamOffset:
        """The position with the leader epochs of the records before it. Offsets that have not moved keep what is known
        of them, so that the position stays equal."""
        known, moved = self._known, dict[TopicPartition, int]()
        for tp, offset in goal.offsets.items():
            if known.offsets.get(tp) != offset:
                moved[tp] = offset
        lowest = {tp: epoch for tp, epoch in known.epochs.items() if known.offsets[tp] <= moved.get(tp, -1)}
        found = {tp: epoch for tp, epoch in known.epochs.items() if tp in goal.offsets and tp not in moved}
        if moved:
            with self._caller() as caller:
                found |= epochs_before(caller, moved, lowest)
        self._known = goal._replace(epochs=found)
        return self._known

    def _caller(self) -> Caller:
        options = self._options
        return Caller(options.bootstrap_servers, client_id=options.client_id, timeout_ms=options.timeout_ms)

    def _created_again(self, reached: StreamOffset, topic_ids: Mapping[str, uuid.UUID]) -> set[str]:
        """The topics that were deleted and created again after the stream reached this offset. Raises `DataLost` for
        one with failOnDataLoss."""
        topics = reached.of_other_topics(topic_ids)
        for topic in sorted(topics):
            if self._options.fail_on_data_loss:
                raise DataLost(
                    f"Topic {topic} was deleted and created again since it was read; set failOnDataLoss to false to "
                    "read the new topic from its first record."
                )
        return topics

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


def check_of_stream(options: Options) -> None:
    """Raise `OptionError` for options that a stream cannot have. Not raised where Spark makes the reader: it would
    report a failure of its own instead."""
    if options.ending:
        raise OptionError("Options that begin with ending are for batch reads; a stream has no end.")
    limits = {
        "maxOffsetsPerTrigger": options.offsets_per_trigger_max,
        "minOffsetsPerTrigger": options.offsets_per_trigger_min,
    }
    for name, limit in limits.items():
        if limit and not HAS_READ_LIMITS:
            raise OptionError(f"Option {name} needs Spark 4.2 or newer; {of_this_spark()}.")
