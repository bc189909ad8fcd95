"""`LoginAttempts`: whoever fails to log in several times has to wait before the broker is asked again. Pure.

It counts by address and user, so that somebody who guesses the password of a user does not lock that user out, unless
both come from one address. Names that are guessed once each are slowed down by the second that a failed login takes.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

FREE: Final = 5
"""Failures without a wait."""
FIRST_S, LONGEST_S = 5.0, 300.0
"""The wait after one more failure, which doubles with each further one up to the longest."""
FORGOTTEN_S: Final = 3_600.0
KNOWN_MAX: Final = 10_000


class FailedLogins(NamedTuple):
    failures: int
    latest_s: float

    @property
    def wait_s(self) -> float:
        over = self.failures - FREE
        return 0.0 if over < 0 else min(FIRST_S * 2 ** min(over, 20), LONGEST_S)


class LoginAttempts:
    """Times are those of one monotonic clock."""

    def __init__(self) -> None:
        self._failed: OrderedDict[tuple[str, str], FailedLogins] = OrderedDict()

    def wait_s(self, address: str, user: str, now_s: float) -> float:
        """How long this user has to wait there; 0 if not at all."""
        failed = self._of(address, user, now_s)
        return max(failed.latest_s + failed.wait_s - now_s, 0.0)

    def failed(self, address: str, user: str, now_s: float) -> None:
        failures = self._of(address, user, now_s).failures + 1
        self._failed[address, user] = FailedLogins(failures, now_s)
        self._failed.move_to_end((address, user))
        while len(self._failed) > KNOWN_MAX:
            self._failed.popitem(last=False)

    def succeeded(self, address: str, user: str) -> None:
        self._failed.pop((address, user), None)

    def _of(self, address: str, user: str, now_s: float) -> FailedLogins:
        failed = self._failed.get((address, user))
        return FailedLogins(0, now_s) if failed is None or now_s - failed.latest_s > FORGOTTEN_S else failed
