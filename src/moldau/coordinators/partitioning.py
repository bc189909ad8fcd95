"""Which partition of an internal topic has a group or a transactional id. Pure: as Kafka computes it.

Clients choose these keys, and the time that hashing one takes: see `elements_of`.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import repeat
from typing import Final

KEY_CHARS_MAX = 0x7FFF
"""The most characters of a key in a record."""
KEPT_CHARS_MAX = 256
"""The partition of a longer key is computed each time: 4,096 keys are kept."""
CHARS_OF_AN_ELEMENT = 100
"""How many characters are hashed within the time of one element (`turns`)."""
NO_ELEMENTS: Final = ()


def partition_of(key: str, count: int) -> int:
    """The partition of a group or transactional id: the absolute value of Java's hash of the string, modulo the count.
    The least hash has no absolute value in Java, and counts as 0. A key that is too long for a record is in partition
    0, whose coordinator refuses it or does not know it, as any other would."""
    if len(key) <= KEPT_CHARS_MAX:
        return _kept(key, count)
    return _computed(key, count) if len(key) <= KEY_CHARS_MAX else 0


def elements_of(key: str) -> Iterable[None]:
    """As many as hashing the key is worth elements, beyond the first."""
    if len(key) < CHARS_OF_AN_ELEMENT:
        return NO_ELEMENTS
    return repeat(None, min(len(key), KEY_CHARS_MAX) // CHARS_OF_AN_ELEMENT)


def _computed(key: str, count: int) -> int:
    units = key.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return (value if value < 1 << 31 else ((1 << 32) - value) & 0x7FFFFFFF) % count


_kept = lru_cache(4096)(_computed)
