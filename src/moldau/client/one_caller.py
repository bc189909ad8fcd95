"""One thread at a time: a second one is refused at once, as by Java's consumer, rather than served by chance."""

import threading

from moldau.errors import ConcurrentUse


class OneCaller:
    """Entered by a with-statement, also once more by the thread that is inside. Raises `ConcurrentUse` in any other;
    `use` says what to do."""

    def __init__(self, use: str):
        self._use = use
        self._lock = threading.RLock()
        self._inside: int | None = None

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            name = next((one.name for one in threading.enumerate() if one.ident == self._inside), "another thread")
            raise ConcurrentUse(f"{name} is in a call of this client: {self._use}")
        self._inside = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
