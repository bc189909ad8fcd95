"""The digest of records in one window as a value: count, sum of hashes, late records, delays.

Two digests of the same records are equal, in whatever order and pieces the records came; one lost and one doubled
record change the sum. `columns.digest` computes them and says what each number is.
"""

from collections.abc import Iterable, MutableMapping
from typing import Any, Final, NamedTuple

from moldau.records.columns import DELAY_BUCKETS, DIGEST_FIELDS, FIRST_BUCKET

MASK: Final = (1 << 64) - 1


class Digest(NamedTuple):
    """The digest of some records. `delays[n]` is the number of delays below 2^n ms and not below 2^(n-1)."""

    records: int = 0
    hash_sum: int = 0
    late: int = 0
    delay_ms_max: int = 0
    delays: tuple[int, ...] = ()

    def __add__(self, other: object) -> "Digest":
        """The digest of both sets of records."""
        if not isinstance(other, Digest):
            return NotImplemented
        return Digest(
            self.records + other.records,
            self.hash_sum + other.hash_sum & MASK,
            self.late + other.late,
            max(self.delay_ms_max, other.delay_ms_max),
            _added(self.delays, other.delays),
        )

    def same_records(self, other: "Digest") -> bool:
        """Whether both are digests of the same records, except with a probability of 2^-64."""
        return (self.records, self.hash_sum) == (other.records, other.hash_sum)

    def delay_ms(self, share: float) -> int | None:
        """A delay that this share of the records does not exceed (0.5 for the median): the least power of two that is
        sure, or the longest delay if that is less. None if no record has a delay."""
        total = sum(self.delays)
        if not total:
            return None
        seen = 0
        for bucket, count in enumerate(self.delays):
            seen += count
            if seen >= share * total:
                return min(1 << bucket, self.delay_ms_max)
        return self.delay_ms_max


def _added(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    if len(one) < len(other):
        one, other = other, one
    return (*(a + b for a, b in zip(one, other, strict=False)), *one[len(other) :])


Rows = MutableMapping[int, Any]
"""What `columns.digest` fills: by the start of a window in ms, a memoryview of `DIGEST_FIELDS` numbers."""


def digest_of(row: Any) -> Digest:
    """A row as a value, without the empty buckets at its end."""
    assert len(row) == DIGEST_FIELDS
    delays = tuple(row[FIRST_BUCKET:])
    last = next((bucket for bucket in range(DELAY_BUCKETS, 0, -1) if delays[bucket - 1]), 0)
    return Digest(row[0], row[1], row[2], row[3], delays[:last])


def add_rows(rows: Rows, others: Rows) -> None:
    """Add each row of `others` to the row of the same window."""
    for start, other in others.items():
        row = rows.get(start)
        if row is None:
            rows[start] = other
            continue
        longest = max(row[3], other[3])
        for field, number in enumerate(other):
            row[field] = row[field] + number & MASK
        row[3] = longest


def total(digests: Iterable[Digest]) -> Digest:
    """The digest of all of them."""
    result = Digest()
    for digest in digests:
        result = result + digest
    return result
