# ruff: noqa: N802 (Spark names the methods)
"""Topics as a stream.

`stream_offset.py` is the position, which Spark keeps in its checkpoint. Partitions that appear later are read from
their first record, and so is a topic that was deleted and created again, if failOnDataLoss is false. If a log was
truncated and written anew since a batch ended there, that is data loss; without failOnDataLoss, reading goes on at the
first record that took the place of another. With `Trigger.AvailableNow` the ends are fixed when the query starts.

Spark keeps the end of a micro-batch before it runs, and the start of none. If a query is killed in its first one, Spark
asks for the initial offset anew, which is another one by then, and plans from there to the end it has kept. So the end
of the first batch has the offsets where that batch starts, and what is wrong with an initial offset is an error only
where the offset is used.
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
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.options import EARLIEST, LATEST, Edge, OptionError, Options
from moldau.pipeline.positions import (
    DataLost,
    Offsets,
    Subscribed,
    first_contact,
    look_up,
    starting_offsets,
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
    fixed end of Trigger.AvailableNow, the time of the latest batch, the latest position with its leader epochs, where
    the batch that is planned begins, the initial offset if Spark has asked for it, or why there is none, and whether a
    batch was planned."""

    def __init__(self, options: Options):
        self._options = options
        self._fixed_end: StreamOffset | None = None
        self._met = False
        self._initial: dict[str, Any] | None = None
        self._no_start: MoldauError | None = None
        self._has_planned = False
        self._batch_at_s = -inf
        self._known = nowhere = StreamOffset({}, {})
        self._placed = nowhere, nowhere
        self._progress = GroupProgress(options)

    def initialOffset(self) -> dict[str, Any]:
        """Where a query starts; Spark also asks when it is about to run the first micro-batch again after a kill."""
        options = self._options
        with in_a_sentence():
            check_of_stream(options)
            if self._initial is None:
                start = StreamOffset({}, {})
                try:
                    partitions = self._subscribed(starting=True)
                    offsets = starting_offsets(options, options.starting or Edge(LATEST), partitions)
                    start = self._with_epochs(StreamOffset(offsets, ids_of(partitions)))
                except (OptionError, DataLost) as error:
                    self._no_start = error
                self._initial = start.to_tree()
            return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.offsets_per_trigger_max
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        with in_a_sentence():
            self._fixed_end = self._log_ends()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """The end of the next batch. Spark before 4.2 does not say where it starts."""
        with in_a_sentence():
            if start is None:
                return self._end_of_any_batch().to_tree()
            log_ends = self._fixed_end or self._log_ends()
            is_first = start == self._initial and not self._has_planned
            if is_first and self._no_start:
                raise self._no_start
            given = reached = from_tree(start)
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
            begin = {tp: min(offset, end[tp]) for tp, offset in begin.items()}
            if self._too_few(begin, end):
                return start
            self._batch_at_s = time.monotonic()
            if isinstance(limit, ReadMaxRows):
                end = ration(begin, end, limit.max_rows)
            goal = self._with_epochs(StreamOffset({**begin, **end}, {**reached.topic_ids, **log_ends.topic_ids}))
            if is_first:
                return goal._replace(starting=begin).to_tree()
            # A position that has not moved stays equal: otherwise Spark would run a batch without records.
            return start if goal == given._replace(starting={}) else goal.to_tree()

    def _end_of_any_batch(self) -> StreamOffset:
        """The end of a batch that may be the first one or not, since Spark has not said where it starts."""
        initial = from_tree(self.initialOffset())
        goal = self._with_epochs(self._fixed_end or self._log_ends())
        return goal if self._no_start else goal._replace(starting=initial.offsets)

    def reportLatestOffset(self) -> dict[str, Any]:
        with in_a_sentence():
            return self._log_ends().to_tree()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        options, reached, goal = self._options, from_tree(start), from_tree(end)
        with in_a_sentence():
            there = self._subscribed()
            self._has_planned = True
            if start == self._initial:
                reached = self._start_of_first_batch(reached, goal)
            reached = reached.without(self._created_again(reached, goal.topic_ids))
            made_anew = self._created_again(goal, ids_of(there))
            same = [tp for tp in there if tp.topic not in made_anew]
            asked, placed = self._placed  # a moment ago, if this batch follows at once
            begin = (placed if asked == reached else self._still_in_log(reached, same)).offsets
            is_known = goal._replace(starting={}) == self._known
            until = dict(goal.offsets if is_known else self._still_in_log(goal, same).offsets)
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

    def _start_of_first_batch(self, initial: StreamOffset, goal: StreamOffset) -> StreamOffset:
        """Where the batch that ends here started, be its start or that of an attempt before a restart. A checkpoint of
        an earlier version does not tell: what `initial` has beyond the end of the batch is then not of it."""
        if goal.starting:
            return StreamOffset(dict(goal.starting), goal.topic_ids)
        if self._no_start:
            raise self._no_start
        offsets = {tp: at for tp, at in initial.offsets.items() if tp in goal.offsets}
        for tp, at in sorted(offsets.items()):
            if at > goal.offsets[tp] and self._options.fail_on_data_loss:
                raise DataLost(
                    f"The checkpoint does not say where the first micro-batch started, which ends at offset "
                    f"{goal.offsets[tp]} of {tp.topic} partition {tp.partition}: start with a new checkpoint, or set "
                    "failOnDataLoss to false to continue behind it."
                )
        return StreamOffset(offsets, goal.topic_ids)

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
            partitions = first_contact(options, missing_ok=missing_ok)
            self._met = True
            return partitions
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
        epochs = {tp: epoch for tp, epoch in known.epochs.items() if tp in goal.offsets and tp not in moved}
        if moved:
            with self._caller() as caller:
                epochs |= epochs_before(caller, moved, lowest)
        self._known = goal._replace(epochs=epochs)
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
        """Raise `DataLost` if the partition is gone or ends before `offset`. Without failOnDataLoss the position goes
        back to the end, since what is written there next is new; that of a partition which is gone stays."""
        if tp in end and end[tp] >= offset:
            return
        if tp in end and waits_for_transaction(self._options.bootstrap_servers, tp, offset):
            end[tp] = offset
            return
        if self._options.fail_on_data_loss:
            what = f"ends at offset {end[tp]}, before {offset} which was already read" if tp in end else "is gone"
            raise DataLost(f"Partition {tp.partition} of topic {tp.topic} {what}; {LOSS_HINT}.")
        end.setdefault(tp, offset)


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
