"""The simulated loop's time: it is what timers say, to the last bit."""

import asyncio
import itertools
import math
import random
from collections.abc import Iterator

import pytest

from moldau.simulation.loop import Deadlock, SimulatedLoop
from moldau.simulation.network import Network


@pytest.fixture
def loop() -> Iterator[SimulatedLoop]:
    made = SimulatedLoop(Network(random.Random(1)))
    yield made
    made.close()


def ran_at(loop: SimulatedLoop, due_s: list[float]) -> list[tuple[float, float]]:
    """(due, time at which it ran) of a timer for each of these times, in the order in which they ran."""
    ran: list[tuple[float, float]] = []

    def note(due: float) -> None:
        ran.append((due, loop.time()))

    for due in due_s:
        loop.call_at(due, note, due)
    loop.call_at(max(due_s) + 1, loop.stop)
    loop.run_forever()
    return ran


def test_every_timer_runs_at_exactly_its_time(loop: SimulatedLoop):
    chance = random.Random(0)
    due_s = [10 ** chance.uniform(-6, 6) for _ in range(50)]
    pairs = itertools.pairwise(sorted(due_s))
    assert any(now + (due - now) != due for now, due in pairs), "some times are missed if pauses are added up"
    assert ran_at(loop, due_s) == [(due, due) for due in sorted(due_s)]


def test_timers_closer_than_a_nanosecond_run_one_after_the_other(loop: SimulatedLoop):
    second = math.nextafter(86_400.0, math.inf)
    third = math.nextafter(second, math.inf)
    assert ran_at(loop, [third, 86_400.0, second]) == [(due, due) for due in (86_400.0, second, third)]


def test_a_wait_that_is_longer_than_a_day_ends_at_its_time_too(loop: SimulatedLoop):
    """asyncio waits for at most a day at a time."""
    assert ran_at(loop, [1e6 / 3]) == [(1e6 / 3, 1e6 / 3)]


def test_a_cancelled_timer_does_not_stop_the_clock(loop: SimulatedLoop):
    cancelled = loop.call_at(1.5, loop.stop)
    loop.call_soon(cancelled.cancel)
    assert ran_at(loop, [2.5]) == [(2.5, 2.5)]


def test_a_timer_that_falls_due_during_a_slow_turn_runs_after_it(loop: SimulatedLoop):
    loop.slow(lambda: 0.5)
    assert ran_at(loop, [1.0, 1.2]) == [(1.0, 1.5), (1.2, 1.5)]


def test_waiting_for_nothing_is_a_deadlock(loop: SimulatedLoop):
    with pytest.raises(Deadlock):
        loop.run_until_complete(asyncio.Event().wait())
