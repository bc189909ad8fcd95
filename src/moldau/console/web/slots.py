"""`StreamSlots`: how many answers without an end are given at once, since each holds memory and connections."""

import contextlib
from collections.abc import Iterator

from moldau.console.web.refusing import PageRefusal

BUSY = 503


class StreamSlots:
    """`what` says what they are and do, in the plural. Belongs to one loop."""

    def __init__(self, most: int, what: str):
        self._most = most
        self._what = what
        self.used = 0

    def refuse_when_full(self) -> None:
        """Raises `PageRefusal`."""
        if self.used >= self._most:
            raise PageRefusal(BUSY, f"{self._most} {self._what} already: end one, or try again later")

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Counts one while it runs. Raises `PageRefusal`: others may have begun since its question came."""
        self.refuse_when_full()
        self.used += 1
        try:
            yield
        finally:
            self.used -= 1
