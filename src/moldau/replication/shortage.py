"""Partitions led here that have had too few in-sync replicas for long: clients are refused meanwhile, and an operator
has to hear of it. Pure."""

from collections.abc import Iterable
from typing import Final

from moldau.names import TopicPartition

LONG_MS: Final = 30_000
"""A broker that restarts is back sooner."""


class Shortage:
    """Remembers since when, as it is told at each look."""

    def __init__(self) -> None:
        self._since_ms: dict[TopicPartition, int] = {}

    def long_short(self, short: Iterable[TopicPartition], now_ms: int) -> list[TopicPartition]:
        """Those of these partitions that were also short at each look of the last 30 s."""
        self._since_ms = {tp: self._since_ms.get(tp, now_ms) for tp in short}
        return [tp for tp, since_ms in self._since_ms.items() if now_ms - since_ms >= LONG_MS]
