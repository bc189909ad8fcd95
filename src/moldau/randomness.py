"""The port for chance, one of those of a `Runtime`, and the real one. It imports no asyncio, so that a process without
an event loop, such as a worker of Spark, starts without it."""

import random
import uuid
from typing import Protocol


class Random(Protocol):
    def uuid(self) -> uuid.UUID:
        """A random (version 4) UUID."""

    def below(self, bound: int) -> int:
        """A whole number in [0, bound)."""


class RealRandom:
    def uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def below(self, bound: int) -> int:
        return random.randrange(bound)
