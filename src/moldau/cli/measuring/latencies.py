"""The latencies of many records in bounded memory, and the pace of a load. Pure: times are given by the caller."""

from array import array
from typing import Final

SAMPLE_MAX: Final = 500_000
SHOWN: Final = (50.0, 95.0, 99.0, 99.9)
PROGRESS_S: Final = 5.0
MB: Final = 1 << 20
"""Bytes of what is shown as MB, as in Kafka's tool."""


class RecordLatencies:
    """Of `expected` records the latencies of at most `SAMPLE_MAX` are kept, of every n-th one. Sum and largest are of
    all. In ms."""

    def __init__(self, expected: int):
        self._every = -(-expected // SAMPLE_MAX) or 1
        self._sample = array("d")
        self.count = 0
        self.sum_ms = self.max_ms = 0.0

    def add(self, latency_ms: float) -> None:
        if self.count % self._every == 0:
            self._sample.append(latency_ms)
        self.count += 1
        self.sum_ms += latency_ms
        self.max_ms = max(self.max_ms, latency_ms)

    @property
    def average_ms(self) -> float:
        return self.sum_ms / self.count if self.count else 0.0

    def percentiles(self) -> dict[float, float]:
        """The latency that so many percent of the sample do not exceed; 0 without records."""
        ordered = sorted(self._sample)
        return {one: ordered[min(int(len(ordered) * one / 100), len(ordered) - 1)] if ordered else 0.0 for one in SHOWN}


class LoadPace:
    """Records a second that a load keeps to; without a limit if that is not above 0."""

    def __init__(self, per_second: float, began_s: float):
        self._per_second = per_second
        self._began_s = began_s

    def wait_s(self, sent: int, now_s: float) -> float:
        """How long the next record has to wait after so many."""
        return self._began_s + sent / self._per_second - now_s if self._per_second > 0 else 0.0
