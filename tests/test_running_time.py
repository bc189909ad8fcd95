"""The clock that stands still while its process does."""

import ctypes
import time

from harness.patience import wait_until
from harness.running_time import MOST_S, RunningTime

PAUSE_US = 500_000


def test_time_in_which_other_threads_can_run_counts() -> None:
    with RunningTime() as clock:
        assert wait_until(lambda: clock.now_s() > 0.1)
        before_s, before = clock.now_s(), time.monotonic()
        assert wait_until(lambda: clock.now_s() > before_s)
        assert clock.now_s() - before_s <= time.monotonic() - before + MOST_S


def test_a_pause_of_the_whole_process_counts_as_one_tick() -> None:
    libc = ctypes.PyDLL(None)  # its calls keep all other Python threads from running
    with RunningTime() as clock:
        assert wait_until(clock.now_s)
        before_s, before = clock.now_s(), time.monotonic()
        libc.usleep(PAUSE_US)
        stood_still_s = time.monotonic() - before - (clock.now_s() - before_s)
        assert stood_still_s >= PAUSE_US / 1e6 - 2 * MOST_S
