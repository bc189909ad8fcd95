"""SIGTERM for commands that have started something: it ends them, and what they started, as Ctrl-C does."""

import contextlib
import signal
from collections.abc import Iterator


class Terminated(KeyboardInterrupt):
    """The command was asked to end by SIGTERM."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM while the block runs. Use it in the main thread."""

    def end(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
