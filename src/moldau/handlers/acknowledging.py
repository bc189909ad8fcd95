"""A Produce with acks=all after its batches were appended: it is answered when the in-sync replicas have them.

A batch that they do not have in time gets an error in the answer: REQUEST_TIMED_OUT after the request's time-out,
NOT_ENOUGH_REPLICAS_AFTER_APPEND if too few replicas are in sync by then, NOT_LEADER_OR_FOLLOWER if the partition has
another leader, or this one anew: the batch may have been lost in between.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from moldau.errors import ErrorCode
from moldau.protocol.hot_produce import ProduceResult
from moldau.replication.replica import Replica
from moldau.replication.results import Appended
from moldau.replication.waiting import Wait, Waiters
from moldau.turns import Steps, turn


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
        self._deadline = self.loop.time() + timeout_ms / 1000

    @property
    def left_s(self) -> float:
        return self._deadline - self.loop.time()

    @property
    def has_moved(self) -> bool:
        """Whether something has changed since `look`, which may have taken several turns."""
        return any(replica.acknowledged(appended) is not None for _, replica, appended in self._behind)

    def look(self) -> Steps[Offsets]:
        """The high watermarks that must still be reached."""
        is_late = self.left_s <= 0
        waiting: list[BatchBehind] = []
        offsets: Offsets = []
        for batch in self._behind:
            at, replica, appended = batch
            error = replica.acknowledged(appended)
            if error is None and not is_late:
                waiting.append(batch)
                offsets.append((replica.waiters, appended.last_offset + 1))
            elif error is not ErrorCode.NONE:
                index, _, *rest = self._results[at]
                self._results[at] = (index, ErrorCode.REQUEST_TIMED_OUT if error is None else error, *rest)  # type: ignore[assignment]
            yield
        self._behind = waiting
        return offsets


class PendingAnswer:
    """`response` becomes what `answer` returns once all batches are acknowledged, or not. Without a task of its own: a
    producer may have several of these."""

    __slots__ = ("_acknowledgement", "_answer", "_wait", "response")

    def __init__(self, acknowledgement: Acknowledgement, answer: Callable[[], Any]):
        self._acknowledgement = acknowledgement
        self._answer = answer
        self._wait: Wait | None = None
        self.response: asyncio.Future[Any] = acknowledgement.loop.create_future()
        self.response.add_done_callback(self._leave)
        self._look()

    def _look(self, _: object = None) -> None:
        if self.response.done():
            return
        acknowledgement = self._acknowledgement
        if offsets := turn(acknowledgement.look()):
            self._wait = Wait.until_committed(offsets, acknowledgement.left_s, acknowledgement.loop)
            self._wait.done.add_done_callback(self._look)
        else:
            self.response.set_result(self._answer())

    def _leave(self, _: object) -> None:
        """Also runs if the connection closed and the response was cancelled."""
        if self._wait is not None:
            self._wait.finish()
