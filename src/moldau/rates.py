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

    __slots__ = ("_before", "_full", "_least_s", "_window", "full_ms", "last_ms", "total")

    def __init__(self, window: RateWindow):
        self._window = window
        self._least_s = window.most(1)
        self._full: deque[tuple[int, int, float]] = deque()
        """Begin, last value's time, and sum of each sample before the current one."""
        self._before = 0.0
        """The sum of those."""
        self.total = 0.0
        """The sum of all samples. `security/quotas/client_use.py` adds to it without a call, as `charge` does."""
        self.last_ms = 0.0
        """The last value's time; what is below a millisecond does not count."""
        self.full_ms = 0
        """When the current sample is full; 0 if there is none."""

    def record(self, value: float, now_ms: int) -> None:
        """A negative value takes back what was recorded in the same millisecond."""
        if now_ms >= self.full_ms:
            if self.full_ms:
                self._full.append((self.full_ms - self._window.sample_ms, int(self.last_ms), self.total - self._before))
                self._before = self.total
                self._drop_old(now_ms)
            self.full_ms = now_ms + self._window.sample_ms
        self.last_ms = now_ms
        self.total += value

    def charge(self, value: float, limit: float, now_ms: int) -> int:
        """`record`, and then `throttle_ms`."""
        self.record(value, now_ms)
        # Whatever of it is old by now, it is below what the shortest window allows.
        return 0 if self.total <= limit * self._least_s else self.throttle_ms(limit, now_ms)

    def is_empty(self, now_ms: int) -> bool:
        """Whether nothing has been recorded within the window."""
        self._drop_old(now_ms)
        return not self.total

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """For how many milliseconds nothing may be recorded so that the rate is at the limit then; 0 if it is not above
        the limit."""
        self._drop_old(now_ms)
        window_ms = self._window_ms(now_ms)
        rate = self.total / (window_ms / 1000)
        if rate <= limit:
            return 0
        return math.floor((rate - limit) / limit * window_ms + 0.5) if limit else window_ms

    def _window_ms(self, now_ms: int) -> int:
        samples, sample_ms = self._window
        began_ms = self._full[0][0] if self._full else self.full_ms - sample_ms if self.full_ms else now_ms
        elapsed_ms = now_ms - began_ms
        missing = samples - 1 - elapsed_ms // sample_ms
        return max(elapsed_ms + max(missing, 0) * sample_ms, 1)

    def _drop_old(self, now_ms: int) -> None:
        full, age_ms = self._full, self._window.samples * self._window.sample_ms
        while full and now_ms - full[0][1] >= age_ms:
            value = full.popleft()[2]
            self.total -= value
            self._before -= value
        if full:
            return
        if now_ms - int(self.last_ms) >= age_ms:
            self.total, self.full_ms = 0.0, 0
        else:
            self.total -= self._before  # nothing but a rounding error
        self._before = 0.0
