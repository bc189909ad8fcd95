"""Partitions that a follower does not ask for until a time, and the one timer that ends the earliest pause."""

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeAlias

Key: TypeAlias = tuple[bytes, int]
"""A topic's id and a partition's number."""


class Pauses:
    """`ended` is called with the partitions whose pauses are over, in a turn of the loop of its own. Belongs to the
    loop that runs at the first `begin`."""

    def __init__(self, ended: Callable[[list[Key]], None]):
        self._ended = ended
        self._until_s: dict[Key, float] = {}
        """By the loop's time."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        """When it is due; uvloop's handle of what is due at once has no `when`."""

    def __len__(self) -> int:
        return len(self._until_s)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._until_s)

    def __contains__(self, key: Key) -> bool:
        return key in self._until_s

    def begin(self, key: Key, seconds: float) -> None:
        """Pause from now on for that long, also a partition that pauses already."""
        until_s = self._until_s[key] = asyncio.get_running_loop().time() + seconds
        self._wake_at(until_s)

    def drop(self, key: Key) -> None:
        """The partition pauses no longer, or is gone; `ended` is not called."""
        self._until_s.pop(key, None)

    def stop(self) -> None:
        """No pause ends any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _wake_at(self, time_s: float) -> None:
        if self._timer is not None:
            if self._timer_s <= time_s:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(time_s, self._end)
        self._timer_s = time_s

    def _end(self) -> None:
        now_s = asyncio.get_running_loop().time()
        over = [key for key, until_s in self._until_s.items() if until_s <= now_s]
        for key in over:
            del self._until_s[key]
        self._timer = None
        if self._until_s:
            self._wake_at(min(self._until_s.values()))
        self._ended(over)
