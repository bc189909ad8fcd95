"""The event loop that an asyncio client belongs to: the one on which it is started, or first used.

`of_one_loop` makes every public coroutine method of a class look first: a call from another loop is refused. Served
there it would wait for ever, because what wakes it belongs to the loop of the client.
"""

import asyncio
import functools
import inspect
import logging
import time
import types
from collections.abc import Callable
from typing import Any, TypeVar

from moldau.errors import WrongLoop
from moldau.monotonic import monotonic_s

logger = logging.getLogger(__name__)

FROZEN_S = 60.0
NOT_STARTED = "was not started: use it in `async with`, or await its start()"
T = TypeVar("T")


class OwnLoop:
    """The loop of one client; `client` names it in a sentence."""

    def __init__(self, client: str):
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None

    def check(self) -> None:
        """Raise `WrongLoop` unless this is the client's loop; the first one that is running here becomes it."""
        running = asyncio._get_running_loop()
        if running is self._loop and running is not None:
            return
        if self._loop is None and running is not None:
            self._loop = running
            if _is_frozen(running):
                logger.warning(
                    "%s: a test has stopped the clock of its event loop, so nothing ends that waits by time: with"
                    " freezegun, use freeze_time(..., real_asyncio=True)",
                    self._client,
                )
        else:
            raise WrongLoop(self._refusal(running))

    def _refusal(self, running: asyncio.AbstractEventLoop | None) -> str:
        if self._loop is None:
            return f"{self._client} is used outside of an event loop: use it in a coroutine"
        if self._loop.is_closed():
            return (
                f"{self._client} belongs to an event loop that is closed: each asyncio.run has a loop of its own, so"
                " start and close the client inside of one"
            )
        where = "no event loop runs" if running is None else "another event loop runs"
        return (
            f"{self._client} belongs to the event loop on which it was started, and {where} here: use it there, from"
            " another thread by asyncio.run_coroutine_threadsafe, or make a client for this loop"
        )


def of_one_loop(*plain: str, by_itself: str = "") -> Callable[[type[T]], type[T]]:
    """Decorator of a class with an `OwnLoop` as `own_loop`: its public coroutine methods, its asynchronous iterators
    and the `plain` methods, which do not wait, check the loop first. One method may do so `by_itself`."""

    def decorate(cls: type[T]) -> type[T]:
        for name in dir(cls):
            method = inspect.getattr_static(cls, name)
            if name == by_itself or (name.startswith("_") and name not in ("__aiter__", "__anext__")):
                continue
            if inspect.iscoroutinefunction(method):
                setattr(cls, name, _checked_coroutine(method))
            elif inspect.isasyncgenfunction(method) or name in plain:
                setattr(cls, name, _checked(method))
        return cls

    return decorate


def _checked_coroutine(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.own_loop is not None:
            self.own_loop.check()
        return await method(self, *arguments, **named)

    return checked


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.own_loop is not None:
            self.own_loop.check()
        return method(self, *arguments, **named)

    return checked


def _is_frozen(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a test has replaced Python's clock, and the loop goes by that."""
    replaced = not isinstance(time.monotonic, types.BuiltinFunctionType)
    return replaced and isinstance(loop, asyncio.BaseEventLoop) and abs(loop.time() - monotonic_s()) > FROZEN_S
