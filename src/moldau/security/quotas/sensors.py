"""What each client has used lately, by client. Those that are idle for an hour are forgotten, and so are the longest
idle ones when there are too many: clients choose their client ids. Pure.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

IDLE_MS = 3_600_000
SENSORS_MAX = 10_000
S = TypeVar("S")


class Sensors(Generic[S]):
    """`make` makes the sensor of a new client."""

    def __init__(self, make: Callable[[], S]):
        self._make = make
        self._sensors: OrderedDict[Hashable, tuple[S, int]] = OrderedDict()
        """Each with the time of its last use, the longest idle first."""

    def __len__(self) -> int:
        return len(self._sensors)

    def of(self, owner: Hashable, now_ms: int) -> S:
        """The sensor of that client, which is used now."""
        sensors = self._sensors
        while sensors:
            idlest, (_, used_ms) = next(iter(sensors.items()))
            if now_ms - used_ms < IDLE_MS:
                break
            del sensors[idlest]
        known = sensors.pop(owner, None)
        if known is None and len(sensors) >= SENSORS_MAX:
            sensors.popitem(last=False)
        sensor = self._make() if known is None else known[0]
        sensors[owner] = sensor, now_ms
        return sensor
