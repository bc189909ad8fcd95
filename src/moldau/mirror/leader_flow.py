"""What one leader of the source has goes to the leaders of the mirrors: a Fetch of all partitions that are followed at
it, which waits there until something comes (`source_session`); and while the mirrors' leaders take that, the next Fetch
is on its way. So a worker holds two answers of each leader of the source at most, and each partition's batches arrive
in their order.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from moldau.client.failures import STALE_METADATA, sentence
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.mirror.copied_partitions import CopiedPartitions
from moldau.mirror.copies import PartitionCopy
from moldau.mirror.latency import RecordTimes
from moldau.mirror.mirror_leaders import MirrorLeaders
from moldau.mirror.requests import Appending, fetch_next
from moldau.mirror.source_session import FetchedBatches, SourceSession
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.records.batch import MAGIC, MAGIC_AT, batches
from moldau.tasks import ended

WAIT_MS: Final = 500
"""How long a Fetch waits at a leader that has nothing new; a new partition is fetched after that time at the latest."""
SLOW_S: Final = 3.0
"""After that time without an answer of a mirror's leader, its partitions pause."""
OLD_FORMAT: Final = "the source has records of format {} at offset {}, and mirrors have those of format {} only"

notices = Notices(logging.getLogger(__name__))


class LeaderFlow:
    """Runs in `run` until nothing is followed at this leader, or it cannot be reached; then it `is_over`."""

    def __init__(self, leader: int, source: Router, mirrors: MirrorLeaders, copied: CopiedPartitions):
        self.session = SourceSession()
        self.is_over = False
        self._leader = leader
        self._source = source
        self._mirrors = mirrors
        self._copied = copied
        self._appending: set[asyncio.Task[None]] = set()
        self._owing: set[TopicPartition] = set()
        """Partitions that may owe their mirrors the start of the log."""

    async def run(self) -> None:
        wanted: dict[TopicPartition, Appending] = {}
        appending: asyncio.Task[None] | None = None
        try:
            while len(self.session):
                answers = await fetch_next(self._source, self._leader, self.session, WAIT_MS)
                if appending is not None:
                    await self._arrived(appending, wanted)
                wanted, appending = self._to_append(answers), None
                if wanted:
                    purpose = f"mirror of {self._leader}"
                    appending = asyncio.ensure_future(self._mirrors.append(wanted, purpose))
                    self._appending.add(appending)
        except KafkaError as failure:
            self._failed(failure)
        except asyncio.CancelledError:
            await ended(*self._appending)
            raise
        finally:
            self.is_over = True
        await asyncio.gather(*self._appending)

    async def _arrived(self, appending: asyncio.Task[None], sent: Mapping[TopicPartition, Appending]) -> None:
        """Wait until the mirrors' leaders have answered. Partitions of one that takes too long pause, and the others go
        on; its late answer counts no more."""
        await asyncio.wait([appending], timeout=SLOW_S)
        for task in [task for task in self._appending if task.done()]:
            self._appending.discard(task)
            task.result()
        if appending.done():
            return
        for tp, one in sent.items():
            copy = self._copied.copied(tp)
            if copy is not None and copy.session is self.session and copy.end == one.end != copy.position:
                self._copied.pause(tp, f"the mirror's leader has not answered for {SLOW_S:g} s")

    def _failed(self, failure: KafkaError) -> None:
        """A whole request failed: all its partitions pause."""
        notices.warning("", "mirroring pauses: %s", failure)
        self._copied.counters.pauses += 1
        for tp in self.session:
            self._source.stale(tp.topic)
            self._copied.pause(tp)

    def _to_append(self, answers: Mapping[TopicPartition, FetchedBatches]) -> dict[TopicPartition, Appending]:
        """What the mirrors are to get of a leader's answer. What was sent before has arrived, or its partition has
        paused and is not followed."""
        wanted: dict[TopicPartition, Appending] = {}
        self._copied.counters.fetches += bool(answers)
        for tp, answer in answers.items():
            copy = self._copied.copied(tp)
            if copy is None or copy.session is not self.session or copy.end is None:
                self.session.drop(tp)
            elif answer.error:
                self._refused(tp, answer.error)
            else:
                self._owing.add(tp)
                if (appending := self._fetched(copy, answer)) is not None:
                    wanted[tp] = appending
        for tp in self._owing - wanted.keys():
            copy = self._copied.copied(tp)
            if copy is None or copy.session is not self.session or copy.mirror_start >= copy.source_start:
                self._owing.discard(tp)
            elif copy.owes_start and copy.end is not None:
                source = self._copied.topics[tp.topic].source
                wanted[tp] = Appending(source, copy.end, copy.source_start, memoryview(b""))
        return wanted

    def _refused(self, tp: TopicPartition, error: ErrorCode) -> None:
        if error in STALE_METADATA:
            self._source.stale(tp.topic)
        # Out of range: comparing says whether the source has deleted or lost records.
        out_of_range = error is ErrorCode.OFFSET_OUT_OF_RANGE
        self._copied.pause(tp, "" if out_of_range else f"fetching: {sentence(error)}")

    def _fetched(self, copy: PartitionCopy, answer: FetchedBatches) -> Appending | None:
        """The whole batches of an answer, with where the source's log starts; None if there are none."""
        assert copy.end is not None
        copy.source_start = max(copy.source_start, answer.start)
        copy.records_behind = max(answer.high_watermark - copy.position, 0)
        first, size, end, times = None, 0, copy.position, RecordTimes()
        for at, header in batches(answer.records):
            first = header.base_offset if first is None else first
            size, end, times = at + header.size, header.next_offset, times.with_batch(header)
            if copy.position < copy.careful_until:
                break
        if first is None:
            if len(answer.records) > MAGIC_AT and answer.records[MAGIC_AT] != MAGIC:
                self._copied.stop(copy.tp, OLD_FORMAT.format(answer.records[MAGIC_AT], copy.position, MAGIC))
            return None
        # A log that starts within a batch is begun with the whole batch: its start moves with the next request.
        start = min(answer.start, first) if answer.start > copy.end else answer.start
        copy.read_to(end)
        return Appending(self._copied.topics[copy.tp.topic].source, copy.end, start, answer.records[:size], times)
