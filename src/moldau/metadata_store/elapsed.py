"""A clock for time-outs that others count: it goes on while the process or the machine stands still."""

import time

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_s() -> float:
    """Seconds since some moment before this process began."""
    return time.clock_gettime(_BOOTTIME)
