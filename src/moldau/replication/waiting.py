"""Requests that wait for a partition to move: fetches for more bytes, writes with acks=all for the high watermark,
DeleteRecords for the log starts of its replicas.
Followers are called as soon as something is appended, everybody else when it is committed.

A `Wait` counts down what it misses: the bytes of a fetch, or the partitions of a write whose high watermark is still
too low. It is done when nothing is missing, when its time is over, or when its partition changed in a way that the
client must hear of (`wake`). It carries no result: its request then reads, or checks, again. A move of the watermark
costs O(1) for each parked fetch, and touches only those writes that it completes.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Iterable
from operator import itemgetter
from typing import Final, Protocol

from moldau.names import BrokerId

NO_OFFSET: Final = -1
FOR_STARTS: Final = -2
_OFFSET: Final = itemgetter(0)


class Wait:
    """One parked request. `done` is resolved with None, once. It is parked by `for_bytes`, `until_committed` or
    `until_deleted`."""

    __slots__ = ("_missing", "_places", "_timer", "done")

    def __init__(self, missing: int, wait_s: float, loop: asyncio.AbstractEventLoop):
        self.done: asyncio.Future[None] = loop.create_future()
        self._missing = missing
        self._places: list[tuple[Waiters, int]] = []
        self._timer = loop.call_later(wait_s, self.finish)
        self.done.add_done_callback(self._leave)

    @classmethod
    def for_bytes(
        cls, missing: int, wait_s: float, places: Iterable["Waiters"], loop: asyncio.AbstractEventLoop
    ) -> "Wait":
        """Wait until these partitions together have `missing` more bytes to read."""
        wait = cls(missing, wait_s, loop)
        for waiters in places:
            waiters.for_bytes[wait] = None
            wait._places.append((waiters, NO_OFFSET))
        return wait

    @classmethod
    def until_committed(
        cls, offsets: Iterable[tuple["Waiters", int]], wait_s: float, loop: asyncio.AbstractEventLoop
    ) -> "Wait":
        """Wait until the high watermark of each partition is at or above its offset."""
        wait = cls(0, wait_s, loop)
        for waiters, offset in offsets:
            wait._missing += 1
            waiters.park(offset, wait)
            wait._places.append((waiters, offset))
        return wait

    @classmethod
    def until_deleted(cls, wait_s: float, places: Iterable["Waiters"], loop: asyncio.AbstractEventLoop) -> "Wait":
        """Wait until a log start of one of these partitions' replicas may have moved."""
        wait = cls(0, wait_s, loop)
        for waiters in places:
            waiters.until_deleted[wait] = None
            wait._places.append((waiters, FOR_STARTS))
        return wait

    def count_down(self, amount: int) -> None:
        """Subtract from what is missing: bytes of a fetch, or partitions of a write."""
        self._missing -= amount
        if self._missing <= 0:
            self.finish()

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def _leave(self, _: "asyncio.Future[None]") -> None:
        """Also runs if the connection closed and its task was cancelled."""
        self._timer.cancel()
        for waiters, offset in self._places:
            waiters.forget(self, offset)


class WaitingWrite(Protocol):
    """A write that waits for the high watermarks of its partitions."""

    def count_down(self, partitions: int, /) -> None:
        """That many more are where they must be."""

    def finish(self) -> None:
        """Something has changed that it must hear of."""


class Watch(Protocol):
    """A follower's interest in one partition."""

    @property
    def broker(self) -> BrokerId:
        """The follower."""

    @property
    def leader_epoch(self) -> int:
        """The leader epoch in which it asks for this partition."""

    @property
    def asked_ms(self) -> int:
        """Its latest request, which need not name this partition again, was sent at this time or later, by the loop's
        clock."""

    def grew(self) -> None:
        """There is something to fetch, or an error to hear of."""

    def moved(self) -> None:
        """The high watermark is another one; unless followers serve readers, that can wait for the next answer."""

    def proposed(self) -> None:
        """Another ISR is proposed, perhaps with this follower: a throttle must not hold it back any more then."""


class Waiters:
    """The requests parked at one partition: `for_bytes` and `until_deleted` in order of arrival, `until_committed` in
    order of offsets; and the followers that fetch from it."""

    __slots__ = ("followers", "for_bytes", "until_committed", "until_deleted")

    def __init__(self) -> None:
        self.for_bytes: dict[Wait, None] = {}
        self.until_committed: list[tuple[int, WaitingWrite]] = []
        self.until_deleted: dict[Wait, None] = {}
        self.followers: dict[Watch, None] = {}

    def grew(self) -> None:
        """Something was appended."""
        for watch in self.followers:
            watch.grew()

    def proposed(self) -> None:
        """Another ISR is proposed."""
        for watch in self.followers:
            watch.proposed()

    def moved(self, size: int | None, high_watermark: int) -> None:
        """The high watermark is at this offset now, and `size` more bytes can be read (None: an unknown number)."""
        for watch in self.followers:
            watch.moved()
        for wait in list(self.for_bytes):
            if size is None:
                wait.finish()
            else:
                wait.count_down(size)
        parked, count = self.until_committed, 0
        while count < len(parked) and parked[count][0] <= high_watermark:
            count += 1
        if count:
            committed = parked[:count]
            del parked[:count]
            for _, write in committed:
                write.count_down(1)

    def deleted(self) -> None:
        """The log of a replica may begin at another offset, or other replicas count."""
        for wait in list(self.until_deleted):
            wait.finish()

    def wake(self) -> None:
        """Make all parked requests look again: what they wait for may never come (the partition was deleted, failed, or
        has another leader), or something else changed (a transaction ended)."""
        self.grew()
        for wait in [*self.for_bytes, *(wait for _, wait in self.until_committed)]:
            wait.finish()
        self.deleted()

    def park(self, offset: int, write: WaitingWrite) -> None:
        """Count `write` down by one when the high watermark is at or above this offset."""
        parked = self.until_committed
        if not parked or parked[-1][0] <= offset:
            parked.append((offset, write))  # a new write is at the end of the log
        else:
            insort(parked, (offset, write), key=_OFFSET)

    def forget(self, wait: Wait, offset: int) -> None:
        """The request is not parked here any more. `offset`: what it waited for, `NO_OFFSET` if for bytes, `FOR_STARTS`
        if for log starts."""
        if offset < 0:
            (self.for_bytes if offset == NO_OFFSET else self.until_deleted).pop(wait, None)
        else:
            self.unpark(offset, wait)

    def unpark(self, offset: int, write: WaitingWrite) -> None:
        """Undo `park`."""
        parked = self.until_committed
        at = bisect_left(parked, offset, key=_OFFSET)
        while at < len(parked) and parked[at][0] == offset:
            if parked[at][1] is write:
                del parked[at]
                return
            at += 1
