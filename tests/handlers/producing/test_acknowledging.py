"""The answer to a write with acks=all: when it is there, and that nothing of it stays behind."""

import asyncio
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.producing.acknowledging import BatchBehind, PendingAnswer
from moldau.handlers.producing.deadlines import Deadline, TimingWheel
from moldau.log.appended import Appended
from moldau.replication.waiting import Waiters

RESULT = (0, 0, 0, -1, 0)
TIMEOUT_MS = 1000


class Late(TimingWheel):
    """Deadlines whose time is over when the test says so."""

    def __init__(self) -> None:
        self.waiting: dict[Deadline, float] = {}

    def add(self, waiting: Deadline, seconds: float) -> int:
        self.waiting[waiting] = seconds
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


def pending(deadlines: Late, *replicas: Replica, timeout_ms: int = TIMEOUT_MS) -> PendingAnswer:
    """One batch in each, at offset 4."""
    appended = Appended(4, 4, -1, 0, ErrorCode.NONE, False, 0)
    behind = [BatchBehind(at, replica, appended) for at, replica in enumerate(replicas)]  # type: ignore[arg-type]
    results: list[Any] = [RESULT for _ in replicas]
    return PendingAnswer(behind, results, timeout_ms, deadlines, lambda: [error for _, error, *_ in results])


def test_it_is_there_when_every_partition_is_committed() -> None:
    late, one, two, told = Late(), Replica(), Replica(), list[Any]()
    answer = pending(late, one, two)
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
    late, replica = Late(), Replica()
    answer = pending(late, replica)
    assert list(late.waiting.values()) == [1.0]
    late.are_over()
    assert answer.result() == [ErrorCode.REQUEST_TIMED_OUT]
    assert not replica.waiters.until_committed


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_a_timeout_it_is_there_at_once(timeout_ms: int) -> None:
    late, replica = Late(), Replica()
    answer = pending(late, replica, timeout_ms=timeout_ms)
    assert answer.done() and answer.result() == [ErrorCode.REQUEST_TIMED_OUT]
    assert not (replica.waiters.until_committed or late.waiting)


def test_it_hears_of_another_leader_once_that_is_complete() -> None:
    async def scenario() -> None:
        one, two = Replica(), Replica()
        answer = pending(Late(), one, two)
        one.waiters.wake()
        one.is_gone = True
        assert not answer.done()
        await asyncio.sleep(0)
        assert not answer.done() and not one.waiters.until_committed
        two.reaches(5)
        assert answer.result() == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]

    asyncio.run(scenario())


def test_what_nobody_waits_for_any_more_leaves_its_partitions() -> None:
    async def scenario() -> None:
        late, replica = Late(), Replica()
        answer = pending(late, replica)
        replica.waiters.wake()
        answer.cancel()
        assert not replica.waiters.until_committed and not late.waiting
        await asyncio.sleep(0)
        answer.count_down(1)
        assert not replica.waiters.until_committed and not late.waiting

    asyncio.run(scenario())


def test_it_may_be_there_before_somebody_waits_for_it() -> None:
    replica, told = Replica(), list[Any]()
    replica.is_gone = True
    answer = pending(Late(), replica)
    answer.add_done_callback(told.append)
    assert answer.done() and told == [answer]
