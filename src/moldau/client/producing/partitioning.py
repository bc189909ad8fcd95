"""Chooses the partition of a record: by the hash of its key, or by the sticky partitioner if it has no key.

The hash is MurmurHash2 with the seed of Kafka's Java client, so that all clients put a key into the same partition.
Records without a key go to one partition until it has received `switch_bytes`, then to another one (KIP-480, KIP-794):
batches are full and partitions get equal shares, or, while some of them lag behind, shares that spare those.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate

from moldau.randomness import Random
from moldau.records import columns

murmur2 = columns.murmur2
positive_hash: Callable[[bytes], int] = (
    columns.positive_hash if columns.COMPILED else lru_cache(65536)(columns.positive_hash)
)
"""The hash of a key without its sign bit: modulo the number of partitions, it is the key's partition."""


def choose_by_load(waiting: Sequence[int], below: Callable[[int], int]) -> int | None:
    """A partition, drawn so that one with fewer waiting batches is more likely; None if all have equally many.

    The weight of a partition is the largest number of waiting batches plus 1, minus its own (KIP-794).
    """
    most = max(waiting)
    if min(waiting) == most:
        return None
    sums = [*accumulate(most + 1 - batches for batches in waiting)]
    drawn = below(sums[-1])
    return next(partition for partition, end in enumerate(sums) if drawn < end)


class Sticky(columns.StickyPartition):
    """The sticky partitioner for the records of one topic without a key.

    `waiting` returns the number of waiting batches of each of the first n partitions; None for equal shares. `chosen`
    has `left` bytes to go: while that is above 0, a caller may subtract and use it without calling `partition`."""

    __slots__ = ("_random", "_switch_bytes", "_waiting")

    def __init__(self, random: Random, switch_bytes: int, waiting: Callable[[int], Sequence[int]] | None = None):
        self._random = random
        self._switch_bytes = switch_bytes
        self._waiting = waiting
        self.chosen = -1
        self.left = 0

    def partition(self, partitions: int, size: int) -> int:
        """The partition for the next record of `size` bytes."""
        if self.left <= 0 or not 0 <= self.chosen < partitions:
            self.chosen = self._next(partitions)
            self.left = self._switch_bytes
        self.left -= size
        chosen: int = self.chosen
        return chosen

    def _next(self, partitions: int) -> int:
        if self._waiting is not None:
            chosen = choose_by_load(self._waiting(partitions), self._random.below)
            if chosen is not None:
                return chosen
        others = partitions - (0 <= self.chosen < partitions)
        choice = self._random.below(others) if others else 0
        return choice + 1 if others < partitions and self.chosen <= choice and others else choice
