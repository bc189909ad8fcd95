"""The watches of one session of the embedded store: which functions are called when a node has changed."""

from collections.abc import Callable, Iterable

from moldau.metadata_store.store import checked


class Watchers:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._looks: dict[str, list[Callable[[], None]]] = {}

    def add(self, path: str, look: Callable[[], None]) -> None:
        """Raises `ValueError` for an invalid path."""
        self._looks.setdefault(checked(path), []).append(look)

    def remove(self, path: str) -> None:
        self._looks.pop(path, None)

    def look_at(self, paths: Iterable[str]) -> None:
        """Call those that watch one of these nodes."""
        for path in dict.fromkeys(paths):
            for look in self._looks.get(path, ()):
                look()

    def look_everywhere(self) -> None:
        self.look_at(list(self._looks))
