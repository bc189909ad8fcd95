"""Work on the loop in turns: few elements cost nothing, many leave room for others, and one piece of work at a time."""

import asyncio
import gc
import threading
from collections.abc import Callable

import pytest

from moldau.runtime import Runtime
from moldau.turns import ELEMENTS, Steps, Turns, in_turns, turn


def counted(elements: int, result: object = "done", note: Callable[[int], None] = lambda _: None) -> Steps[object]:
    for number in range(elements):
        note(number)
        yield
    return result


def test_a_few_elements_are_done_in_one_turn_without_a_loop() -> None:
    assert turn(counted(ELEMENTS - 1)) == "done"
    assert turn(counted(0)) == "done"


def test_what_is_no_steps_is_a_result_already() -> None:
    assert turn("done") == "done"


def test_more_elements_than_a_turn_has_are_left() -> None:
    seen: list[int] = []
    work = counted(ELEMENTS + 1, note=seen.append)
    assert turn(work) is work
    assert len(seen) == ELEMENTS
    assert turn(work) == "done"


def test_steps_that_end_in_steps_share_the_turn() -> None:
    seen: list[int] = []
    second = counted(ELEMENTS, note=seen.append)
    left = turn(counted(ELEMENTS // 2, second))
    assert left is second
    assert len(seen) == ELEMENTS - ELEMENTS // 2
    assert turn(left) == "done"


def test_others_have_their_turn_between_the_shares_of_wide_work() -> None:
    seen: list[int] = []

    async def scene() -> int:
        others = 0

        async def other() -> None:
            nonlocal others
            while len(seen) < 10 * ELEMENTS:
                others += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(other())
        assert await Turns(Runtime()).run(counted(10 * ELEMENTS, note=seen.append)) == "done"
        await beside
        return others

    assert asyncio.run(scene()) >= 9


def test_wide_work_is_done_one_after_the_other_in_order_of_arrival() -> None:
    order: list[str] = []

    async def scene() -> None:
        turns = Turns(Runtime())

        async def work(name: str) -> None:
            await turns.run(counted(3 * ELEMENTS, note=lambda _: order.append(name)))

        await asyncio.gather(work("a"), work("b"), work("c"))

    asyncio.run(scene())
    at_once = [order[n * ELEMENTS] for n in range(3)]
    assert at_once == ["a", "b", "c"], "each does its first turn when it comes"
    assert order[3 * ELEMENTS :] == ["a"] * 2 * ELEMENTS + ["b"] * 2 * ELEMENTS + ["c"] * 2 * ELEMENTS


def test_work_off_the_loop_is_waited_for_even_if_nobody_wants_it_any_more() -> None:
    async def scene() -> None:
        turns, began, go_on = Turns(Runtime()), threading.Event(), threading.Event()

        def work() -> None:
            began.set()
            go_on.wait()

        async def wide() -> None:
            async with turns:
                await turns.off_loop(work)

        first = asyncio.ensure_future(wide())
        await asyncio.get_running_loop().run_in_executor(None, began.wait)
        first.cancel()
        second = asyncio.ensure_future(turns.run(counted(2 * ELEMENTS)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not first.done()
        assert not second.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await second == "done"

    asyncio.run(scene())


def test_failed_work_makes_way_for_the_next() -> None:
    def failing() -> Steps[None]:
        yield from counted(2 * ELEMENTS)
        raise ValueError("as asked for")

    async def scene() -> None:
        turns = Turns(Runtime())
        with pytest.raises(ValueError, match="as asked for"):
            await turns.run(failing())
        assert await turns.run(counted(2 * ELEMENTS)) == "done"

    asyncio.run(scene())


def test_cycles_are_not_looked_for_while_wide_work_is_done_by_any_broker_of_the_process() -> None:
    async def scene() -> None:
        one, other = Turns(Runtime()), Turns(Runtime())
        assert gc.isenabled()
        async with one:
            assert not gc.isenabled()
            await other.__aenter__()
        assert not gc.isenabled()
        await other.__aexit__()
        assert gc.isenabled()

    asyncio.run(scene())


def test_a_loop_that_awaits_gives_others_a_turn_as_well() -> None:
    async def scene() -> None:
        others = 0

        async def other() -> None:
            nonlocal others
            while True:
                others += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(other())
        assert [number async for number in in_turns(range(95), 10)] == list(range(95))
        beside.cancel()
        assert others == 9

    asyncio.run(scene())
