"""A follower as its leader knows it: how far it has the log, and when it last had all of it. Pure.

A follower has what is below the offset that it asks from, also if that is lower than before: a follower that lost the
end of its log must not count as having it. Its lag clock starts when it was last level with the leader: when it asks
from the leader's end, or from the end that the leader had when it asked before (a busy leader is always further by
the time the next request comes). Times are milliseconds of a clock that never jumps.
"""

from typing import Final

from moldau.names import Offset

UNKNOWN: Final = Offset(-1)
"""The end, and the log start, of a follower that has not asked in this leader epoch."""
NEVER_MS: Final = -(2**62)
STOOD_STILL_MS: Final = 1000


class Follower:
    """`broker_epoch` is the one that it named in its latest request, -1 before that. `may_join`: the cluster shows it
    with that broker epoch, so the controller would take it into the ISR. `level_ms`: when it last was level with the
    leader."""

    __slots__ = ("_asked_ms", "_leader_end", "broker_epoch", "end", "level_ms", "log_start", "may_join")

    def __init__(self, level_ms: int = NEVER_MS) -> None:
        self.end = self.log_start = UNKNOWN
        self.broker_epoch = -1
        self.may_join = False
        self.level_ms = level_ms
        self._asked_ms = NEVER_MS
        self._leader_end = Offset(2**63 - 1)

    def asked(self, offset: Offset, broker_epoch: int, may_join: bool, leader_end: Offset, now_ms: int) -> None:
        """It asked for what follows `offset`, while the leader's log ended at `leader_end`."""
        if offset >= leader_end:
            self.level_ms = now_ms
        elif offset >= self._leader_end:
            self.level_ms = max(self.level_ms, self._asked_ms)
        self.end, self.broker_epoch, self.may_join = offset, broker_epoch, may_join
        self._asked_ms, self._leader_end = now_ms, leader_end

    def diverged(self) -> None:
        """Its log is not a beginning of the leader's: nobody knows how much of it is."""
        self.end = UNKNOWN
        self._leader_end = Offset(2**63 - 1)

    def restart_clock(self, now_ms: int) -> None:
        """The leader could not answer for a while, so that only from now on its time counts."""
        self.level_ms = max(self.level_ms, now_ms)

    def looked_at(self, leader_end: Offset, now_ms: int) -> None:
        """A follower that has everything is level, though it does not ask again while nothing is written."""
        if self.end >= leader_end:
            self.level_ms = max(self.level_ms, now_ms)

    def is_level(self, leader_end: Offset, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it has all of the leader's log, or had it at most `lag_ms_max` ago."""
        return self.end >= leader_end or now_ms - self.level_ms <= lag_ms_max


class Standstill:
    """Notices that this process stood still (stopped by a signal, or its machine suspended): followers that could not
    be answered meanwhile have not lagged. `every_ms`: how often it is asked otherwise."""

    def __init__(self, every_ms: int) -> None:
        self._gap_ms_max = every_ms + STOOD_STILL_MS
        self._last_ms: int | None = None

    def is_over(self, now_ms: int) -> bool:
        """Whether more than a second is missing since the last call."""
        is_noticed = self.is_noticed(now_ms)
        self._last_ms = now_ms
        return is_noticed

    def is_noticed(self, now_ms: int) -> bool:
        """Whether `is_over` would be true now."""
        return self._last_ms is not None and now_ms - self._last_ms > self._gap_ms_max
