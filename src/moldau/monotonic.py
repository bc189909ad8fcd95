"""The clock of waits and durations.

`time.monotonic` is the same clock, but freezegun stops it for all modules of a process that tests an application: what
waits by it would wait for ever. freezegun and time-machine leave this one alone.
"""

import time


def monotonic_s() -> float:
    """Seconds since some moment before this process began."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
