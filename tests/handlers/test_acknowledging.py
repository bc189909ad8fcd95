"""The answer to a write with acks=all: when it is there, and that nothing of it stays behind."""

import asyncio
from typing import Any

from moldau.errors import ErrorCode
from moldau.handlers.acknowledging import Acknowledgement, BatchBehind, PendingAnswer
from moldau.handlers.deadlines import Deadline, Deadlines
from moldau.log.appended import Appended
from moldau.replication.waiting import Waiters

RESULT = (0, 0, 0, -1, 0)
TIMEOUT_MS = 1000


class Loop:
    """A loop whose time is set, and which makes a turn when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.soon: list[Any] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, *call: Any) -> None:
        self.soon.append(call)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for call, *arguments in soon:
            call(*arguments)


class Late(Deadlines):
    """Deadlines whose time is over when the test says so."""

    def __init__(self) -> None:
        self.waiting: dict[Deadline, float] = {}

    def add(self, waiting: Deadline, deadline_s: float) -> int:
        self.waiting[waiting] = deadline_s
        return 5

    def remove(self, waiting: Deadline, tick: int) -> None:
        assert tick == 5
        self.waiting.pop(waiting, None)

    def are_over(self) -> None:
        waiting, self.waiting = self.waiting, {}
        for one in waiting:
            one.time_is_over()


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


def pending(loop: Loop, deadlines: Late, *replicas: Replica) -> PendingAnswer:
    """One batch in each, at offset 4."""
    appended = Appended(4, 4, -1, 0, ErrorCode.NONE, False, 0)
    behind = [BatchBehind(at, replica, appended) for at, replica in enumerate(replicas)]  # type: ignore[arg-type]
    results: list[Any] = [RESULT for _ in replicas]

    async def made() -> PendingAnswer:
        acknowledgement = Acknowledgement(behind, results, TIMEOUT_MS)
        acknowledgement.loop = loop  # type: ignore[assignment]
        acknowledgement.deadline_s = TIMEOUT_MS / 1000
        return PendingAnswer(acknowledgement, deadlines, lambda: [error for _, error, *_ in results])

    return asyncio.run(made())


def test_it_is_there_when_every_partition_is_committed() -> None:
    late, one, two, told = Late(), Replica(), Replica(), list[Any]()
    answer = pending(Loop(), late, one, two)
    answer.add_done_callback(told.append)
    one.reaches(5)
    two.reaches(4)
    assert not answer.done()
    two.reaches(5)
    assert answer.done() and answer.result() == [0, 0]
    assert told == [answer]
    assert not late.waiting
    assert not (one.waiters.until_committed or two.waiters.until_committed)


def test_it_is_there_when_its_time_is_over() -> None:
    loop, late, replica = Loop(), Late(), Replica()
    answer = pending(loop, late, replica)
    assert list(late.waiting.values()) == [1.0]
    loop.now_s = 1.0
    late.are_over()
    assert answer.result() == [ErrorCode.REQUEST_TIMED_OUT]
    assert not replica.waiters.until_committed


def test_it_hears_of_another_leader_once_that_is_complete() -> None:
    loop, one, two = Loop(), Replica(), Replica()
    answer = pending(loop, Late(), one, two)
    one.waiters.wake()
    one.is_gone = True
    assert not answer.done()
    loop.turn()
    assert not answer.done() and not one.waiters.until_committed
    two.reaches(5)
    assert answer.result() == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]


def test_what_nobody_waits_for_any_more_leaves_its_partitions() -> None:
    loop, late, replica = Loop(), Late(), Replica()
    answer = pending(loop, late, replica)
    replica.waiters.wake()
    answer.cancel()
    assert not replica.waiters.until_committed and not late.waiting
    loop.turn()
    answer.count_down(1)
    assert not replica.waiters.until_committed and not late.waiting


def test_it_may_be_there_before_somebody_waits_for_it() -> None:
    replica, told = Replica(), list[Any]()
    replica.is_gone = True
    answer = pending(Loop(), Late(), replica)
    answer.add_done_callback(told.append)
    assert answer.done() and told == [answer]
