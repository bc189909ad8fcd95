"""The simulated clock and random source: the parts of a `Runtime` besides the disk."""

import asyncio
import random
import uuid

START_MS = 1_700_000_000_000
"""The wall-clock time at which every simulation begins."""


class SimulatedClock:
    """The wall clock of one host: the loop's virtual time plus `skew_ms`, which a scenario may change."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self.skew_ms = 0

    def now_ms(self) -> int:
        return START_MS + int(self._loop.time() * 1000) + self.skew_ms

    def elapsed_s(self) -> float:
        return self._loop.time()


class SimulatedRandom:
    def __init__(self, seed: random.Random):
        self._seed = seed

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._seed.getrandbits(128), version=4)

    def below(self, bound: int) -> int:
        return self._seed.randrange(bound)
