"""Kills the broker in the middle of everything, and starts it again: some time, or in the middle of a rebalance."""

import random
import time
from pathlib import Path

from harness.brokers import Broker

REBALANCE_SECONDS_MAX, LOOK_SECONDS = 3.0, 0.002
BEGUN = b'"api": "JoinGroup"', b'"error": "NONE"'


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Kills:
    """So many kills in a run of so many steps; `windows` has from when to when there was no broker."""

    def __init__(self, broker: Broker, count: int, seed: int):
        self.windows: list[tuple[int, int]] = []
        self._broker = broker
        self._count = count
        self._rng = random.Random(f"kills {seed}")
        self._due: list[int] = []

    def plan(self, steps: int) -> None:
        """Not at the start, when members have only begun to come."""
        first = min(steps // 3, steps - self._count)
        self._due = sorted(self._rng.sample(range(first, steps), min(self._count, steps)))

    def passed(self, step: int) -> None:
        """That step has been done. Every other kill is at once when members are told of a new generation, before its
        assignment can be written."""
        while self._due and self._due[0] <= step:
            self._due.pop(0)
            if len(self._due) % 2:
                time.sleep(self._rng.uniform(0, 0.6))
            else:
                self._wait_for_a_rebalance()
            self._broker.kill()
            killed_ms = now_ms()
            self._broker.start()
            self.windows.append((killed_ms, now_ms()))

    def _wait_for_a_rebalance(self) -> None:
        until = time.monotonic() + REBALANCE_SECONDS_MAX
        with open(Path(self._broker.folder) / "broker.log", "rb") as log:
            log.seek(0, 2)
            while time.monotonic() < until:
                if any(all(word in line for word in BEGUN) for line in log.readlines()):
                    return
                time.sleep(LOOK_SECONDS)
