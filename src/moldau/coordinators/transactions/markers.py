"""Writes the markers of decided transactions, and retries until every partition has its own.

A round is one transaction and the partitions that still lack its marker. A refused marker is tried again after a pause
that doubles, and at once when the cluster changes. Then the transaction is completed. No marker is needed in partitions
of deleted topics, or where a later epoch has written: the transaction is over there. At most `ROUNDS_MAX` rounds write
at a time; the others wait without a task, in the order of their decisions.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from moldau.coordinators.transactions.messages import WriteMarkers
from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers
from moldau.tasks import ended

log = logging.getLogger(__name__)

ROUNDS_MAX = 64

DONE = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
COMPLETED = frozenset({ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE, ErrorCode.NOT_COORDINATOR})
"""Answers to completing a transaction after which its round is over. A coordinator that loads the partition later
starts new rounds."""


class MarkerRound:
    """One transaction; `left` are the partitions that lack the marker."""

    __slots__ = ("left", "markers", "partition", "timer", "transactional_id", "wait_ms")

    def __init__(self, partition: int, transactional_id: str, markers: TransactionMarkers):
        self.partition = partition
        self.transactional_id = transactional_id
        self.markers = markers
        self.left = markers.partitions
        self.wait_ms = 0
        self.timer: asyncio.TimerHandle | None = None


class MarkerRounds:
    """`exists` says whether a partition exists; `complete` records that a transaction is complete. `pauses_ms` are the
    first and the longest pause between two attempts."""

    def __init__(
        self,
        write: WriteMarkers,
        complete: Callable[[MarkerRound], Awaitable[ErrorCode]],
        exists: Callable[[TopicPartition], bool],
        pauses_ms: tuple[int, int],
    ):
        self._write = write
        self._complete = complete
        self._exists = exists
        self._pause_ms_min, self._pause_ms_max = pauses_ms
        self._rounds: dict[int, dict[str, MarkerRound]] = {}
        self._ready: deque[MarkerRound] = deque()
        self._waiting: dict[MarkerRound, None] = {}
        self._tasks: dict[asyncio.Task[None], tuple[int, str]] = {}
        self._latest: dict[tuple[int, str], asyncio.Task[None]] = {}
        """The latest task of each transactional id, by partition of `__transaction_state` and id."""

    def __len__(self) -> int:
        return sum(len(rounds) for rounds in self._rounds.values())

    def add(self, partition: int, transactional_id: str, markers: TransactionMarkers) -> None:
        """Write the markers of a transaction of that partition of `__transaction_state`, decided now or before a
        start."""
        rounds = self._rounds.setdefault(partition, {})
        before = rounds.get(transactional_id)
        if before is not None:
            self._unwait(before)
        begun = rounds[transactional_id] = MarkerRound(partition, transactional_id, markers)
        self._ready.append(begun)
        self._begin()

    def drop(self, partition: int) -> None:
        """Stop the rounds of that partition: another coordinator completes its transactions."""
        for dropped in self._rounds.pop(partition, {}).values():
            self._unwait(dropped)

    def try_now(self) -> None:
        """Try all refused markers again at once."""
        for waiting in list(self._waiting):
            self._unwait(waiting)
            self._ready.append(waiting)
        self._begin()

    async def stop(self) -> None:
        for partition in list(self._rounds):
            self.drop(partition)
        await ended(*self._tasks)

    def _begin(self) -> None:
        while self._ready and len(self._tasks) < ROUNDS_MAX:
            begun = self._ready.popleft()
            if self._is_current(begun):
                place = begun.partition, begun.transactional_id
                task = asyncio.get_running_loop().create_task(self._run(begun, self._latest.get(place)))
                self._tasks[task], self._latest[place] = place, task
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        place = self._tasks.pop(task)
        if self._latest.get(place) is task:
            del self._latest[place]
        self._begin()

    async def _run(self, begun: MarkerRound, earlier: asyncio.Task[None] | None) -> None:
        """`earlier`: of a round that was dropped. Its markers may be on their way, and would end the id's next
        transaction if that has the same epoch: wait for their answer."""
        if earlier is not None:
            await asyncio.wait([earlier])
            if not self._is_current(begun):
                return
        try:
            if begun.left:
                errors = await self._write(begun.markers._replace(partitions=begun.left))
                begun.left = self._refused(begun, errors)
            if not self._is_current(begun):
                return
            if not begun.left and await self._complete(begun) in COMPLETED:
                if self._is_current(begun):
                    del self._rounds[begun.partition][begun.transactional_id]
                return
        except Exception:
            log.exception("the markers of transactional id %s cannot be written", begun.transactional_id)
        if self._is_current(begun):
            self._wait(begun)

    def _refused(self, begun: MarkerRound, errors: Mapping[TopicPartition, ErrorCode]) -> tuple[TopicPartition, ...]:
        """The partitions in which the marker has to be tried again."""
        left = []
        for partition in begun.left:
            error = errors.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            is_gone = error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._exists(partition)
            if error in DONE or is_gone:
                continue
            left.append(partition)
            if begun.wait_ms < self._pause_ms_max <= 2 * begun.wait_ms:
                what = "commit" if begun.markers.commits else "abort"
                log.warning(
                    "the %s marker of transactional id %s cannot be written to %s yet: %s",
                    what, begun.transactional_id, partition, error.sentence,
                )  # fmt: skip
        return tuple(left)

    def _wait(self, begun: MarkerRound) -> None:
        begun.wait_ms = min(max(2 * begun.wait_ms, self._pause_ms_min), self._pause_ms_max)
        self._waiting[begun] = None
        begun.timer = asyncio.get_running_loop().call_later(begun.wait_ms / 1000, self._again, begun)

    def _again(self, waiting: MarkerRound) -> None:
        self._unwait(waiting)
        self._ready.append(waiting)
        self._begin()

    def _unwait(self, waiting: MarkerRound) -> None:
        self._waiting.pop(waiting, None)
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer = None

    def _is_current(self, one: MarkerRound) -> bool:
        return self._rounds.get(one.partition, {}).get(one.transactional_id) is one
