"""Rates per second over a sliding window, and the time that brings one back below its limit, as Kafka measures them.

The window is a number of samples of one length each. A sample begins with the first value that is recorded after the
one before is full, and is dropped when its last value is a whole window old. The rate is the sum of the samples over
the time since the oldest began; each full sample that is missing before the current one counts as empty, so that time
is never shorter than all samples but one. Source: Kafka's `Rate` and `SampledStat`. Pure: the caller gives the time.
"""

import math
from collections import deque
from typing import NamedTuple


class RateWindow(NamedTuple):
    """`samples` of `sample_ms` milliseconds each."""

    samples: int = 11
    sample_ms: int = 1000

    def most(self, limit: float) -> float:
        """The largest value that can be recorded at once without exceeding the limit, if the window is empty."""
        return limit * (self.samples - 1) * self.sample_ms / 1000


class SampledRate:
    """The rate of one quantity. Times are milliseconds of a clock that never goes backwards."""

    __slots__ = ("_least_s", "_samples", "_total", "_window")

    def __init__(self, window: RateWindow):
        self._window = window
        self._least_s = window.most(1)
        self._samples: deque[list[float]] = deque()
        """Begin, last value's time, and sum of each."""
        self._total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        """A negative value takes back what was recorded in the same millisecond."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window.sample_ms:
            self._drop_old(now_ms)
            samples.append([now_ms, now_ms, 0.0])
        sample = samples[-1]
        sample[1] = now_ms
        sample[2] += value
        self._total += value

    def charge(self, value: float, limit: float, now_ms: int) -> int:
        """`record`, and then `throttle_ms`."""
        samples = self._samples
        if samples and now_ms - (sample := samples[-1])[0] < self._window.sample_ms:  # by far the commonest
            sample[1] = now_ms
            sample[2] += value
            self._total += value
        else:
            self.record(value, now_ms)
        # Whatever of it is old by now, it is below what the shortest window allows.
        return 0 if self._total <= limit * self._least_s else self.throttle_ms(limit, now_ms)

    def is_empty(self, now_ms: int) -> bool:
        """Whether nothing has been recorded within the window."""
        self._drop_old(now_ms)
        return not self._total

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """For how many milliseconds nothing may be recorded so that the rate is at the limit then; 0 if it is not above
        the limit."""
        self._drop_old(now_ms)
        window_ms = self._window_ms(now_ms)
        rate = self._total / (window_ms / 1000)
        if rate <= limit:
            return 0
        return math.floor((rate - limit) / limit * window_ms + 0.5) if limit else window_ms

    def _window_ms(self, now_ms: int) -> int:
        samples, sample_ms = self._window
        elapsed_ms = now_ms - int(self._samples[0][0]) if self._samples else 0
        missing = samples - 1 - elapsed_ms // sample_ms
        return max(elapsed_ms + max(missing, 0) * sample_ms, 1)

    def _drop_old(self, now_ms: int) -> None:
        samples, age_ms = self._samples, self._window.samples * self._window.sample_ms
        while samples and now_ms - samples[0][1] >= age_ms:
            self._total -= samples.popleft()[2]
        if not samples:
            self._total = 0.0
