"""Chooses the partition of a record: by the hash of its key, or by the sticky partitioner if it has no key.

The hash is MurmurHash2 with the seed of Kafka's Java client, so that all clients put a key into the same partition.
Records without a key go to one partition until it has received `switch_bytes`, then to another one (KIP-480, KIP-794):
batches are full and partitions get equal shares.
"""

from functools import lru_cache

from moldau.runtime import Random

_SEED, _MIX, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """MurmurHash2 of the data, as an unsigned 32-bit number."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _MIX & _MASK
        h = (h * _MIX & _MASK) ^ ((k ^ (k >> 24)) * _MIX & _MASK)
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MIX & _MASK
    h = (h ^ (h >> 13)) * _MIX & _MASK
    return h ^ (h >> 15)


@lru_cache(maxsize=65536)
def positive_hash(key: bytes) -> int:
    """The hash without its sign bit: modulo the number of partitions, it is the key's partition."""
    return murmur2(key) & 0x7FFFFFFF


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
