"""Tasks: work that must come to its end although its caller is cancelled, and tasks of the background, whose owner ends
them when it stops.

Nobody awaits a task of the background while it works, so nobody hears of an exception that has ended it. `ended` does,
and logs it. A task that must go on whatever happens catches its faults itself, and logs them at once.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

from moldau.errors import MoldauError

T = TypeVar("T")
logger = logging.getLogger(__name__)
LOOK_AGAIN_S = 0.01
"""How soon a task that was being cancelled already is looked at again."""


async def ended(*tasks: "asyncio.Task[Any] | None") -> None:
    """Cancel these tasks (None: there is none), and wait for what they do at their end. A fault that has ended one of
    them is logged. The caller's own cancellation is raised."""
    working = [task for task in tasks if task is not None]
    while left := [task for task in working if not task.done()]:
        # A task that is being cancelled already does something at its end, which a second time would interrupt; or a
        # time-out of its own has just run out, which it will take back, and go on.
        others = [task for task in left if not task.cancelling()]
        for task in others:
            task.cancel()
        await asyncio.wait(left, timeout=None if len(others) == len(left) else LOOK_AGAIN_S)
    for task in working:
        fault = None if task.cancelled() else task.exception()
        if isinstance(fault, Exception) and not isinstance(fault, MoldauError):
            name = getattr(task.get_coro(), "__qualname__", task.get_name())
            logger.error("internal error: %s had ended", name, exc_info=fault)


async def to_its_end(work: Awaitable[T]) -> T:
    """Await work that is not cancelled when its caller is: the caller's cancellation is raised once the work has
    ended, whatever came of it."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # nobody asks for it any more
        raise
