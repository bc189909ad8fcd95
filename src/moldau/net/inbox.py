"""Bytes that arrived -> whole frames, with memory that grows only as bytes arrive.

A frame is four bytes of size and a body. Reads land in one buffer shared by all connections of a loop; what does not
make a whole frame, or may not be served yet, is kept here. A large frame gets a buffer of its own that grows as it
fills, so a peer that declares two gigabytes and sends ten bytes costs ten bytes. The bytes that all connections keep
together are bounded by the server's `Pool`. From `MAPPED_BYTES` on a buffer is mapped: the allocator would keep most of
what giants of all sizes had, long after they are gone.
"""

import struct
from collections.abc import Iterable, Iterator
from mmap import mmap

from moldau.errors import ProtocolViolation
from moldau.net.pool import FREE_BYTES, FRESH_BYTES, FRESH_MAX, GIANT_BYTES, SMALL_BYTES, Owner, Pool

_size = struct.Struct(">i").unpack_from

MAPPED_BYTES = 4 << 20


class Inbox:
    """The received bytes of one connection that are not served yet.

    The order of calls: `buffer`, `frames` as far as the caller wants (and `put_back` of the last), and if it is
    `unparked` then, `park`.
    """

    def __init__(self, size_max: int, pool: Pool, owner: Owner):
        self.size_max = size_max
        self.owner = owner
        self.muted = self.finished_some = self.counted = False
        self.unparked = False
        """Whether bytes that were not handed out may be left in the shared buffer."""
        self._pool = pool
        self._own: bytearray | mmap = bytearray()
        self.room = 0
        """The size of the buffer."""
        self.filled = 0
        """How many bytes it holds."""
        self._borrowed: bytearray | None = None
        self._window = memoryview(self._own)
        self._at = self._end = 0
        self._seen = -1

    def buffer(self, shared: memoryview) -> memoryview | None:
        """Where the next read goes: the shared buffer, the unfinished frame's own, or None while the pool has no
        room."""
        if not self.filled:
            return shared[:SMALL_BYTES] if self._pool.short else shared
        if self.filled == self.room and not self._grow():
            return None
        return memoryview(self._own)[self.filled : self.room]

    def _grow(self) -> bool:
        need = 4 + self._checked(self._own, 0) if self.filled >= 4 else SMALL_BYTES
        target = min(need, max(SMALL_BYTES, 4 * self.filled)) if need > self.filled else self.filled + SMALL_BYTES
        borrowed = self._pool.borrow() if FREE_BYTES < need <= GIANT_BYTES and self._borrowed is None else None
        if borrowed is not None:
            target = need
        pool = self._pool
        is_counted_later = target <= FRESH_BYTES and not (self.counted or pool.short)
        if not is_counted_later and not pool.grow(self, target, giant=need > GIANT_BYTES):
            if borrowed is not None:
                pool.hand_back(borrowed)
            return False
        grown = borrowed or (mmap(-1, target) if target >= MAPPED_BYTES else bytearray(target))
        grown[: self.filled] = memoryview(self._own)[: self.filled]
        self._hand_back()
        self._own, self.room, self._borrowed = grown, target, borrowed
        return True

    def _hand_back(self) -> None:
        if self._borrowed is not None:
            self._pool.hand_back(self._borrowed)
            self._borrowed = None

    def arrived(self, shared: memoryview, count: int) -> None:
        """`count` bytes were read into what `buffer(shared)` gave, and are not looked at yet: `park` comes next."""
        if self.filled:
            self.filled += count
            self._window, self._end = memoryview(self._own), self.filled
        else:
            self._window, self._end = shared, count
        self._at = 0
        self.unparked = True

    def frames(self, shared: memoryview, count: int) -> Iterable[memoryview]:
        """The whole frames that have arrived, without their sizes, each valid until the next is taken. Frames that the
        caller does not take stay. `count` bytes (0 to look again at what was parked) were read into what
        `buffer(shared)` gave.

        Raises `ProtocolViolation` on a size that is negative or beyond the limit.
        """
        # By far the commonest: what was read is exactly one frame, and nothing was here before.
        if not self.filled and count >= 4:
            (size,) = _size(shared, 0)
            if size == count - 4 <= self.size_max:
                self.finished_some = True
                return (shared[4:count],)
        self.arrived(shared, count)
        return self._frames()

    def _frames(self) -> Iterator[memoryview]:
        window, at, end = self._window, self._at, self._end
        while end - at >= 4:
            (size,) = _size(window, at)
            if not 0 <= size <= self.size_max:  # which a login raises in the midst of them
                raise _out_of_range(size, self.size_max)
            start = at + 4
            at = start + size
            if at > end:
                return
            self._at = at
            yield window[start:at]

    def put_back(self, shared: memoryview, frame: memoryview) -> None:
        """The frame that was taken last is not handled yet: it is the next one again."""
        if self.unparked:
            self._at -= 4 + len(frame)
        else:
            self.arrived(shared, 4 + len(frame))

    def park(self) -> None:
        """Keep what was not handed out; the shared buffer is free for others after this."""
        at, end = self._at, self._end
        if at:
            self.finished_some = True
        if at == end:
            if self.filled:
                self._clear()
        elif not self.filled:
            self._keep(bytearray(self._window[at:end]))
        elif at:
            left = bytearray(self._window[at:end])
            self._hand_back()
            self._keep(left)
        self._window, self._at, self._end = memoryview(b""), 0, 0
        self.unparked = False

    def _keep(self, left: bytearray) -> None:
        self._own = left
        self.room = self.filled = len(left)
        self._seen = -1
        fresh = self._pool.fresh
        if self.counted or len(left) > FRESH_BYTES:
            self._pool.hold(self, len(left))
        else:
            fresh[self] = None
            if len(fresh) > FRESH_MAX:
                self._pool.count_fresh()

    def holds_frame(self) -> bool:
        """Whether what was parked begins with a whole frame, or with a size that `frames` refuses."""
        if self.filled < 4:
            return False
        (size,) = _size(self._own, 0)
        return not 0 <= size <= self.size_max or self.filled >= 4 + size

    def first(self) -> memoryview:
        """The first frame of what was parked, as far as it is here."""
        end = 4 + _size(self._own, 0)[0] if self.filled >= 4 else 0
        return memoryview(self._own)[4 : min(end, self.filled)]

    def _checked(self, buffer: bytearray | mmap, at: int) -> int:
        size: int = _size(buffer, at)[0]
        if not 0 <= size <= self.size_max:
            raise _out_of_range(size, self.size_max)
        return size

    def look(self) -> int:
        """The bytes that arrived since the last look; -1 if the frame began, or `unmute` was called, since."""
        moved = self.filled - self._seen if self._seen >= 0 else -1
        self._seen = self.filled
        return moved

    def stands_still(self) -> bool:
        """Whether nothing has arrived since the last look, though it could."""
        return self._seen == self.filled and not self.muted and not self.owner.has_sent_more()

    def unmute(self) -> None:
        """The connection is read from again."""
        self.muted, self._seen = False, -1

    def _clear(self) -> None:
        self._hand_back()
        self._own = bytearray()
        self.room = self.filled = 0
        self._seen = -1
        if self.counted:
            self._pool.give_back(self)
        else:
            self._pool.fresh.pop(self, None)

    def close(self) -> None:
        self._clear()


def _out_of_range(size: int, size_max: int) -> ProtocolViolation:
    return ProtocolViolation(f"a frame of {size} bytes; at most {size_max} are allowed")
