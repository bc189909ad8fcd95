"""A rate in bytes a second over a sliding window, and its limit, as Kafka measures what replication may use (KIP-73).

The window is a number of samples of one size each. A sample begins with what is recorded after the one before is full;
it is dropped when it began a whole window ago. The rate is the sum of the samples over the time since the oldest began,
at least the size of one: a burst counts in full at once, and less and less from then on. Pure: times are milliseconds
of a clock that never jumps, given by the caller.
"""

from collections import deque
from functools import lru_cache
from typing import Final

EVERY_PARTITION: Final = ("*",)


class ReplicationQuota:
    """`limit`: in bytes a second, None if there is none. A limit of 0 lets something pass whenever the window is empty,
    as in Kafka."""

    __slots__ = ("_sample_ms", "_samples", "_total", "_window_ms", "limit")

    def __init__(self, samples: int, sample_ms: int):
        self.limit: int | None = None
        self._sample_ms = sample_ms
        self._window_ms = samples * sample_ms
        self._samples: deque[tuple[int, int]] = deque()
        """When each began, and its bytes."""
        self._total = 0

    def record(self, size: int, now_ms: int) -> None:
        """`size` bytes were sent or received now."""
        self._drop_old(now_ms)
        samples = self._samples
        self._total += size
        if samples and now_ms - samples[-1][0] < self._sample_ms:
            begun_ms, before = samples[-1]
            samples[-1] = begun_ms, before + size
        else:
            samples.append((now_ms, size))

    def is_exceeded(self, now_ms: int, more: int = 0) -> bool:
        """Whether the rate is above the limit, if `more` bytes are recorded now."""
        if self.limit is None:
            return False
        self._drop_old(now_ms)
        return (self._total + more) * 1000 > self.limit * self._elapsed_ms(now_ms)

    def free_ms(self, now_ms: int) -> int:
        """The first time, `now_ms` or later, when the rate is not above the limit, if nothing more is recorded."""
        self._drop_old(now_ms)
        if not self.is_exceeded(now_ms):
            return now_ms
        assert self.limit is not None
        free_ms, left = now_ms, self._total
        for begun_ms, size in self._samples:  # is the rate low enough before this oldest sample is dropped?
            dropped_ms = begun_ms + self._window_ms
            if left * 1000 <= self.limit * self._sample_ms:
                break
            if left * 1000 <= self.limit * (self._window_ms - 1):
                return max(free_ms, begun_ms + -(-left * 1000 // self.limit))
            free_ms, left = max(free_ms, dropped_ms), left - size
        return free_ms

    def _elapsed_ms(self, now_ms: int) -> int:
        return max(now_ms - self._samples[0][0], self._sample_ms) if self._samples else self._sample_ms

    def _drop_old(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self._window_ms:
            self._total -= samples.popleft()[1]


def is_listed(listed: tuple[str, ...], partition: int, broker: int) -> bool:
    """Whether a `throttled.replicas` setting of a topic names this partition's replica on that broker."""
    return bool(listed) and (listed == EVERY_PARTITION or partition in _partitions_on(broker, listed))


@lru_cache(maxsize=64)
def _partitions_on(broker: int, listed: tuple[str, ...]) -> frozenset[int]:
    pairs = (one.split(":") for one in listed)
    return frozenset(int(partition) for partition, on in pairs if int(on) == broker)
