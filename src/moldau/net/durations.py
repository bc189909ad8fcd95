"""Histograms that cost their hot path one addition to a list: durations by powers of two of a microsecond. Pure.

    bucket   0      1       2       3             20           27
    up to    1 us   2 us    4 us    8 us   ...    1.05 s  ...  above 67 s

The bucket of a duration is the number of bits of its whole microseconds. Prometheus' buckets are cumulative: that, and
seconds, are made of it when somebody asks.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

BUCKETS: Final = 28
"""The last one has no upper bound."""
BOUNDS_S: Final = tuple((1 << bits) / 1e6 for bits in range(BUCKETS - 1))
"""The upper bounds of all buckets but the last one, in seconds."""
SHOWN: Final = range(4, BUCKETS - 1)
"""The buckets whose bounds are shown: from 16 us to 67 s."""


class Durations:
    """One histogram. `counts` is a list of `BUCKETS` numbers, `sum_s` the sum of all durations."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.sum_s = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        """`times` events took this long each."""
        self.counts[_bucket(seconds)] += times
        self.sum_s += seconds * times

    def add_all(self, ordered: Sequence[float]) -> None:
        """An event took each of these seconds, the shortest first: a step for each bucket, and none for each event."""
        counts, before, bucket = self.counts, 0, _bucket(ordered[0]) if ordered else 0
        while before < len(ordered):
            below = bisect_left(ordered, BOUNDS_S[bucket], before) if bucket < BUCKETS - 1 else len(ordered)
            counts[bucket] += below - before
            before, bucket = below, bucket + 1
        self.sum_s += sum(ordered)

    @property
    def count(self) -> int:
        return sum(self.counts)

    def copy(self) -> "Durations":
        copied = Durations()
        copied.counts, copied.sum_s = self.counts[:], self.sum_s
        return copied


def _bucket(seconds: float) -> int:
    bits = int(seconds * 1e6).bit_length() if seconds > 0 else 0
    return bits if bits < BUCKETS else BUCKETS - 1


def samples_of(durations: Durations, of: str = "") -> Iterator[tuple[str, float]]:
    """The samples of a histogram in seconds. `of`: its labels, as `name="value"`."""
    comma = f"{of}," if of else ""
    braces = f"{{{of}}}" if of else ""
    running, counts = 0, durations.counts
    for bucket in range(BUCKETS - 1):
        running += counts[bucket]
        if bucket in SHOWN:
            yield f'_bucket{{{comma}le="{BOUNDS_S[bucket]!r}"}}', running
    running += counts[-1]
    yield f'_bucket{{{comma}le="+Inf"}}', running
    yield f"_count{braces}", running
    yield f"_sum{braces}", durations.sum_s


def quantile(durations: Durations, share: float) -> float:
    """The duration that this share of all events did not exceed, in seconds: the upper bound of its bucket; 0 without
    events."""
    wanted, running = share * durations.count, 0
    for bucket, count in enumerate(durations.counts):
        running += count
        if running >= wanted and count:
            return BOUNDS_S[min(bucket, BUCKETS - 2)]
    return 0.0


def by_label(name: str, all_of: Mapping[str, Durations]) -> list[tuple[str, float]]:
    """The samples of one family, a histogram for each value of that label."""
    return [sample for value, one in all_of.items() for sample in samples_of(one, f'{name}="{value}"')]
