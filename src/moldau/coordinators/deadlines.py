"""Deadlines by key, for deadlines that are usually moved before they pass: each heartbeat moves its member's own.

Moving a deadline later costs one dictionary write: the heap keeps the old entry, which is checked when it comes up.
Keys come out in the order of their deadlines, and of setting if these are equal.
"""

import heapq
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """`_heap` holds an entry no later than the deadline of each key; `_queued` has the earliest such entry of each."""

    def __init__(self) -> None:
        self._due: dict[K, int] = {}
        self._queued: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: K) -> bool:
        return key in self._due

    def set(self, key: K, due_ms: int) -> None:
        self._due[key] = due_ms
        queued = self._queued.get(key)
        if queued is None or queued > due_ms:
            self._push(key, due_ms)

    def cancel(self, key: K) -> None:
        self._due.pop(key, None)

    def next_ms(self) -> int | None:
        """The earliest deadline; None without any."""
        while self._heap:
            queued, _, key = self._heap[0]
            due = self._due.get(key)
            if due is not None and self._queued.get(key) == queued and due <= queued:
                return queued
            self._pop()
            if due is not None and key not in self._queued:
                self._push(key, due)
        return None

    def take(self, now_ms: int) -> K | None:
        """Remove and return the key whose deadline passed first; None if none has passed."""
        due = self.next_ms()
        if due is None or due > now_ms:
            return None
        key = self._pop()
        del self._due[key]
        return key

    def _push(self, key: K, due_ms: int) -> None:
        self._count += 1
        self._queued[key] = due_ms
        heapq.heappush(self._heap, (due_ms, self._count, key))

    def _pop(self) -> K:
        queued, _, key = heapq.heappop(self._heap)
        if self._queued.get(key) == queued:
            del self._queued[key]
        return key


def earliest_ms(several: Iterable[Deadlines[Any]]) -> int | None:
    """The earliest of all these deadlines; None without any."""
    earliest: int | None = None
    for deadlines in several:
        due_ms = deadlines.next_ms()
        if due_ms is not None and (earliest is None or due_ms < earliest):
            earliest = due_ms
    return earliest
