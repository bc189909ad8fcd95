"""The controller tells which brokers partitions without a leader wait for: their clients wait meanwhile."""

import logging
from collections.abc import Collection
from math import inf
from typing import Final

from moldau.cluster.state.elections import leaderless
from moldau.cluster.state.image import Image
from moldau.names import counted

LOOK_S: Final = 10.0
"""Each look goes over all partitions."""
LONG_S: Final = 30.0
"""A broker that restarts is back sooner."""
AGAIN_S: Final = 600.0

logger = logging.getLogger(__name__)


class MissedBrokers:
    """Times are seconds of a clock that never jumps."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """This broker is the controller from now on."""
        self._look_s = -inf
        self._missed: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        """The brokers that partitions wait for, without and with their registration; None if there are none."""
        self._due_s = inf
        """When the next line about them is due."""

    def look(self, image: Image, away: Collection[int], now_s: float) -> None:
        """Log a line if the same brokers have been missed for long. `away` are registered brokers that must not
        lead."""
        if now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_S
        found = leaderless(image, away)
        missed = found and (found.away, found.without_folder)
        if missed != self._missed:
            self._missed, self._due_s = missed, now_s + LONG_S
        if found is None or now_s < self._due_s:
            return
        self._due_s = now_s + AGAIN_S
        logger.warning(
            "%s had no leader for more than %g s, so their clients wait. One is %s. The replicas that can lead are "
            "missing: %s",
            counted(found.partitions, "partition"),
            LONG_S,
            found.first,
            found.remedy,
        )
