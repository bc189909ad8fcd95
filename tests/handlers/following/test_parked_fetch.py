"""A follower's Fetch that waits: when it looks, what ends it, and that nothing of it stays behind."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.handlers.following.follower_sessions import FollowerSession
from moldau.handlers.following.parked_fetch import ParkedFetch
from moldau.names import BrokerId
from moldau.turns import Steps


class Looking:
    """What each look of a request finds, in turn; after these, nothing."""

    def __init__(self, *found: Any, wait_s: float = 3600, reading: Steps[Any] | None = None):
        self.found = list(found)
        self.looked: list[Any] = []
        self.session = FollowerSession(BrokerId(2), 5)
        self.told: list[Any] = []
        self.parked = ParkedFetch(self.session, reading, self._look, lambda: wait_s, lambda: "nothing")
        self.parked.add_done_callback(self.told.append)

    def _look(self, reading: Steps[Any] | None) -> Any:
        self.looked.append(reading)
        self.session.looked()
        found = self.found.pop(0) if self.found else None
        if isinstance(found, Exception):
            raise found
        return found

    async def turn(self, *, is_done: bool) -> None:
        await asyncio.sleep(0)
        assert self.parked.done() is is_done
        assert self.told == ([self.parked] if is_done else [])


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def alone() -> None:
        await scenario()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(alone())


def steps(closed: list[str]) -> Steps[Any]:
    try:
        yield
    finally:
        closed.append("closed")


def test_it_looks_once_for_all_that_happens_in_a_turn() -> None:
    async def scenario() -> None:
        one = Looking(None, "answer")
        await one.turn(is_done=False)
        assert not one.looked
        one.session.wake()
        one.session.wake()
        await one.turn(is_done=False)
        assert one.looked == [None]
        one.session.wake()
        await one.turn(is_done=True)
        assert one.parked.result() == "answer"
        assert one.session.waits is None
        one.session.wake()
        await one.turn(is_done=True)
        assert len(one.looked) == 2

    run(scenario)


def test_what_takes_more_turns_goes_on_by_itself() -> None:
    async def scenario() -> None:
        closed: list[str] = []
        first, second = steps(closed), steps(closed)
        one = Looking(second, "answer", reading=first)
        await one.turn(is_done=False)
        await one.turn(is_done=True)
        assert one.looked == [first, second]
        assert one.parked.result() == "answer"

    run(scenario)


def test_it_looks_when_its_time_is_over() -> None:
    async def scenario() -> None:
        one = Looking("answer", wait_s=0.001)
        while not one.parked.done():
            await asyncio.sleep(0.001)
        assert one.parked.result() == "answer"

    run(scenario)


def test_the_next_request_of_its_session_ends_it_and_what_it_has_not_read_is_left_to_that() -> None:
    async def scenario() -> None:
        closed: list[str] = []
        left = steps(closed)
        next(left)
        one = Looking("answer", reading=left)
        one.session.epoch += 1
        one.session.wake()
        await one.turn(is_done=True)
        assert one.parked.result() == "nothing"
        assert (closed, one.looked) == (["closed"], [])

    run(scenario)


def test_a_session_that_was_woken_while_it_read_is_looked_at_again() -> None:
    async def scenario() -> None:
        one = Looking("answer")
        one.session.wake()
        other = ParkedFetch(one.session, None, lambda _: "other", lambda: 3600, lambda: "nothing")
        await asyncio.sleep(0)
        assert other.result() == "other"
        assert one.session.waits is None

    run(scenario)


def test_a_fault_is_its_result() -> None:
    async def scenario() -> None:
        one = Looking(RuntimeError("a fault"))
        one.session.wake()
        await one.turn(is_done=True)
        with pytest.raises(RuntimeError, match="a fault"):
            one.parked.result()

    run(scenario)


def test_a_connection_that_ends_leaves_nothing() -> None:
    async def scenario() -> None:
        closed: list[str] = []
        left = steps(closed)
        next(left)
        one = Looking("answer", reading=left)
        one.parked.cancel()
        one.parked.cancel()
        await one.turn(is_done=True)
        assert (closed, one.looked, one.session.waits) == (["closed"], [], None)

    run(scenario)


def test_it_may_be_there_before_somebody_waits_for_it() -> None:
    async def scenario() -> None:
        session, told = FollowerSession(BrokerId(2), 5), list[Any]()
        session.wake()
        parked = ParkedFetch(session, None, lambda _: "answer", lambda: 3600, lambda: "nothing")
        await asyncio.sleep(0)
        parked.add_done_callback(told.append)
        assert told == [parked]

    run(scenario)
