"""Chooses the partition of a record: by the hash of its key, or by the sticky partitioner if it has no key.

The hash is MurmurHash2 with the seed of Kafka's Java client, so that all clients put a key into the same partition.
Records without a key go to one partition until it has received `switch_bytes`, then to another one (KIP-480, KIP-794):
batches are full and partitions get equal shares.
"""

from collections.abc import Callable
from functools import lru_cache

from moldau.records import columns
from moldau.runtime import Random

murmur2 = columns.murmur2
positive_hash: Callable[[bytes], int] = (
    columns.positive_hash if columns.COMPILED else lru_cache(65536)(columns.positive_hash)
)
"""The hash of a key without its sign bit: modulo the number of partitions, it is the key's partition."""


class Sticky:
    """The sticky partitioner for the records of one topic without a key."""

    def __init__(self, random: Random, switch_bytes: int):
        self._random = random
        self._switch_bytes = switch_bytes
        self._partition = -1
        self._bytes = 0

    def partition(self, partitions: int, size: int) -> int:
        """The partition for the next record of `size` bytes."""
        if self._bytes >= self._switch_bytes or not 0 <= self._partition < partitions:
            others = partitions - (0 <= self._partition < partitions)
            choice = self._random.below(others) if others else 0
            self._partition = choice + 1 if others < partitions and self._partition <= choice and others else choice
            self._bytes = 0
        self._bytes += size
        return self._partition
