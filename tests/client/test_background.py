"""A signal may end a call of a synchronous client anywhere: nothing is left behind, and nothing is said."""

import asyncio
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from harness.patience import stretched
from moldau.client.background import LoopThread
from moldau.client.faces import Face, blocking
from moldau.client.failures import ClientClosed


class _Core:
    async def doubled(self, number: int) -> int:
        return 2 * number


class _Client(Face[_Core]):
    doubled = blocking(_Core.doubled)


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("moldau-test")
    thread.start()
    yield thread
    thread.stop()


def _interrupted_at(number: int, call: Callable[[], object]) -> bool:
    """Make the call, and raise KeyboardInterrupt where the client's number-th function begins: CPython runs the
    handlers of signals there. Whether it called so many."""
    left = number

    def trace(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event == "call" and frame.f_code.co_filename.endswith(("client/background.py", "client/faces.py")):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("serving", [False, True])
def test_a_signal_in_any_function_leaves_no_coroutine_behind(thread: LoopThread, serving: bool) -> None:
    core = _Core()
    client = _Client(core, thread)
    calls = [lambda: client.doubled(1), lambda: thread.run(core.doubled, 1, serving=serving)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for call in calls:
            number = 1
            while _interrupted_at(number, call):
                number += 1
            assert number > 3
        assert thread.run(core.doubled, 2) == 4  # the loop goes on
    assert [str(warning.message) for warning in said] == []


def test_what_the_work_raises_is_raised_in_the_calling_thread(thread: LoopThread) -> None:
    async def fails() -> None:
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        thread.run(fails)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'number'"):
        _Client(_Core(), thread).doubled()  # type: ignore[call-arg]


def test_work_that_is_cancelled_from_inside_ends_the_call(thread: LoopThread) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ClientClosed):
        thread.run(cancelled)


def test_a_call_that_is_interrupted_cancels_its_work(thread: LoopThread) -> None:
    began, ended = threading.Event(), threading.Event()

    async def waits() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "result":
            assert began.wait(stretched(10))
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.run(waits)
    finally:
        sys.settrace(before)
    assert ended.wait(stretched(10))
