"""The memory for incomplete and waiting requests: one bound for all connections of a server.

Buffer sizes are counted. A buffer grows as bytes arrive, not to the size that its frame declares. Every connection may
hold `SMALL_BYTES`, which are counted. A buffer of up to `FRESH_BYTES` is counted only at the next look, or when a
larger one asks for memory: most are gone by then, because the other half of a pipelined request arrives in the same
turn. Giants are frames larger than a producer's ordinary settings allow; they share a part of the bound, so that they
leave room for the others. While memory is not short, no connection is closed. When it is short:

1. Connections that were read from but sent no byte between two looks, and none since, are closed at
   once, until enough memory is free.
2. If that is not enough, a connection that asks for memory waits: nothing is read from it. The connection that
   took memory first may always continue, so that a frame of any size gets through.
3. If others have waited from one look to the next, the slowest are closed, until the requests of others fit, or half of
   the memory is free.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Protocol

from moldau.names import counted

log = logging.getLogger(__name__)

GIANT_BYTES = (1 << 20) + (1 << 16)
"""Frames that declare more than this are giants."""
GIANTS_PART = 10
"""Giants share a tenth of the bound."""
FREE_BYTES = 64 << 10
"""A giant with a larger buffer counts against the giants' part."""
SMALL_BYTES = 16 << 10
"""A connection may always hold this much."""
FRESH_BYTES = 2 * SMALL_BYTES
"""Buffers up to this may be counted later."""
FRESH_MAX = 256
"""The most buffers that are not counted yet."""
LARGE_BUFFERS_MAX = 4
"""Reusable buffers of `GIANT_BYTES` for large frames. While all are in use, a frame gets a buffer of its own, which
grows as it fills."""
SLOW_LOOKS = 20
"""A connection is slow if, at its current rate, it would need more looks than this to send the bytes that it holds."""
CLOSED_MAX = 500
"""The most connections closed in one turn of the loop."""


class Owner(Protocol):
    """A connection, as the pool sees it."""

    def resume(self) -> None:
        """Memory may be free again: ask for it once more."""

    def give_up(self) -> str:
        """Close; returns the peer's host."""

    def has_sent_more(self) -> bool:
        """Whether the peer has sent bytes that have not been read yet."""


class Holder(Protocol):
    """The received bytes of one connection. `muted`: nothing is read from it, for a reason other than memory.
    `finished_some`: it has completed a frame before. `room`: the size of its buffer. `counted`: the pool counts it.
    """

    owner: Owner
    muted: bool
    finished_some: bool
    room: int
    counted: bool

    def look(self) -> int:
        """The bytes that arrived since the last look; -1 if the frame began, or its connection was muted, since
        then."""

    def stands_still(self) -> bool:
        """Whether nothing has arrived since the last look although the connection was read from."""


class Budget:
    """A limit in bytes. `holders`: the bytes of each holder, in the order they began. `waiting`: the bytes that each
    waiting holder lacks; `wanted`: their sum."""

    def __init__(self, limit: int):
        self.limit = limit
        self.taken = 0
        self.holders: dict[Holder, int] = {}
        self.waiting: dict[Holder, int] = {}
        self.wanted = 0
        self.was_short = False
        """Whether a holder waited at the last look."""

    def allows(self, holder: Holder, to: int) -> bool:
        first = next(iter(self.holders), holder) is holder
        return first or self.taken + to - self.holders.get(holder, 0) <= self.limit

    def take(self, holder: Holder, to: int) -> None:
        self.taken += to - self.holders.get(holder, 0)
        self.holders[holder] = to

    def give_back(self, holder: Holder) -> None:
        if self.waiting:
            self.wait_no_more(holder)
        self.taken -= self.holders.pop(holder, 0)

    def wait(self, holder: Holder, to: int) -> None:
        self.waiting[holder] = to - self.holders.get(holder, 0)
        self.wanted += self.waiting[holder]

    def wait_no_more(self, holder: Holder) -> None:
        self.wanted -= self.waiting.pop(holder, 0)

    def resume(self) -> None:
        """Let waiting holders ask again, until one of them still has to wait."""
        while self.waiting:
            holder = next(iter(self.waiting))
            self.wait_no_more(holder)
            holder.owner.resume()
            if holder in self.waiting:
                return


class Pool:
    """`short`: the limit is reached, and connections should be read from in small pieces. `look` is to be called
    every half second or so."""

    def __init__(self, limit: int):
        self.short = False
        self.fresh: dict[Holder, None] = {}
        """Small buffers that are not counted yet; their owners add and remove them."""
        self._all = Budget(limit)
        self._giants = Budget(limit // GIANTS_PART)
        self._stalled: list[Holder] = []
        self._closing = False
        self._closed: Counter[str] = Counter()
        self._spare: list[bytearray] = []
        self._made = 0

    @property
    def limit(self) -> int:
        return self._all.limit

    @property
    def taken(self) -> int:
        """The bytes of all buffers."""
        self.count_fresh()
        return self._all.taken

    def count_fresh(self) -> None:
        for holder in self.fresh:
            self._all.take(holder, holder.room)
            holder.counted = True
        self.fresh.clear()
        self.short = self._all.taken >= self._all.limit

    def hold(self, holder: Holder, count: int) -> None:
        """Count `count` bytes that `holder` has already read."""
        self.fresh.pop(holder, None)
        holder.counted = True
        self._all.take(holder, count)
        self.short = self._all.taken >= self._all.limit

    def grow(self, holder: Holder, to: int, *, giant: bool) -> bool:
        """True if `holder` may have `to` bytes. If not, it waits, and its owner's `resume` is called later."""
        self.count_fresh()
        budgets = (self._giants, self._all) if giant and to > FREE_BYTES else (self._all,)
        for budget in budgets:
            if budget.waiting:
                budget.wait_no_more(holder)
            if to > SMALL_BYTES and not self._makes_room(budget, holder, to):
                budget.wait(holder, to)
                return False
        for budget in budgets:
            budget.take(holder, to)
        self.short = self._all.taken >= self._all.limit
        return True

    def _makes_room(self, budget: Budget, holder: Holder, to: int) -> bool:
        if not budget.allows(holder, to):
            others = (other for other in self._stalled if other in budget.holders and other is not holder)
            self._close((other for other in others if other.stands_still()), lambda: budget.allows(holder, to))
        return budget.allows(holder, to)

    def give_back(self, holder: Holder) -> None:
        holder.counted = False
        self._all.give_back(holder)
        if self._giants.holders or self._giants.waiting:
            self._giants.give_back(holder)
        self.short = self._all.taken >= self._all.limit
        if (self._all.waiting or self._giants.waiting) and not self._closing:
            self._resume()

    def _resume(self) -> None:
        self._giants.resume()
        self._all.resume()

    def _close(self, holders: Iterable[Holder], enough: Callable[[], bool]) -> None:
        """Close these, in their order, until `enough`."""
        self._closing = True
        for holder in islice(holders, CLOSED_MAX):
            if enough():
                break
            self._closed[holder.owner.give_up()] += 1
        self._closing = False

    def look(self) -> None:
        """Find stalled connections; close the slowest if others have waited since the last look."""
        self.count_fresh()
        budgets = (self._giants, self._all)
        if all(budget.taken <= budget.limit // 2 and not budget.waiting for budget in budgets):
            self._stalled = []
            return
        moved = {holder: holder.look() for holder in self._all.holders}
        for budget in budgets:
            if budget.waiting and budget.was_short:
                self._close_slowest(budget, moved)
        self._stalled = [
            holder
            for holder, count in moved.items()
            if count == 0 and not any(holder in budget.waiting for budget in budgets)
        ]
        for budget in budgets:
            budget.was_short = bool(budget.waiting)
        self._resume()
        if self._closed:
            log.warning(
                "closed %s, the slowest first: memory for unfinished requests ran out "
                "(queued.max.request.bytes, %d). Most of them came from %s",
                counted(self._closed.total(), "connection"),
                self._all.limit,
                ", ".join(f"{host} ({number:,})" for host, number in self._closed.most_common(3)),
            )
            self._closed.clear()

    def _close_slowest(self, budget: Budget, moved: Mapping[Holder, int]) -> None:
        """Close connections in this order: those that could have sent more but sent little, the slowest first; those
        that wait for memory, first if they never finished a frame, and then the largest first; those that make progress
        or began after the last look; last, those whose requests wait for the broker."""

        def order(holder: Holder) -> tuple[int, bool, int]:
            held = budget.holders[holder]
            if holder in budget.waiting:
                return 1, holder.finished_some, -held
            is_slow = 0 <= moved[holder] * SLOW_LOOKS < held and not holder.owner.has_sent_more()
            return 3 if holder.muted else 0 if is_slow else 2, False, moved[holder]

        slowest = sorted(budget.holders, key=order)
        self._close(slowest, lambda: budget.taken + min(budget.wanted, budget.limit // 2) <= budget.limit)

    def borrow(self) -> bytearray | None:
        """A buffer for one large frame, reused so that its pages stay mapped; None if all are in use."""
        if self._spare:
            return self._spare.pop()
        if self._made < LARGE_BUFFERS_MAX:
            self._made += 1
            return bytearray(GIANT_BYTES)
        return None

    def hand_back(self, buffer: bytearray) -> None:
        self._spare.append(buffer)
