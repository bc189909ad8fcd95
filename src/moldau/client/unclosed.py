"""Synchronous clients that are still open when nobody holds them any more, the interpreter exits or the process forks.

Their loops run in daemon threads, which end with the interpreter without a word and do not exist in a forked child. A
client that nobody holds is closed in its own thread, which then ends, and Python shows a `ResourceWarning`. At exit
each client gets the time that is left of `EXIT_S` to finish. In a forked child each is told that it is a copy.
"""

import atexit
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from moldau.monotonic import monotonic_s

EXIT_S = 10.0
FORKED = "this client was made before the process forked: make a new one in the child process"


class OwnThread(Protocol):
    """The thread of a client's loop."""

    def leave(self, close: Callable[[], Coroutine[Any, Any, object]]) -> bool:
        """Close the client on the loop, and end; false if that was done already, or is not for this process."""


class _Watched(NamedTuple):
    at_exit: Callable[[float], None]
    after_fork: Callable[[], None]


_open: dict[int, _Watched] = {}


def watch(client: object, at_exit: Callable[[float], None], after_fork: Callable[[], None]) -> None:
    """Call `at_exit(timeout_s)` when the interpreter exits, and `after_fork()` in a forked child."""
    _open[id(client)] = _Watched(at_exit, after_fork)


def close_when_dropped(
    client: object, thread: OwnThread, text: Callable[[], str], close: Callable[[], Coroutine[Any, Any, object]]
) -> None:
    """Once nobody holds the client: warn that it was not closed, whose `text` names it, and have its thread close it.
    None of the other arguments may hold the client."""
    watcher = weakref.finalize(client, _dropped, thread, text, close)
    watcher.atexit = False


def _dropped(thread: OwnThread, text: Callable[[], str], close: Callable[[], Coroutine[Any, Any, object]]) -> None:
    if thread.leave(close):
        warnings.warn(f"{text()} was not closed: use it in a with-statement", ResourceWarning, stacklevel=1)


def forget(client: object) -> None:
    """The client is closed."""
    _open.pop(id(client), None)


def _exiting() -> None:
    end_s = monotonic_s() + EXIT_S
    for client in [*_open.values()]:
        client.at_exit(max(end_s - monotonic_s(), 0.1))


def _forked() -> None:
    clients = [*_open.values()]
    _open.clear()
    for client in clients:
        client.after_fork()


# Before the executors of the interpreter end: dialling a host by name needs one. And once more after the last threads
# that are no daemons have ended, because they may have sent records meanwhile.
with contextlib.suppress(RuntimeError):  # it is imported by a thread that outlives the main thread
    getattr(threading, "_register_atexit", atexit.register)(_exiting)
atexit.register(_exiting)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
