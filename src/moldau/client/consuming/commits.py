"""The commits of one consumer: of processed records automatically, of delivered ones when the caller asks.

Commits are sent one after another, so that a retried one never overwrites a later one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from moldau.client.consuming.consumer_metrics import ConsumerCounters
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.fetched.assigned import Assigned
from moldau.client.consuming.fetched.handout import Handout
from moldau.client.consuming.groups.membership import GroupMembership
from moldau.client.consuming.polling import Poller
from moldau.client.given_positions import position_of
from moldau.client.partitions import partition_of
from moldau.errors import CommitFailed, KafkaError, MoldauError
from moldau.monotonic import monotonic_s
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.tasks import ended

logger = logging.getLogger(__name__)

AUTOMATIC_S_MAX = 5.0
"""An automatic commit is given up after this long."""

Offsets: TypeAlias = Mapping[TopicPartition, int | OffsetAndMetadata]
Committed: TypeAlias = dict[TopicPartition, OffsetAndMetadata]
CommitCallback: TypeAlias = Callable[[Committed, MoldauError | None], object]
"""Called with the offsets of a commit, and with its error or None."""


class Commits:
    """Sends commits, and knows what they may cover."""

    def __init__(
        self,
        poller: Poller,
        handout: Handout,
        membership: GroupMembership,
        settings: ConsumerSettings,
        counters: ConsumerCounters,
    ):
        self._poller = poller
        self._counters = counters
        self.handout = handout
        self._membership = membership
        self._settings = settings
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._automatic: asyncio.Task[None] | None = None
        self._next_s: float | None = None
        self._last: Committed = {}
        self._last_generation = -1
        """What this consumer committed last in that generation, for each partition; a failure leaves that unknown."""

    def delivered(self) -> Committed:
        """The position of each partition: the offset after the last record that the caller got."""
        return self._positions(self.handout.undelivered)

    def processed(self) -> Committed:
        """The offset of the first record of each partition that the caller has not come back from."""
        positions, delivered = self._positions(self.handout.unprocessed), self.delivered()
        for tp, state in list(self._poller.assigned.items()):
            if tp in positions and positions[tp].offset < state.acknowledged <= delivered[tp].offset:
                positions[tp] = _position(state, state.acknowledged)
        return positions

    def _positions(self, limits: Callable[[], dict[TopicPartition, int]]) -> Committed:
        """The positions, or the lower ones of `limits`, which is asked under the lock under which positions move."""
        positions: Committed = {}
        with self._poller.lock:
            before = limits()
            for tp, state in self._poller.assigned.items():
                if state.position is not None:
                    offset = min(state.position, before.get(tp, state.position))
                    positions[tp] = _position(state, offset)
        return positions

    def chosen(self, given: Offsets | None) -> Committed:
        """The offsets that the application commits: those in its mapping, with their leader epochs where they are
        known, or without one the positions of `delivered`. Raises `ConfigError`."""
        if given is None:
            return self.delivered()
        offsets = {partition_of(tp): position_of(at, f"the offset to commit for {tp}") for tp, at in given.items()}
        for tp, at in offsets.items():
            state = self._poller.assigned.get(tp)
            if at.leader_epoch is None and state is not None:
                offsets[tp] = at._replace(leader_epoch=state.epochs.of(at.offset - 1))
        return offsets

    def acknowledge(self, offsets: Committed) -> None:
        """Note a commit of the application. One beyond the position is not noted: it may be of records that the log has
        lost since they were read."""
        for tp, at in offsets.items():
            state = self._poller.assigned.get(tp)
            if state is not None and at.offset <= (state.position or 0):
                state.acknowledged = at.offset

    def due(self, now_s: float) -> bool:
        """Whether it is time for an automatic commit."""
        if self._next_s is None:
            self._next_s = now_s + self._settings.auto_commit_interval_ms / 1000
        return now_s >= self._next_s

    def begin(self, processed: Committed) -> None:
        """Commit automatically, in the background. Call it on the loop."""
        if self._automatic is None or self._automatic.done():
            loop = asyncio.get_running_loop()
            self._next_s = loop.time() + self._settings.auto_commit_interval_ms / 1000
            self._automatic = loop.create_task(self.quietly(processed))

    async def quietly(self, processed: Committed | None = None) -> None:
        """Commit automatically. A failure is only logged: the next commit covers it, or the records are read again
        after a rebalance."""
        offsets = self.processed() if processed is None else processed
        generation = self._membership.generation
        same = self._last_generation == generation and offsets.items() <= self._last.items()
        if (generation < 0 and not self._poller.by_hand) or not offsets or same:
            return
        try:
            async with asyncio.timeout(AUTOMATIC_S_MAX):
                await self.commit(offsets)
        except (MoldauError, TimeoutError) as failure:
            why = str(failure) or f"no answer within {AUTOMATIC_S_MAX:g} s"
            passing = not isinstance(failure, KafkaError) or failure.retriable or isinstance(failure, CommitFailed)
            level = logging.DEBUG if passing else logging.WARNING
            logger.log(level, "group %s: an automatic commit failed: %s", self._settings.group_id, why)

    async def commit(self, offsets: Committed) -> None:
        """Commit these. Raises `KafkaError`."""
        async with self._turn:
            if offsets:
                generation = self._membership.generation
                last = self._last if generation == self._last_generation else {}
                self._last, self._last_generation = {}, generation
                began_s, failed = monotonic_s(), True
                try:
                    await self._membership.commit(offsets)
                    failed = False
                finally:
                    self._counters.committed(began_s, failed)
                self._last = {**last, **offsets}

    def later(self, offsets: Committed, done: Callable[[Committed, MoldauError | None], Awaitable[None]]) -> None:
        """Commit these in the background, then await `done`. Call it on the loop."""

        async def work() -> None:
            failed: MoldauError | None = None
            try:
                await self.commit(offsets)
            except MoldauError as failure:
                failed = failure
                logger.warning("group %s: a commit failed: %s", self._settings.group_id, failure)
            await done(offsets, failed)

        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for the commits in the background, and cancel the automatic one."""
        await ended(self._automatic)
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _position(state: Assigned, offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, leader_epoch=state.epochs.of(offset - 1))
