"""An answer in turns: at once if it can be, else beside the others, and never with more than its share of the
executor."""

import asyncio
import threading
from typing import Any

from harness.patience import stretched
from moldau.handlers.fetching.places import AT_ONCE, LookUps, Places
from moldau.runtime import Runtime, Step


def steps(*given: Step, answer: Any = "answered") -> LookUps[Any]:
    """An answer that takes these steps and returns what came back from them."""
    came_back = []
    for step in given:
        came_back.append((yield step))
    return answer, came_back


def test_what_needs_no_step_is_answered_at_once():
    async def scenario() -> None:
        assert Places(Runtime()).carry_out(steps()) == ("answered", [])

    asyncio.run(scenario())


def test_steps_come_back_with_what_they_did_and_turns_with_nothing():
    async def scenario() -> None:
        answer = await Places(Runtime()).carry_out(steps(lambda: 7, None, lambda: 8))
        assert answer == ("answered", [7, None, 8])

    asyncio.run(scenario())


def test_what_a_step_raises_is_raised_where_it_was_asked_for():
    def careful() -> LookUps[str]:
        def fail() -> None:
            raise OSError("a read failed")

        try:
            yield fail
        except OSError as error:
            return str(error)
        return "nothing"

    async def scenario() -> None:
        assert await Places(Runtime()).carry_out(careful()) == "a read failed"

    asyncio.run(scenario())


def test_others_have_their_turn_between_two_turns():
    order = []

    def noting(name: str) -> LookUps[None]:
        for number in range(3):
            order.append((name, number))
            yield None

    async def scenario() -> None:
        places = Places(Runtime())
        await asyncio.gather(*[places.carry_out(noting(name)) for name in ("a", "b")])

    asyncio.run(scenario())
    assert order[:4] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


class Held:
    """Work that takes until it is let go; `begun` is how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self._over = threading.Event()

    def __call__(self) -> None:
        self.begun += 1
        assert self._over.wait(stretched(60))

    def let_go(self) -> None:
        self._over.set()

    async def has_begun(self, times: int) -> None:
        while self.begun < times:
            await asyncio.sleep(0.001)


def test_however_many_ask_the_executor_has_threads_left_for_others():
    async def scenario() -> None:
        work, runtime = Held(), Runtime()
        places = Places(runtime)
        answers = [asyncio.ensure_future(places.carry_out(steps(work, work))) for _ in range(20)]
        await work.has_begun(AT_ONCE)
        for _ in range(5):
            await runtime.run(lambda: None)
        assert work.begun == AT_ONCE
        work.let_go()
        await asyncio.gather(*answers)
        assert work.begun == 40

    asyncio.run(scenario())


def test_a_client_that_leaves_keeps_its_place_until_its_work_has_ended():
    async def scenario() -> None:
        work, runtime = Held(), Runtime()
        places = Places(runtime)
        for _ in range(3):
            leaving = [asyncio.ensure_future(places.carry_out(steps(work))) for _ in range(AT_ONCE)]
            await work.has_begun(AT_ONCE)
            await asyncio.sleep(0)
            for task in leaving:
                task.cancel()
            await asyncio.wait(leaving)
        await runtime.run(lambda: None)
        assert work.begun == AT_ONCE
        work.let_go()
        assert await places.carry_out(steps(lambda: 1)) == ("answered", [1])

    asyncio.run(scenario())
