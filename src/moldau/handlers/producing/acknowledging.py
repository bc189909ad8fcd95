"""A Produce with acks=all after its batches were appended: it is answered when the in-sync replicas have them.

A batch that they do not have in time gets an error in the answer: REQUEST_TIMED_OUT after the request's time-out,
NOT_ENOUGH_REPLICAS_AFTER_APPEND if too few replicas are in sync by then, NOT_LEADER_OR_FOLLOWER if the partition has
another leader, or this one anew: the batch may have been lost in between.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from moldau.errors import ErrorCode
from moldau.handlers.producing.deadlines import TimingWheel
from moldau.protocol.hot_produce import ProduceResult
from moldau.replication.replica import Replica
from moldau.replication.results import Appended
from moldau.turns import Steps


class BatchBehind(NamedTuple):
    """A batch that was appended and that the in-sync replicas do not have yet; `at` is its place among the results."""

    at: int
    replica: Replica
    appended: Appended


Behind: TypeAlias = list[BatchBehind]


def still_waits(batch: BatchBehind, results: list[ProduceResult], is_late: bool) -> bool:
    """False if the batch needs no more waiting; an error is then among the results of its request. `is_late`: the
    request's time is over."""
    at, replica, appended = batch
    error = replica.acknowledged(appended)
    if error is None:
        if not is_late:
            return True
        error = ErrorCode.REQUEST_TIMED_OUT
    if error:
        index, _, *rest = results[at]
        results[at] = (index, error, *rest)  # type: ignore[assignment]
    return False


def still_waiting(behind: Behind, results: list[ProduceResult], is_late: bool) -> Steps[Behind]:
    """Those of the batches that `still_waits` is true of, found in turns, for a wide request."""
    waiting: Behind = []
    for batch in behind:
        if still_waits(batch, results, is_late):
            waiting.append(batch)
        yield
    return waiting


def has_moved(behind: Behind) -> bool:
    """Whether one of the batches needs no more waiting."""
    return any(replica.acknowledged(appended) is not None for _, replica, appended in behind)


class PendingAnswer:
    """What `answer` returns once all batches that are `behind` are acknowledged, or not: a `Response` without a future
    or task of its own, since a producer may have several of these, and each of its requests makes one. `results` are
    those of all batches of the request, and get the errors of these."""

    __slots__ = ("_answer", "_behind", "_called", "_deadlines", "_is_done", "_missing", "_results", "_tick")

    def __init__(
        self,
        behind: Behind,
        results: list[ProduceResult],
        timeout_ms: int,
        deadlines: TimingWheel,
        answer: Callable[[], Any],
    ):
        self._behind = behind
        self._results = results
        self._answer = answer
        self._called: Callable[[Any], object] | None = None
        self._is_done = False
        self._missing = 0
        self._deadlines = deadlines
        self._tick = deadlines.add(self, timeout_ms / 1000)
        self._look(timeout_ms <= 0)

    def time_is_over(self) -> None:
        self._look(is_late=True)

    def _look(self, is_late: bool = False) -> None:
        if self._is_done:
            return
        if self._missing:
            self._leave()
        results = self._results
        self._behind = behind = [batch for batch in self._behind if still_waits(batch, results, is_late)]
        self._missing = len(behind)
        for _, replica, appended in behind:
            replica.waiters.park(appended.last_offset + 1, self)
        if not behind:
            self._end()

    def count_down(self, partitions: int) -> None:
        """The high watermark of so many partitions is where it must be."""
        self._missing -= partitions
        if not self._missing:
            self._look()

    def finish(self) -> None:
        """Look again, once what changes now has changed."""
        asyncio.get_running_loop().call_soon(self._look)

    def done(self) -> bool:
        return self._is_done

    def result(self) -> Any:
        return self._answer()

    def cancel(self) -> None:
        """The connection has closed: nobody waits for the answer any more."""
        if not self._is_done:
            if self._missing:
                self._leave()
            self._end()

    def add_done_callback(self, call: Callable[[Any], object]) -> None:
        """There is one such call."""
        self._called = call
        if self._is_done:
            call(self)

    def _leave(self) -> None:
        for _, replica, appended in self._behind:
            replica.waiters.unpark(appended.last_offset + 1, self)

    def _end(self) -> None:
        self._is_done = True
        self._deadlines.remove(self, self._tick)
        if self._called is not None:
            self._called(self)
