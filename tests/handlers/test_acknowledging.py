"""The answer to a write with acks=all: when it is there, and that nothing of it stays behind."""

import asyncio
from typing import Any

from moldau.errors import ErrorCode
from moldau.handlers.acknowledging import Acknowledgement, BatchBehind, PendingAnswer
from moldau.log.appended import Appended
from moldau.replication.waiting import Waiters

RESULT = (0, 0, 0, -1, 0)
TIMEOUT_MS = 1000


class Timer:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """A loop whose time is set, and whose timers fire when the test calls them."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.soon: list[Any] = []
        self.timers: list[tuple[float, Any, Timer]] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, *call: Any) -> None:
        self.soon.append(call)

    def call_later(self, seconds: float, call: Any) -> Timer:
        self.timers.append((seconds, call, Timer()))
        return self.timers[-1][2]

    def fire(self, now_s: float) -> None:
        self.now_s = now_s
        self.timers.pop()[1]()

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for call, *arguments in soon:
            call(*arguments)


class Replica:
    """What an acknowledgement asks of one."""

    def __init__(self) -> None:
        self.waiters = Waiters()
        self.high_watermark = 0
        self.is_gone = False

    def acknowledged(self, appended: Appended) -> ErrorCode | None:
        if self.is_gone:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return None if self.high_watermark <= appended.last_offset else ErrorCode.NONE

    def reaches(self, offset: int) -> None:
        self.high_watermark = offset
        self.waiters.moved(None, offset)


def pending(loop: Loop, *replicas: Replica) -> PendingAnswer:
    """One batch in each, at offset 4."""
    appended = Appended(4, 4, -1, 0, ErrorCode.NONE, False, 0)
    behind = [BatchBehind(at, replica, appended) for at, replica in enumerate(replicas)]  # type: ignore[arg-type]
    results: list[Any] = [RESULT for _ in replicas]

    async def made() -> PendingAnswer:
        acknowledgement = Acknowledgement(behind, results, TIMEOUT_MS)
        acknowledgement.loop = loop  # type: ignore[assignment]
        acknowledgement._deadline = TIMEOUT_MS / 1000
        return PendingAnswer(acknowledgement, lambda: [error for _, error, *_ in results])

    return asyncio.run(made())


def test_it_is_there_when_every_partition_is_committed() -> None:
    loop, one, two, told = Loop(), Replica(), Replica(), list[Any]()
    answer = pending(loop, one, two)
    answer.add_done_callback(told.append)
    one.reaches(5)
    two.reaches(4)
    assert not answer.done()
    two.reaches(5)
    assert answer.done() and answer.result() == [0, 0]
    assert told == [answer]
    assert loop.timers[0][2].is_cancelled
    assert not (one.waiters.until_committed or two.waiters.until_committed)


def test_an_early_timer_is_set_again() -> None:
    loop, replica = Loop(), Replica()
    answer = pending(loop, replica)
    loop.fire(0.9996)
    assert not answer.done() and 0 < loop.timers[0][0] < 0.001
    loop.fire(1.0)
    assert answer.result() == [ErrorCode.REQUEST_TIMED_OUT]
    assert not replica.waiters.until_committed


def test_it_hears_of_another_leader_once_that_is_complete() -> None:
    loop, one, two = Loop(), Replica(), Replica()
    answer = pending(loop, one, two)
    one.waiters.wake()
    one.is_gone = True
    assert not answer.done()
    loop.turn()
    assert not answer.done() and not one.waiters.until_committed
    two.reaches(5)
    assert answer.result() == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]


def test_what_nobody_waits_for_any_more_leaves_its_partitions() -> None:
    loop, replica = Loop(), Replica()
    answer = pending(loop, replica)
    replica.waiters.wake()
    answer.cancel()
    assert not replica.waiters.until_committed
    assert loop.timers[0][2].is_cancelled
    loop.turn()
    answer.count_down(1)
    assert not replica.waiters.until_committed
    assert len(loop.timers) == 1


def test_it_may_be_there_before_somebody_waits_for_it() -> None:
    loop, replica, told = Loop(), Replica(), list[Any]()
    replica.is_gone = True
    answer = pending(loop, replica)
    answer.add_done_callback(told.append)
    assert answer.done() and told == [answer]
