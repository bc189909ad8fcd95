"""The memory of Fetch replies, used again once no partition has records of a reply left to read.

Fresh memory costs more than receiving into it: the kernel clears each of its pages first. Rows and columns are copies,
so nothing refers to a reply when its last part has been read. The poller's lock is held around every call except
`room`, which takes a kept block in one step.
"""

from mmap import mmap
from typing import Final

from moldau.records.arena import mapped

KEPT_BYTES: Final = 32 << 20
"""The most memory that waits for further replies."""


class ReplyMemory:
    """Blocks of memory that hold no reply now."""

    def __init__(self) -> None:
        self._blocks: list[mmap] = []

    def take(self, size: int) -> mmap:
        """A block of at least `size` bytes. Blocks that turn out too small are given back to the system."""
        while self._blocks:
            block = self._blocks.pop()
            if len(block) >= size:
                return block
        return mapped(size)

    def give(self, block: mmap) -> None:
        """Keep a block that nothing refers to."""
        if len(block) + sum(map(len, self._blocks)) <= KEPT_BYTES:
            self._blocks.append(block)


class HeldReply:
    """One Fetch reply and its memory."""

    __slots__ = ("_block", "_memory", "leader", "parts", "size")

    def __init__(self, leader: int, memory: ReplyMemory):
        self.leader = leader
        self.parts = 0
        """The partitions that have records of it left to read."""
        self.size = 0
        self._memory = memory
        self._block: mmap | None = None

    def room(self, size: int) -> memoryview:
        """Memory to receive a large reply into."""
        self._block = self._memory.take(size)
        return memoryview(self._block)[:size]

    def part_read(self) -> None:
        """A partition has read its part, or does not need it."""
        self.parts -= 1
        self.free()

    def free(self) -> None:
        """Let the memory be used again if no partition needs it."""
        if self.parts == 0 and self._block is not None:
            self._memory.give(self._block)
            self._block = None
