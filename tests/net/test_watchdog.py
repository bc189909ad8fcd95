"""Turns of a loop that last too long are counted and named, whatever they are; what the machine takes away is not.

The loops are real. The clocks are not: a turn lasts as long as it says.
"""

import asyncio
import functools
import gc
import logging
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from moldau.net.watchdog import LONG_TURN_S, Watchdog

NEW_LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


class Clocks:
    """The wall clock and the loop thread's processor time, both as one says."""

    def __init__(self) -> None:
        self.wall_s = 1000.0
        self.processor_s = 5.0
        self.watchdog = Watchdog(clock=lambda: self.wall_s, processor_clock=lambda: self.processor_s)

    def wait(self, seconds: float = LONG_TURN_S * 1.5) -> None:
        self.wall_s += seconds

    def burn(self, seconds: float = LONG_TURN_S * 1.5) -> None:
        """Use up this much processor time."""
        self.wall_s += seconds
        self.processor_s += seconds

    def turn(self, wall_s: float, processor_s: float) -> None:
        began = self.wall_s
        if began > self.watchdog.mark_due_at:
            self.watchdog.mark(began)
        self.wall_s += wall_s
        self.processor_s += processor_s
        self.watchdog.ended(began, self.wall_s, self.turn)


Scenario = Callable[[asyncio.AbstractEventLoop, Clocks], Awaitable[None]]


def watched(new_loop: Callable[[], asyncio.AbstractEventLoop], scenario: Scenario) -> Watchdog:
    """The watchdog of a loop on which `scenario` was run."""
    loop, clocks = new_loop(), Clocks()

    async def run() -> None:
        clocks.watchdog.watch(loop)
        await asyncio.sleep(0)  # this task's first step was not timed
        await scenario(loop, clocks)

    try:
        loop.run_until_complete(run())
    finally:
        clocks.watchdog.rest()
        loop.close()
    return clocks.watchdog


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "moldau.net.watchdog"]


async def a_long_step(clocks: Clocks) -> None:
    await asyncio.sleep(0)
    clocks.burn()


@NEW_LOOPS
def test_every_kind_of_callback_is_timed_and_named(
    new_loop: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("moldau.net.watchdog.LINE_S", 0)

    async def scenario(loop: asyncio.AbstractEventLoop, clocks: Clocks) -> None:
        ran: list[str] = []

        def noted(name: str) -> None:
            clocks.burn()
            ran.append(name)

        def at_a_time() -> None:
            noted("call_at")

        await asyncio.ensure_future(a_long_step(clocks))
        loop.call_soon(noted, "call_soon")
        loop.call_later(0.001, functools.partial(noted, "call_later"))
        loop.call_soon_threadsafe(noted, "call_soon_threadsafe")
        loop.call_at(loop.time() + 0.002, at_a_time)
        while len(ran) < 4:  # in an order that depends on how long each was held up
            await asyncio.sleep(0)

    watchdog = watched(new_loop, scenario)
    assert watchdog.long_turns == 5
    assert watchdog.longest_ms >= LONG_TURN_S * 1000
    said = lines(caplog)
    assert len(said) == 5
    assert "by a_long_step" in said[0]
    assert len([line for line in said if "noted;" in line]) == 3
    assert len([line for line in said if "at_a_time;" in line]) == 1


@NEW_LOOPS
def test_many_short_turns_are_none_that_is_long(new_loop: Callable[[], asyncio.AbstractEventLoop]):
    async def scenario(loop: asyncio.AbstractEventLoop, clocks: Clocks) -> None:
        for _ in range(8):
            loop.call_soon(clocks.burn, LONG_TURN_S / 4)
        for _ in range(4):
            await asyncio.sleep(0)

    assert watched(new_loop, scenario).long_turns == 0


@NEW_LOOPS
def test_a_turn_that_waits_for_a_processor_or_a_disk_is_not_counted(new_loop: Callable[[], asyncio.AbstractEventLoop]):
    async def scenario(loop: asyncio.AbstractEventLoop, clocks: Clocks) -> None:
        loop.call_soon(clocks.wait)
        await asyncio.sleep(0)

    assert watched(new_loop, scenario).long_turns == 0


def test_processor_time_of_the_turns_before_is_not_taken_for_this_one():
    clocks = Clocks()
    for _ in range(1000):
        clocks.turn(wall_s=0.009, processor_s=0.009)
    clocks.turn(wall_s=0.2, processor_s=0.095)
    assert clocks.watchdog.long_turns == 0
    clocks.turn(wall_s=0.2, processor_s=0.12)
    assert clocks.watchdog.long_turns == 1
    assert clocks.watchdog.longest_ms == pytest.approx(120, abs=10)


def test_the_log_gets_a_line_a_second_that_says_how_many_others_there_were(caplog: pytest.LogCaptureFixture):
    clocks = Clocks()
    for _ in range(11):
        clocks.turn(wall_s=0.2, processor_s=0.2)
    assert clocks.watchdog.long_turns == 11
    said = lines(caplog)
    assert len(said) == 3
    assert "200 ms (200 ms of processor time)" in said[0] and "other" not in said[0]
    assert "4 other long turns" in said[1]


@NEW_LOOPS
def test_the_time_of_garbage_collection_is_named(
    new_loop: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
):
    async def scenario(loop: asyncio.AbstractEventLoop, clocks: Clocks) -> None:
        def collecting(phase: str, _: object) -> None:
            if phase == "stop":
                clocks.burn(0.02)

        gc.callbacks.insert(0, collecting)  # before the watchdog looks at the clock
        try:
            loop.call_soon(lambda: [gc.collect(), clocks.burn()])
            await asyncio.sleep(0)
        finally:
            gc.callbacks.remove(collecting)

    with caplog.at_level(logging.WARNING):
        assert watched(new_loop, scenario).long_turns == 1
    assert "garbage collection took 20 ms" in lines(caplog)[0]


def of_a_turn(watchdog: Watchdog, took: dict[str, float], processor: dict[str, float]) -> None:
    """One turn by these clocks: work, a collection of the whole heap, work."""
    began = took["now"]
    watchdog.mark(began)
    for name, seconds in (("work", 0.03125), ("collection", 0.125), ("work", 0.03125)):
        if name == "collection":
            watchdog._collecting("start", {"generation": 2})
        took["now"] += seconds
        processor["now"] += seconds
        if name == "collection":
            watchdog._collecting("stop", {"generation": 2})
    watchdog.ended(began, took["now"], of_a_turn)


@pytest.mark.parametrize("on_another_thread", [False, True])
def test_a_turn_that_is_long_only_for_a_collection_is_told_as_the_collectors(
    on_another_thread: bool, caplog: pytest.LogCaptureFixture
) -> None:
    wall, processor = {"now": 100.0}, {"now": 5.0}
    watchdog = Watchdog(clock=lambda: wall["now"], processor_clock=lambda: processor["now"])
    loop = asyncio.new_event_loop()
    watchdog.watch(loop)
    if on_another_thread:
        watchdog._thread += 1
    with caplog.at_level(logging.WARNING):
        of_a_turn(watchdog, wall, processor)
    watchdog.rest()
    loop.close()
    by = "of_a_turn" if on_another_thread else "Python's garbage collector, during of_a_turn"
    took = "" if on_another_thread else "; garbage collection took 125 ms"
    assert lines(caplog) == [
        f"the event loop was held for 187 ms (187 ms of processor time{took}) by {by}; no client was served meanwhile"
    ]


def test_a_turn_that_would_have_been_long_without_the_collection_keeps_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wall, processor = {"now": 100.0}, {"now": 5.0}
    watchdog = Watchdog(clock=lambda: wall["now"], processor_clock=lambda: processor["now"])
    loop = asyncio.new_event_loop()
    watchdog.watch(loop)
    watchdog.mark(100.0)
    watchdog._collecting("start", {"generation": 2})
    processor["now"] += 0.02
    wall["now"] += 0.5  # it waited for a processor
    watchdog._collecting("stop", {"generation": 2})
    wall["now"] += 0.2
    processor["now"] += 0.68  # since the mark
    with caplog.at_level(logging.WARNING):
        watchdog.ended(100.0, wall["now"], of_a_turn)
    watchdog.rest()
    loop.close()
    (line,) = lines(caplog)
    assert "garbage collection took 20 ms) by of_a_turn" in line


@NEW_LOOPS
def test_after_its_rest_a_loop_is_as_it_was(new_loop: Callable[[], asyncio.AbstractEventLoop]):
    loop, clocks = new_loop(), Clocks()
    watchdog = clocks.watchdog
    watchdog.watch(loop)
    watchdog.rest()
    assert "call_soon" not in vars(loop)
    assert not any(getattr(each, "__self__", None) is watchdog for each in gc.callbacks)
    loop.call_soon(clocks.burn)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert watchdog.long_turns == 0
