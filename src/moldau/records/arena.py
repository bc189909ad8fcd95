"""Memory that inflated batches share, and that is used again after `clear`; and large blocks of fresh memory.

A fresh buffer for each batch costs more than inflating into it: the kernel clears each of its pages, and nobody knows
the inflated size beforehand. Pieces that were handed out must not be used after the next `clear`. One thread at a time.
"""

import sys
from mmap import mmap
from typing import Final

BLOCK_BYTES: Final = 1 << 20
"""Blocks are multiples of this size."""
KEPT_BYTES: Final = 128 << 20
"""A larger block is given back to the system by `clear`."""


def mapped(size: int) -> mmap:
    """A block of at least `size` bytes of zeros, of memory that is this process's own where the platform has it.

    Huge pages would make its first use cheaper, but the kernel may have to move memory together first: that took 4
    to 5 ms for a page of 2 MB on a busy machine.
    """
    rounded = max(-(-size // BLOCK_BYTES), 1) * BLOCK_BYTES
    if sys.platform == "win32":
        return mmap(-1, rounded)
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE

    return mmap(-1, rounded, flags=MAP_PRIVATE | MAP_ANONYMOUS)


class Arena:
    """Blocks of memory, of which the newest has room."""

    def __init__(self) -> None:
        self._block = memoryview(b"")
        self._used = 0

    def room(self, size: int) -> memoryview:
        """Writable memory of at least `size` bytes, which stays free until `take`."""
        if len(self._block) - self._used < size:
            wanted, self._block = max(size, 2 * len(self._block)), memoryview(b"")
            self._block, self._used = memoryview(mapped(wanted)), 0
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
