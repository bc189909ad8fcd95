"""Log lines for the operator. Each line names the problem, its place, and the remedy.

A client that causes the same problem with every request must not fill the log: at most one line of one kind about one
place is written in `EVERY_S` seconds. The next one counts the lines that were left out.
"""

import logging
import sys
from collections.abc import Callable
from typing import Final

from moldau.monotonic import monotonic_s

EVERY_S: Final = 30.0
PLACES_MAX: Final = 1000
"""Kinds and places remembered by one `Notices`; the oldest are forgotten first."""


_NOT_SHOWN = (*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that end a line, move a terminal's cursor or turn the direction of what follows."""
_ESCAPED = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _NOT_SHOWN}


class OneLine(logging.Formatter):
    """What a client sends (its id, the name of a topic) may be in a line: it cannot forge another line, or hide one.
    A traceback has lines of its own below."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls it by
        return super().formatMessage(record).translate(_ESCAPED)


def log_to_stderr() -> None:
    """Write the log of this process to standard error, unless it goes somewhere already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class Notices:
    """The notices of one module, written to its `logger`."""

    def __init__(self, logger: logging.Logger, now_s: Callable[[], float] = monotonic_s):
        self._logger = logger
        self._now_s = now_s
        self._written: dict[tuple[str, str], tuple[float, int]] = {}

    def error(self, place: str, line: str, *values: object) -> None:
        """Write a line, unless one of this kind (the same `line`) about this place was written in the last `EVERY_S`
        seconds."""
        self._write(logging.ERROR, place, line, values)

    def warning(self, place: str, line: str, *values: object) -> None:
        """As `error`, for a problem that ends by itself, or that this broker has not caused."""
        self._write(logging.WARNING, place, line, values)

    def info(self, place: str, line: str, *values: object) -> None:
        """As `error`, about what needs no remedy."""
        self._write(logging.INFO, place, line, values)

    def _write(self, level: int, place: str, line: str, values: tuple[object, ...]) -> None:
        key, now = (line, place), self._now_s()
        written_s, left_out = self._written.pop(key, (-EVERY_S, 0))
        if now - written_s < EVERY_S:
            self._written[key] = written_s, left_out + 1
            return
        if len(self._written) >= PLACES_MAX:
            del self._written[next(iter(self._written))]
        self._written[key] = now, 0
        more = f" ({left_out} more like this since the last line)" if left_out else ""
        self._logger.log(level, "%s%s", line % values, more)
