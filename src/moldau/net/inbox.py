"""Bytes that arrived -> whole frames, with memory that grows only as bytes arrive.

A frame is four bytes of size and a body. Reads land in one buffer shared by all connections of a loop; what does not
make a whole frame, or may not be served yet, is kept here. A large frame gets a buffer of its own that grows as it
fills, so a peer that declares two gigabytes and sends ten bytes costs ten bytes; beyond `FREE_BYTES` a frame needs a
share of the server's `Pool`, so that many peers with half-sent giants cannot take the memory of all. From
`MAPPED_BYTES` on it is mapped: the allocator would keep most of what giants of all sizes had, long after they are gone.
"""

import struct
from collections.abc import Callable, Iterator
from mmap import mmap

from moldau.errors import ProtocolViolation

_size = struct.Struct(">i").unpack_from

GIANT_BYTES = (1 << 20) + (1 << 16)
"""Frames that declare more than this are giants; others, which a producer's ordinary settings make, grow freely."""
FREE_BYTES = 64 << 10
"""A connection may hold this much of a giant without asking the pool."""
MAPPED_BYTES = 4 << 20
LARGE_BUFFERS_MAX = 4
"""Buffers of `GIANT_BYTES` that large frames take in turns; where all are out, a frame's own grows as it fills."""
FIRST_BYTES = 16 << 10
"""The least that a frame's own buffer holds."""


class Pool:
    """Memory for the unfinished giant frames of all connections, given in the order they asked.

    Whoever asks first may always grow (so some frame always finishes); others wait while `taken` is beyond `limit`.
    A holder that stands still while others wait loses its connection: the server calls `stalled` now and then.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.taken = 0
        self._holders: dict[Inbox, int] = {}
        self._waiting: dict[Inbox, None] = {}
        self._spare: list[bytearray] = []
        self._made = 0

    def grow(self, inbox: "Inbox", to: int) -> bool:
        """True if `inbox` may hold `to` bytes; else it waits, and its `resume` is called when it may ask again."""
        held = self._holders.get(inbox, 0)
        first = next(iter(self._holders), inbox) is inbox
        if not first and self.taken + to - held > self.limit:
            self._waiting[inbox] = None
            return False
        self._holders[inbox] = to
        self.taken += to - held
        return True

    def borrow(self) -> bytearray | None:
        """A buffer for one large frame, used again and again so that its memory is there; None if all are out."""
        if self._spare:
            return self._spare.pop()
        if self._made < LARGE_BUFFERS_MAX:
            self._made += 1
            return bytearray(GIANT_BYTES)
        return None

    def hand_back(self, buffer: bytearray) -> None:
        self._spare.append(buffer)

    def give_back(self, inbox: "Inbox") -> None:
        self._waiting.pop(inbox, None)
        held = self._holders.pop(inbox, 0)
        self.taken -= held
        if held and self._waiting:
            waiting, self._waiting = self._waiting, {}
            for other in waiting:
                other.resume()

    def stalled(self) -> "Inbox | None":
        """The first holder if others wait for it and it brought nothing since the last call."""
        if not self._waiting:
            return None
        first = next(iter(self._holders), None)
        if first is None or first.progress():
            return None
        return first


class Inbox:
    """What one connection has received and nobody has served yet.

    The order of calls: `buffer`, `arrived`, `frames` as far as the caller wants, `park`.
    """

    def __init__(self, size_max: int, pool: Pool, resume: Callable[[], None]):
        self.size_max = size_max
        self.resume = resume
        self._pool = pool
        self._own: bytearray | mmap = bytearray()
        self._room = 0
        self._filled = 0
        self._borrowed: bytearray | None = None
        self._window = memoryview(self._own)
        self._at = self._end = 0
        self._seen = 0

    def buffer(self, shared: memoryview) -> memoryview | None:
        """Where the next read goes: the shared buffer, the unfinished frame's own, or None while the pool has no
        room."""
        if not self._filled:
            return shared
        if self._filled == self._room and not self._grow():
            return None
        return memoryview(self._own)[self._filled : self._room]

    def _grow(self) -> bool:
        need = 4 + self._checked(self._own, 0) if self._filled >= 4 else FIRST_BYTES
        target = min(need, max(FIRST_BYTES, 4 * self._filled)) if need > self._filled else self._filled + FIRST_BYTES
        if need > GIANT_BYTES and target > FREE_BYTES and not self._pool.grow(self, target):
            return False
        borrowed = self._pool.borrow() if FREE_BYTES < need <= GIANT_BYTES and self._borrowed is None else None
        if borrowed is not None:
            target = need
        grown = borrowed or (mmap(-1, target) if target >= MAPPED_BYTES else bytearray(target))
        grown[: self._filled] = memoryview(self._own)[: self._filled]
        self._hand_back()
        self._own, self._room, self._borrowed = grown, target, borrowed
        return True

    def _hand_back(self) -> None:
        if self._borrowed is not None:
            self._pool.hand_back(self._borrowed)
            self._borrowed = None

    def arrived(self, shared: memoryview, count: int) -> None:
        """`count` bytes (0 to look again at what was parked) were read into what `buffer(shared)` gave."""
        if self._filled:
            self._filled += count
            self._window, self._end = memoryview(self._own), self._filled
        else:
            self._window, self._end = shared, count
        self._at = 0

    def only(self, shared: memoryview, count: int) -> memoryview | None:
        """The frame, without its size, if what was just read is exactly one and nothing was here before: by far the
        commonest. It is handed out, and nothing is left to `park`. None otherwise, and `arrived` is to be called.
        """
        if self._filled or count < 4:
            return None
        (size,) = _size(shared, 0)
        return shared[4:count] if size == count - 4 <= self.size_max else None

    def frames(self) -> Iterator[memoryview]:
        """The whole frames that are here, without their sizes, each valid until the next is asked for. Whoever wants no
        more stops asking: the rest stays.

        Raises `ProtocolViolation` on a size that is negative or beyond the limit.
        """
        window, at, end, size_max = self._window, self._at, self._end, self.size_max
        while end - at >= 4:
            (size,) = _size(window, at)
            if not 0 <= size <= size_max:
                raise _out_of_range(size, size_max)
            start = at + 4
            at = start + size
            if at > end:
                return
            self._at = at
            yield window[start:at]

    def park(self) -> None:
        """Keep what was not handed out; the shared buffer is free for others after this."""
        at, end = self._at, self._end
        if at == end:
            if self._filled:
                self._clear()
        elif not self._filled:
            self._keep(bytearray(self._window[at:end]))
        elif at:
            left = bytearray(self._window[at:end])
            self._clear()
            self._keep(left)
        self._window, self._at, self._end = memoryview(b""), 0, 0

    def _keep(self, left: bytearray) -> None:
        self._own = left
        self._room = self._filled = len(left)

    def holds_frame(self) -> bool:
        """Whether what was parked begins with a whole frame, or with a size that `frames` refuses."""
        if self._filled < 4:
            return False
        (size,) = _size(self._own, 0)
        return not 0 <= size <= self.size_max or self._filled >= 4 + size

    def _checked(self, buffer: bytearray | mmap, at: int) -> int:
        size: int = _size(buffer, at)[0]
        if not 0 <= size <= self.size_max:
            raise _out_of_range(size, self.size_max)
        return size

    def progress(self) -> bool:
        """Whether bytes have arrived since the last call."""
        moved, self._seen = self._seen != self._filled, self._filled
        return moved

    def _clear(self) -> None:
        self._hand_back()
        self._own = bytearray()
        self._room = self._filled = 0
        self._pool.give_back(self)

    def close(self) -> None:
        self._clear()


def _out_of_range(size: int, size_max: int) -> ProtocolViolation:
    return ProtocolViolation(f"a frame of {size} bytes where {size_max} are allowed")
