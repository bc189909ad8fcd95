"""SIGTERM ends a command, and what it has begun, as Ctrl-C does: `timeout`, systemd and containers send it."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Terminated(KeyboardInterrupt):
    """The command was asked to end by SIGTERM."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM while the block runs, in the main thread; no other thread hears of signals."""

    def end(*_: object) -> None:
        raise Terminated

    with _handled(signal.SIGTERM, end):
        yield


@contextlib.contextmanager
def killable() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process while the block runs: for work of minutes in another language, which may
    be killed at any time, and where Python would hear of them at the end."""
    with _handled(signal.SIGINT, signal.SIG_DFL), _handled(signal.SIGTERM, signal.SIG_DFL):
        yield


@contextlib.contextmanager
def _handled(number: int, handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
