"""Parked requests: done when they have their bytes, when their time is over, or when they are woken; and then
forgotten."""

import asyncio

from moldau.replication.waiting import Wait, Waiters
from tests.patience import within


def test_a_wait_is_done_when_enough_bytes_came_at_any_of_its_partitions():
    async def scenario() -> None:
        here, there = Waiters(), Waiters()
        wait = Wait(100, 60, [here, there], asyncio.get_running_loop())
        here.grew(60)
        assert not wait.done.done()
        there.grew(40)
        await within(wait.done)
        assert not here.parked
        assert not there.parked

    asyncio.run(scenario())


def test_a_wait_ends_with_its_time():
    async def scenario() -> None:
        here = Waiters()
        wait = Wait(1, 0.001, [here], asyncio.get_running_loop())
        await within(wait.done)
        assert not here.parked

    asyncio.run(scenario())


def test_whoever_waits_is_woken_when_the_partition_goes():
    async def scenario() -> None:
        here = Waiters()
        waits = [Wait(1, 60, [here], asyncio.get_running_loop()) for _ in range(3)]
        here.wake()
        await within(asyncio.gather(*(wait.done for wait in waits)))
        assert not here.parked

    asyncio.run(scenario())


def test_a_reader_that_goes_away_is_no_longer_parked():
    async def scenario() -> None:
        here = Waiters()
        wait = Wait(1, 60, [here], asyncio.get_running_loop())
        wait.done.cancel()
        await asyncio.sleep(0)
        assert not here.parked
        here.grew(5)

    asyncio.run(scenario())
