"""A Produce with acks=all after its batches were appended: it is answered when the in-sync replicas have them.

A batch that they do not have in time gets an error in the answer: REQUEST_TIMED_OUT after the request's time-out,
NOT_ENOUGH_REPLICAS_AFTER_APPEND if too few replicas are in sync by then, NOT_LEADER_OR_FOLLOWER if the partition has
another leader, or this one anew: the batch may have been lost in between.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from moldau.errors import ErrorCode
from moldau.handlers.deadlines import Deadlines
from moldau.protocol.hot_produce import ProduceResult
from moldau.replication.replica import Replica
from moldau.replication.results import Appended
from moldau.replication.waiting import Waiters
from moldau.turns import Steps


class BatchBehind(NamedTuple):
    """A batch that was appended and that the in-sync replicas do not have yet; `at` is its place among the results."""

    at: int
    replica: Replica
    appended: Appended


Offsets: TypeAlias = list[tuple[Waiters, int]]
"""The high watermarks that are waited for: each partition, and the offset that it must reach."""


class Acknowledgement:
    """The batches of one request that are `behind`. `results` are those of all its batches, and get their errors."""

    def __init__(self, behind: list[BatchBehind], results: list[ProduceResult], timeout_ms: int):
        self.loop = asyncio.get_running_loop()
        self._behind = behind
        self._results = results
        self.deadline_s = self.loop.time() + timeout_ms / 1000

    @property
    def left_s(self) -> float:
        return self.deadline_s - self.loop.time()

    @property
    def has_moved(self) -> bool:
        """Whether something has changed since `look`, which may have taken several turns."""
        return any(replica.acknowledged(appended) is not None for _, replica, appended in self._behind)

    def look(self) -> Offsets:
        """The high watermarks that must still be reached."""
        is_late = self.left_s <= 0
        self._behind = [batch for batch in self._behind if self._still_waits(batch, is_late)]
        return [(replica.waiters, appended.last_offset + 1) for _, replica, appended in self._behind]

    def look_in_turns(self) -> Steps[Offsets]:
        """The same for a wide request."""
        is_late = self.left_s <= 0
        waiting: list[BatchBehind] = []
        for batch in self._behind:
            if self._still_waits(batch, is_late):
                waiting.append(batch)
            yield
        self._behind = waiting
        return [(replica.waiters, appended.last_offset + 1) for _, replica, appended in waiting]

    def _still_waits(self, batch: BatchBehind, is_late: bool) -> bool:
        """False if the batch has its result now."""
        at, replica, appended = batch
        error = replica.acknowledged(appended)
        if error is None:
            if not is_late:
                return True
            error = ErrorCode.REQUEST_TIMED_OUT
        if error:
            index, _, *rest = self._results[at]
            self._results[at] = (index, error, *rest)  # type: ignore[assignment]
        return False


class PendingAnswer:
    """What `answer` returns once all batches are acknowledged, or not: a `Response` without a future or task of its
    own, since a producer may have several of these, and each of its requests makes one."""

    __slots__ = ("_acknowledgement", "_answer", "_called", "_deadlines", "_is_done", "_missing", "_places", "_tick")

    def __init__(self, acknowledgement: Acknowledgement, deadlines: Deadlines, answer: Callable[[], Any]):
        self._acknowledgement = acknowledgement
        self._answer = answer
        self._called: Callable[[Any], object] | None = None
        self._is_done = False
        self._missing = 0
        self._places: Offsets = []
        self._deadlines = deadlines
        self._tick = deadlines.add(self, acknowledgement.deadline_s)
        self._look()

    def time_is_over(self) -> None:
        self._look()

    def _look(self) -> None:
        if self._is_done:
            return
        self._leave()
        self._places = places = self._acknowledgement.look()
        self._missing = len(places)
        if places:
            for waiters, offset in places:
                waiters.park(offset, self)
        else:
            self._end()

    def count_down(self, partitions: int) -> None:
        """The high watermark of so many partitions is where it must be."""
        self._missing -= partitions
        if not self._missing:
            self._look()

    def finish(self) -> None:
        """Look again, once what changes now has changed."""
        self._acknowledgement.loop.call_soon(self._look)

    def done(self) -> bool:
        return self._is_done

    def result(self) -> Any:
        return self._answer()

    def cancel(self) -> None:
        """The connection has closed: nobody waits for the answer any more."""
        if not self._is_done:
            self._leave()
            self._end()

    def add_done_callback(self, call: Callable[[Any], object]) -> None:
        """There is one such call."""
        self._called = call
        if self._is_done:
            call(self)

    def _leave(self) -> None:
        if self._missing:
            for waiters, offset in self._places:
                waiters.unpark(offset, self)

    def _end(self) -> None:
        self._is_done = True
        self._deadlines.remove(self, self._tick)
        if self._called is not None:
            self._called(self)
