"""Tasks of the background are ended by their owner, who tells of their faults; work that has begun comes to its end."""

import asyncio

import pytest

from moldau.errors import ConfigError
from moldau.tasks import ended, to_its_end


async def for_ever(said: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        said.append("end")


async def failing(why: Exception) -> None:
    raise why


def test_tasks_are_cancelled_and_their_ends_are_waited_for() -> None:
    async def scenario() -> None:
        said: list[str] = []
        tasks = [asyncio.ensure_future(for_ever(said)) for _ in range(2)]
        await asyncio.sleep(0)
        await ended(tasks[0], None, tasks[1])
        assert said == ["end", "end"] and all(task.cancelled() for task in tasks)
        await ended(tasks[0])
        await ended()

    asyncio.run(scenario())


def test_a_fault_that_ended_a_task_is_logged_and_an_error_that_is_told_elsewhere_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        tasks = [asyncio.ensure_future(failing(why)) for why in (RuntimeError("a fault"), ConfigError("a mistake"))]
        await asyncio.wait(tasks)
        await ended(*tasks)

    asyncio.run(scenario())
    assert caplog.messages == ["internal error: failing had ended"] and "a fault" in caplog.text


def test_a_caller_that_is_cancelled_while_tasks_end_is_cancelled() -> None:
    async def scenario() -> None:
        said: list[str] = []
        task = asyncio.ensure_future(for_ever(said))
        await asyncio.sleep(0)
        ending = asyncio.ensure_future(ended(task))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending

    asyncio.run(scenario())


def test_work_that_has_begun_comes_to_its_end_before_its_caller_is_cancelled() -> None:
    async def scenario() -> None:
        may_end, has_ended = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            await may_end.wait()
            has_ended.set()

        caller = asyncio.ensure_future(to_its_end(work()))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.sleep(0)
        assert not caller.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert has_ended.is_set()

    asyncio.run(scenario())
