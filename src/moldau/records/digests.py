"""The digest of records in one window as a value: count, sum of hashes, late records, delays.

Two digests of the same records are equal, in whatever order and pieces the records came; one lost and one doubled
record change the sum. `columns.digest` computes them and says what each number is.
"""

from collections import Counter
from collections.abc import Iterable, MutableMapping
from typing import Any, Final, NamedTuple

from moldau.records.columns import DELAY_BUCKETS, FIRST_BUCKET, FIRST_COUNT, longest_in, widened

MASK: Final = (1 << 64) - 1
LONGEST_IN: Final = [longest_in(bucket) for bucket in range(DELAY_BUCKETS)]
Delays = tuple[tuple[int, int], ...]
"""Pairs of a delay in ms, the longest one of a bucket, and the number of delays in that bucket; the shortest first."""


class Digest(NamedTuple):
    """The digest of some records."""

    records: int = 0
    hash_sum: int = 0
    late: int = 0
    delay_ms_max: int = 0
    delays: Delays = ()

    def __add__(self, other: object) -> "Digest":
        """The digest of both sets of records."""
        if not isinstance(other, Digest):
            return NotImplemented
        return Digest(
            self.records + other.records,
            self.hash_sum + other.hash_sum & MASK,
            self.late + other.late,
            max(self.delay_ms_max, other.delay_ms_max),
            added([self.delays, other.delays]) if self.delays and other.delays else self.delays or other.delays,
        )

    def same_records(self, other: "Digest") -> bool:
        """Whether both are digests of the same records, except with a probability of 2^-64."""
        return (self.records, self.hash_sum) == (other.records, other.hash_sum)

    def delay_ms(self, share: float) -> int | None:
        """A delay that this share of the records does not exceed (0.5 for the median), less than 1/32 too long. None if
        no record has a delay."""
        rest = share * sum(count for _, count in self.delays)
        for ms, count in self.delays:
            rest -= count
            if rest <= 0:
                return min(ms, self.delay_ms_max)
        return self.delay_ms_max if self.delays else None


def added(delays: Iterable[Delays]) -> Delays:
    """The delays of all of them."""
    counts = Counter[int]()
    for pairs in delays:
        for ms, count in pairs:
            counts[ms] += count
    return tuple(sorted(counts.items()))


Rows = MutableMapping[int, Any]
"""What `columns.digest` fills: by the start of a window in ms, a row of numbers."""


def digest_of(row: Any) -> Digest:
    """A row as a value."""
    counted = enumerate(row[FIRST_COUNT:], row[FIRST_BUCKET])
    delays = tuple((LONGEST_IN[bucket], count) for bucket, count in counted if count)
    return Digest(row[0], row[1], row[2], row[3], delays)


def add_rows(rows: Rows, others: Rows) -> None:
    """Add each row of `others` to the row of the same window."""
    for start, other in others.items():
        rows[start] = _sum(rows[start], other) if start in rows else other


def _sum(row: Any, other: Any) -> Any:
    for field in (0, 1, 2):
        row[field] = row[field] + other[field] & MASK
    row[3] = max(row[3], other[3])
    for bucket, count in enumerate(other[FIRST_COUNT:], other[FIRST_BUCKET]):
        if count:
            if not row[FIRST_BUCKET] <= bucket < row[FIRST_BUCKET] + len(row) - FIRST_COUNT:
                row = widened(row, bucket)
            row[FIRST_COUNT + bucket - row[FIRST_BUCKET]] += count
    return row


def total(digests: Iterable[Digest]) -> Digest:
    """The digest of all of them."""
    result = Digest()
    for digest in digests:
        result = result + digest
    return result
