"""Tasks of the background are ended by their owner, who tells of their faults; work that has begun comes to its end."""

import asyncio
import contextlib

import pytest

from harness.patience import stretched
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


def test_a_task_whose_own_time_out_has_just_run_out_ends() -> None:
    async def waits_with_time_outs() -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()

    async def scenario() -> None:
        task = asyncio.ensure_future(waits_with_time_outs())
        while not task.cancelling():  # by the time-out, which the task has not heard of
            await asyncio.sleep(0)
        async with asyncio.timeout(stretched()):
            await ended(task)
        assert task.cancelled()

    asyncio.run(scenario())


def test_what_a_cancelled_task_does_at_its_end_is_not_interrupted() -> None:
    async def scenario() -> None:
        may_end, has_ended = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await may_end.wait()
                has_ended.set()

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        ending = asyncio.ensure_future(ended(task))
        await asyncio.sleep(0)
        may_end.set()
        await ending
        assert has_ended.is_set()

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
