"""Ctrl-C and SIGTERM of a continuous load: it ends at once while it waits, and after its commit while it loads."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class LoadStopped(KeyboardInterrupt):
    """The load was asked to stop."""


class Stopping:
    """Turns the signals into `LoadStopped`; use it in a with-statement, in the main thread.

    In a block of `after` a first signal waits for the block's end. A second one does not: it ends the load where it is,
    and what was not committed is loaded by the next one.
    """

    def __init__(self) -> None:
        self._inside = False
        self._asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stopping":
        self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def after(self) -> Iterator[None]:
        """Raise `LoadStopped` only when the block has ended."""
        self._end_if_asked()
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
        self._end_if_asked()

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """A block that a signal ends, without an error. Each further one ends what the block still waits for: the
        compaction that runs, Spark's end."""
        with contextlib.suppress(KeyboardInterrupt):  # Spark takes Ctrl-C while a session starts: no `LoadStopped`
            yield

    def wait(self, seconds: float) -> None:
        """Sleep; a signal ends it with `LoadStopped`."""
        self._end_if_asked()
        threading.Event().wait(max(0.0, seconds))

    def _end_if_asked(self) -> None:
        if self._asked:  # in a finalizer, say, where Python drops what the handler raises
            raise LoadStopped

    def _hear(self, *_: object) -> None:
        first, self._asked = not self._asked, True
        if not (first and self._inside):
            raise LoadStopped
