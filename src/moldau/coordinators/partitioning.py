"""Which partition of an internal topic has a group or a transactional id. Pure: as Kafka computes it."""

from functools import lru_cache


@lru_cache(4096)
def partition_of(key: str, count: int) -> int:
    """The partition of a group or transactional id: the absolute value of Java's hash of the string, modulo the count.
    The least hash has no absolute value in Java, and counts as 0."""
    units = key.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return (value if value < 1 << 31 else ((1 << 32) - value) & 0x7FFFFFFF) % count
