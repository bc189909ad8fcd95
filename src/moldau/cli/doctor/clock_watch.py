"""Whether the clock of this machine is set while the doctor works."""

import time
from collections.abc import Callable

from moldau.cli.doctor.checks.machines import ClockFacts


class ClockWatch:
    """Compares the wall clock with the monotonic one from its beginning to its `facts`."""

    def __init__(self, wall_s: Callable[[], float] = time.time, monotonic_s: Callable[[], float] = time.monotonic):
        self._wall_s, self._monotonic_s = wall_s, monotonic_s
        self._began = wall_s(), monotonic_s()

    def facts(self) -> ClockFacts:
        wall_s, monotonic_s = self._wall_s(), self._monotonic_s()
        drift_s = (wall_s - self._began[0]) - (monotonic_s - self._began[1])
        return ClockFacts(int(wall_s * 1000), drift_s * 1000)
