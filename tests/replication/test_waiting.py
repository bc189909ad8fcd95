"""Parked requests: done when nothing is missing any more, when their time is over, or when they are woken; and then
forgotten."""

import asyncio
import random
from collections.abc import Callable

import pytest

from harness.patience import within
from moldau.replication.waiting import Wait, Waiters


def for_bytes(here: Waiters, wait_s: float = 60) -> Wait:
    return Wait.for_bytes(1, wait_s, [here], asyncio.get_running_loop())


def until_committed(here: Waiters, wait_s: float = 60, offset: int = 5) -> Wait:
    return Wait.until_committed([(here, offset)], wait_s, asyncio.get_running_loop())


def until_deleted(here: Waiters, wait_s: float = 60) -> Wait:
    return Wait.until_deleted(wait_s, [here], asyncio.get_running_loop())


PARK = pytest.mark.parametrize("park", [for_bytes, until_committed, until_deleted])
Park = Callable[..., Wait]


def test_a_wait_is_done_when_enough_bytes_came_at_any_of_its_partitions() -> None:
    async def scenario() -> None:
        here, there = Waiters(), Waiters()
        wait = Wait.for_bytes(100, 60, [here, there], asyncio.get_running_loop())
        here.moved(60, 1)
        assert not wait.done.done()
        there.moved(40, 1)
        await within(wait.done)
        assert not here.for_bytes
        assert not there.for_bytes

    asyncio.run(scenario())


def test_a_wait_for_offsets_is_done_when_the_watermark_of_each_partition_is_there() -> None:
    async def scenario() -> None:
        here, there = Waiters(), Waiters()
        wait = Wait.until_committed([(here, 5), (there, 8)], 60, asyncio.get_running_loop())
        here.moved(1000, 4)
        there.moved(1000, 9)
        there.moved(1000, 10)
        assert not wait.done.done(), "one partition cannot count twice"
        here.moved(1, 5)
        await within(wait.done)
        assert not here.until_committed
        assert not there.until_committed

    asyncio.run(scenario())


def test_each_move_of_the_watermark_completes_those_it_reached_and_no_others() -> None:
    """In whatever order they came, and if several wait for one offset."""

    async def scenario() -> None:
        here, chance = Waiters(), random.Random(1)
        offsets = [chance.randrange(1, 40) for _ in range(200)]
        waits = [(offset, until_committed(here, offset=offset)) for offset in offsets]
        left = waits[100:150]
        for _, wait in left:
            wait.done.cancel()
        await asyncio.sleep(0)
        waits = [one for one in waits if one not in left]
        assert len(here.until_committed) == len(waits)
        for watermark in (0, 1, 2, 13, 13, 39):
            here.moved(1, watermark)
            assert all(wait.done.done() == (offset <= watermark) for offset, wait in waits)
            await asyncio.sleep(0)
            assert len(here.until_committed) == sum(offset > watermark for offset, _ in waits)

    asyncio.run(scenario())


@PARK
def test_a_wait_ends_with_its_time(park: Park) -> None:
    async def scenario() -> None:
        here = Waiters()
        await within(park(here, 0.001).done)
        assert not here.for_bytes
        assert not here.until_committed

    asyncio.run(scenario())


@PARK
def test_all_that_wait_are_woken_when_the_partition_goes(park: Park) -> None:
    async def scenario() -> None:
        here = Waiters()
        waits = [park(here) for _ in range(3)]
        here.wake()
        await within(asyncio.gather(*(wait.done for wait in waits)))
        assert not here.for_bytes
        assert not here.until_committed

    asyncio.run(scenario())


@PARK
def test_a_client_that_goes_away_is_no_longer_parked(park: Park) -> None:
    async def scenario() -> None:
        here = Waiters()
        wait = park(here)
        wait.done.cancel()
        await asyncio.sleep(0)
        assert not here.for_bytes
        assert not here.until_committed
        here.moved(5, 5)

    asyncio.run(scenario())
