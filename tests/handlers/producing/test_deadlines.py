"""Deadlines with one timer: each is noticed in time, and those that were met leave no timer behind."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from harness.patience import within
from moldau.handlers.producing.deadlines import TICK_S, TimingWheel
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.network import Network


class Waiting:
    def __init__(self) -> None:
        self.over_at: float | None = None

    def time_is_over(self) -> None:
        assert self.over_at is None
        self.over_at = asyncio.get_running_loop().time()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(within(scenario()))


async def until(*waiting: Waiting) -> None:
    while any(one.over_at is None for one in waiting):
        await asyncio.sleep(TICK_S / 4)


def test_each_is_noticed_and_never_too_early() -> None:
    async def scenario() -> None:
        deadlines, now_s = TimingWheel(), asyncio.get_running_loop().time()
        seconds = [ticks * TICK_S for ticks in (3, 1, 0, 1.5, 2, -5)]
        waiting = [Waiting() for _ in seconds]
        for one, wait_s in zip(waiting, seconds, strict=True):
            deadlines.add(one, wait_s)
        await until(*waiting)
        for one, wait_s in zip(waiting, seconds, strict=True):
            assert one.over_at is not None and one.over_at >= now_s + wait_s
        assert deadlines._timer is None

    run(scenario)


def test_who_has_left_is_not_called_and_an_empty_wait_has_no_timer() -> None:
    async def scenario() -> None:
        deadlines, now_s = TimingWheel(), asyncio.get_running_loop().time()
        stays, leaves, far = Waiting(), Waiting(), Waiting()
        far_tick = deadlines.add(far, 3600)
        tick = deadlines.add(leaves, TICK_S)
        stays_until = deadlines.add(stays, TICK_S)
        deadlines.remove(leaves, tick)
        deadlines.remove(leaves, tick)
        await until(stays)
        assert leaves.over_at is None
        timer = deadlines._timer
        assert timer is not None and timer.when() > now_s + 3000
        deadlines.remove(far, far_tick)
        assert deadlines._timer is None and timer.cancelled()
        deadlines.remove(stays, stays_until)

    run(scenario)


def test_one_may_wait_again_when_his_time_is_over() -> None:
    async def scenario() -> None:
        deadlines, second = TimingWheel(), Waiting()

        class First:
            def time_is_over(self) -> None:
                deadlines.add(second, TICK_S)

        deadlines.add(First(), 0)
        await until(second)

    run(scenario)


def test_a_timer_that_is_exact_is_not_set_again_for_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In simulation it is: 29 times 0.02, divided by 0.02, is a little less than 29."""
    looks, tick = 0, TimingWheel._tick

    def counted(self: TimingWheel) -> None:
        nonlocal looks
        looks += 1
        assert looks <= 100, "the time stands still"
        tick(self)

    async def scenario() -> None:
        deadlines = TimingWheel()
        waiting = [Waiting() for _ in range(100)]
        for number, one in enumerate(waiting):
            deadlines.add(one, number * TICK_S)
        await asyncio.sleep(101 * TICK_S)
        assert all(one.over_at is not None for one in waiting)

    monkeypatch.setattr(TimingWheel, "_tick", counted)
    loop = SimulatedLoop(Network(random.Random(1)))
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()
