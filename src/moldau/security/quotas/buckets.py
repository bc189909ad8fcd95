"""A bucket of tokens, as Kafka's quota on changes of the controller: refilled at a rate, spent as fast as anybody likes
while it is not empty. Pure: the caller gives the time, in milliseconds of a clock that never goes backwards.
"""

import math

from moldau.rates import RateWindow


class TokenBucket:
    """It begins full, and holds what the rate brings in a whole window."""

    __slots__ = ("_filled_ms", "_tokens", "_window_s")

    def __init__(self, window: RateWindow):
        self._window_s = window.samples * window.sample_ms / 1000
        self._tokens = math.inf
        self._filled_ms = 0

    def spend(self, tokens: float, rate: float, now_ms: int) -> None:
        """The bucket may owe tokens after this."""
        self._fill(rate, now_ms)
        self._tokens -= tokens

    def throttle_ms(self, rate: float, now_ms: int) -> int:
        """When the bucket will owe none; 0 if it owes none now."""
        self._fill(rate, now_ms)
        return 0 if self._tokens >= 0 else math.floor(-self._tokens / rate * 1000 + 0.5)

    def _fill(self, rate: float, now_ms: int) -> None:
        self._tokens = min(self._window_s * rate, self._tokens + rate * (now_ms - self._filled_ms) / 1000)
        self._filled_ms = now_ms
