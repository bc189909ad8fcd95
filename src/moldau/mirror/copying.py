"""The copying itself: fetches what the source's leaders have, and appends it at the mirrors' leaders.

One task for each leading broker of the source: a Fetch of all partitions that are copied from it, which waits there
until something comes; what came goes to the mirrors' leaders, and the next Fetch follows once it is committed. So a
worker holds one answer for each leader at most.

An error concerns its partition, which pauses, asks the mirror's leader where its log ends, and is compared again
(`copies`). A partition whose source has lost records stops with a sentence; the others go on.
"""

import asyncio
import logging
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from moldau.client.failures import STALE_METADATA, sentence
from moldau.client.offsets import EARLIEST, LATEST, offsets_at
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.mirror.copies import LogSpan, PartitionCopy, divergence
from moldau.mirror.requests import (
    ASKS_ONLY,
    Appending,
    FetchedBatches,
    MirrorAnswer,
    append,
    batch_at,
    by_leader,
    fetch,
)
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.records.batch import batches

WAIT_MS: Final = 500
"""How long a Fetch waits at a leader that has nothing new; a new partition is fetched after that time at the latest."""
PAUSE_S: Final = 0.5
"""After an error of a partition."""
LONG_PAUSE_S: Final = 3.0
"""After a leader of mirrors has not answered: the next Fetch would wait for it again, with all other partitions."""
COMPARED_AT_ONCE: Final = 16

logger = logging.getLogger(__name__)
notices = Notices(logger)


class CopiedTopic(NamedTuple):
    """`source`: its `mirror.source`. `topic_id`: the id in the source cluster, zero where topics have none;
    `mirror_id`: that of the mirror, zero before it is known. `compacted`: its batches lose records."""

    source: str
    topic_id: uuid.UUID
    mirror_id: uuid.UUID
    compacted: bool


class Copying:
    """`topics`: those that may be copied (`mirror`). Runs in `run` until it is cancelled; `assign`
    says what is copied. `appended` counts bytes."""

    def __init__(self, source: Router, target: Router):
        self._source = source
        self._target = target
        self.topics: dict[str, CopiedTopic] = {}
        self.copies: dict[TopicPartition, PartitionCopy] = {}
        self.appended = 0
        self._paused: dict[TopicPartition, float] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Copy these from now on, and no others."""
        before = self.copies
        self.copies = {tp: before.get(tp) or PartitionCopy(tp) for tp in partitions}
        self._changed.set()

    def mirror(self, topics: Mapping[str, CopiedTopic]) -> None:
        """These topics may be copied now. What was known of others, or of earlier ones of the same name, is
        forgotten."""
        before, self.topics = self.topics, dict(topics)
        for tp in self.copies:
            if before.get(tp.topic) != topics.get(tp.topic):
                self.copies[tp] = PartitionCopy(tp)
        self._changed.set()

    def _copied(self, tp: TopicPartition) -> PartitionCopy | None:
        """What is known of a partition; None if it is copied no longer, which any wait may have changed."""
        return self.copies.get(tp) if tp.topic in self.topics else None

    async def run(self) -> None:
        try:
            while True:
                self._changed.clear()
                await self._begin()
                waiting = {*self._tasks.values(), asyncio.ensure_future(self._changed.wait())}
                done, _ = await asyncio.wait(waiting, timeout=PAUSE_S, return_when=asyncio.FIRST_COMPLETED)
                for one in waiting - {*self._tasks.values()}:
                    one.cancel()
                for leader in [leader for leader, task in self._tasks.items() if task in done]:
                    self._tasks.pop(leader).result()
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _begin(self) -> None:
        """Begin a round with each leader of the source that has none."""
        now_s = asyncio.get_running_loop().time()
        ready = [
            tp
            for tp, copy in self.copies.items()
            if not copy.stopped and tp.topic in self.topics and self._paused.get(tp, 0.0) <= now_s
        ]
        led = await by_leader(self._source, ready)
        for tp, failure in led.failures.items():
            self._pause(tp, f"the source: {failure}")
        for leader, partitions in led.leaders.items():
            if leader not in self._tasks:
                self._tasks[leader] = asyncio.ensure_future(self._round(leader, partitions))

    async def _round(self, leader: int, partitions: Collection[TopicPartition]) -> None:
        try:
            prepared = await self._prepared(partitions)
            if not prepared:
                return
            offsets = {tp: self.copies[tp].fetch_from for tp in prepared}
            ids = {tp.topic: self.topics[tp.topic].topic_id for tp in prepared}
            answers = await fetch(self._source, leader, offsets, ids, WAIT_MS)
            wanted = {tp: one for tp in prepared if (one := self._to_append(tp, answers.get(tp))) is not None}
            await self._append(wanted)
        except KafkaError as failure:
            self._failed(partitions, failure)

    def _failed(self, partitions: Iterable[TopicPartition], failure: KafkaError) -> None:
        """A whole request failed: all its partitions pause."""
        notices.warning("", "mirroring pauses: %s", failure)
        for tp in partitions:
            self._source.stale(tp.topic)
            self._target.stale(tp.topic)
            self._pause(tp)

    def _pause(self, tp: TopicPartition, why: str = "", seconds: float = PAUSE_S) -> None:
        if why:
            notices.warning(str(tp), "%s: mirroring pauses: %s", tp, why)
        if tp in self.copies:
            self.copies[tp].forget()
            self._paused[tp] = asyncio.get_running_loop().time() + seconds

    def _stop(self, tp: TopicPartition, why: str) -> None:
        logger.error("%s is mirrored no longer: %s", tp, why)
        if tp in self.copies:
            self.copies[tp].stopped = why

    # What must be known before the first Fetch

    async def _prepared(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of the partitions that can be fetched for: the mirror's end is known, and was compared in the present
        leader epoch of the source."""
        known = [tp for tp in partitions if self._copied(tp) is not None]
        unasked = [tp for tp in known if self.copies[tp].end is None]
        asked = {tp: Appending(self.topics[tp.topic].source, ASKS_ONLY, -1, memoryview(b"")) for tp in unasked}
        await self._append(asked)
        epochs = {tp: self._source.view.leader_epoch(tp) for tp in known}
        uncompared = [
            tp
            for tp in known
            if (copy := self._copied(tp)) is not None and copy.end is not None and copy.source_epoch != epochs[tp]
        ]
        for at in range(0, len(uncompared), COMPARED_AT_ONCE):
            some = uncompared[at : at + COMPARED_AT_ONCE]
            await asyncio.gather(*(self._compare(tp, epochs[tp]) for tp in some))
        return [
            tp
            for tp in known
            if (copy := self._copied(tp)) is not None
            and not copy.stopped
            and copy.end is not None
            and copy.source_epoch is not None
        ]

    async def _compare(self, tp: TopicPartition, source_epoch: int) -> None:
        copy, topic = self._copied(tp), self.topics.get(tp.topic)
        if copy is None or topic is None or copy.end is None:  # others were compared before
            return
        try:
            starts, ends = await asyncio.gather(
                offsets_at(self._source, {tp: EARLIEST}), offsets_at(self._source, {tp: LATEST})
            )
            source, mirror = LogSpan(starts[tp], ends[tp]), LogSpan(copy.mirror_start, copy.end)
            of_source = of_mirror = None
            if mirror.start < mirror.end and source.start < mirror.end <= source.end:
                of_source = await batch_at(self._source, tp, topic.topic_id, mirror.end - 1)
                of_mirror = await batch_at(self._target, tp, topic.mirror_id, mirror.end - 1)
        except KafkaError as failure:
            self._pause(tp, str(failure))
            return
        if self._copied(tp) is not copy:
            return
        why = divergence(tp, source, mirror, of_source, of_mirror, topic.compacted)
        if why:
            self._stop(tp, why)
            return
        if mirror.start < mirror.end < source.start:
            missed = source.start - mirror.end
            notices.warning(
                str(tp), "%s: the source has deleted up to %d offsets that were not mirrored yet", tp, missed
            )
        copy.source_start, copy.source_epoch = source.start, source_epoch

    # What comes, and what is sent

    def _to_append(self, tp: TopicPartition, answer: FetchedBatches | None) -> Appending | None:
        """What the mirror is to get of a leader's answer; None if nothing, or after an error."""
        copy = self._copied(tp)
        if copy is None or answer is None or copy.end is None:
            return None
        if answer.error in STALE_METADATA:
            self._source.stale(tp.topic)
        if answer.error:
            # Out of range: comparing says whether the source has deleted or lost records.
            out_of_range = answer.error is ErrorCode.OFFSET_OUT_OF_RANGE
            self._pause(tp, "" if out_of_range else f"fetching: {sentence(answer.error)}")
            return None
        first = next((header for _, header in batches(answer.records)), None)
        start = answer.start
        if first is None:
            copy.records_behind = max(answer.high_watermark - copy.fetch_from, 0)
            is_news = start > copy.mirror_start
            return Appending(self.topics[tp.topic].source, copy.end, start, memoryview(b"")) if is_news else None
        # A log that starts within a batch is begun with the whole batch: its start moves with the next request.
        if start > copy.end:
            start = min(start, first.base_offset)
        copy.records_behind = answer.high_watermark - copy.fetch_from
        return Appending(self.topics[tp.topic].source, copy.end, start, answer.records)

    async def _append(self, wanted: Mapping[TopicPartition, Appending]) -> None:
        """Those whose leaders do not take them pause; the others go on."""
        led = await by_leader(self._target, wanted)
        for tp, failure in led.failures.items():
            self._pause(tp, f"the mirror: {failure}")
        sending = (self._send(leader, {tp: wanted[tp] for tp in some}) for leader, some in led.leaders.items())
        answers = await asyncio.gather(*sending)
        for several in answers:
            for tp, answer in several.items():
                self._answered(tp, wanted[tp], answer)

    async def _send(
        self, leader: int, wanted: Mapping[TopicPartition, Appending]
    ) -> Mapping[TopicPartition, MirrorAnswer]:
        """The answers of one leader of mirrors; none if it does not answer."""
        try:
            return await append(self._target, leader, wanted)
        except KafkaError as failure:
            for tp in wanted:
                self._target.stale(tp.topic)
                self._pause(tp, f"the mirror: {failure}", LONG_PAUSE_S)
            return {}

    def _answered(self, tp: TopicPartition, sent: Appending, answer: MirrorAnswer) -> None:
        copy = self._copied(tp)
        if copy is None:
            return
        if not answer.error:
            copy.end, copy.mirror_start = answer.end, answer.start
            if sent.end != ASKS_ONLY:
                self.appended += len(sent.records)
                copy.records_behind = max((copy.records_behind or 0) - (answer.end - sent.end), 0)
            return
        if answer.error in STALE_METADATA:
            self._target.stale(tp.topic)
        self._pause(tp, answer.message or sentence(answer.error))
