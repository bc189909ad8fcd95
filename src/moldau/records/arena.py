"""Memory that inflated batches share, and that is used again after `clear`; and large blocks of fresh memory.

A fresh buffer for each batch costs more than inflating into it: the kernel clears each of its pages, and nobody knows
the inflated size beforehand. Pieces that were handed out must not be used after the next `clear`. One thread at a time.
"""

import contextlib
import sys
from mmap import mmap
from typing import Final

BLOCK_BYTES: Final = 2 << 20
"""Blocks are multiples of this size, that of a huge page on Linux."""
KEPT_BYTES: Final = 128 << 20
"""A larger block is given back to the system by `clear`."""


def mapped(size: int) -> mmap:
    """A block of at least `size` bytes of zeros. On Linux it is private memory of huge pages: the kernel then clears
    2 MB at a page fault, which costs a seventh of 512 faults of 4 KB."""
    rounded = max(-(-size // BLOCK_BYTES), 1) * BLOCK_BYTES
    if sys.platform != "linux":
        return mmap(-1, rounded)
    from mmap import MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_PRIVATE

    block = mmap(-1, rounded, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        block.madvise(MADV_HUGEPAGE)
    return block


class Arena:
    """Blocks of memory, of which the newest has room."""

    def __init__(self) -> None:
        self._block = memoryview(b"")
        self._used = 0

    def room(self, size: int) -> memoryview:
        """Writable memory of at least `size` bytes, which stays free until `take`."""
        if len(self._block) - self._used < size:
            self._block = memoryview(mapped(max(size, 2 * len(self._block))))
            self._used = 0
        return self._block[self._used :]

    def take(self, size: int) -> memoryview:
        """The first `size` bytes of the room, which now belong to the caller."""
        self._used += size
        return self._block[self._used - size : self._used]

    def clear(self) -> None:
        """Use the memory again, from now on."""
        self._used = 0
        if len(self._block) > KEPT_BYTES:
            self._block = memoryview(b"")
