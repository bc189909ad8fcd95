"""The synchronous face of an asyncio client: each of its methods runs the asyncio one in the client's own thread.

    class Admin(Face[AsyncAdmin]):
        list_topics = blocking(AsyncAdmin.list_topics)

Name, parameters and docstring are those of the asyncio method, for readers, `help` and type checkers.
"""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from moldau.client.background import LoopThread

Core = TypeVar("Core")
P = ParamSpec("P")
T = TypeVar("T")


class Face(Generic[Core]):
    """Holds the asyncio client and the thread that it runs in. A part of another client holds that, its `owner`, too:
    its thread ends when nobody does."""

    def __init__(self, core: Core, thread: LoopThread, owner: object = None):
        self._core = core
        self._thread = thread
        self._owner = owner


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """The method of a `Face`, or of another class with `_core` and `_thread`, that runs this method of its core and
    waits for the result."""

    @functools.wraps(method)
    def run(self: Any, *arguments: P.args, **named: P.kwargs) -> T:
        result: T = self._thread.run(functools.partial(method, self._core, *arguments, **named))
        return result

    return cast(Callable[Concatenate[Any, P], T], run)
