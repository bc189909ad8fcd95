"""Offsets that wait for the end of a transaction, by group and partition. Pure; knows no record and no epoch.

An offset takes effect once its producer's transaction commits, unless any producer has written a later offset for that
partition by then: the order in the log decides, not the order of the markers. An offset that was overtaken keeps its
partition unstable until the marker. A deletion removes all pending offsets of its partition. Groups and places are
bytes, as in keys. Source: KIP-447; the answers of Kafka 4.3.
"""

from collections.abc import Collection
from typing import NamedTuple


class Waiting(NamedTuple):
    """`order` numbers the offsets in the order of the log; the value is None if a later one overtook it."""

    order: int
    value: bytes | None


class TakesEffect(NamedTuple):
    """An offset that takes effect: its transaction committed, and no later offset overtook it."""

    group: bytes
    place: bytes
    value: bytes


class PendingOffsets:
    """The pending offsets of one partition of the offsets topic."""

    def __init__(self) -> None:
        self.by_group: dict[bytes, dict[bytes, dict[int, Waiting]]] = {}
        """Group -> place -> producer id. Holds no empty dictionary, so it is false when no offset waits."""
        self._by_producer: dict[int, dict[tuple[bytes, bytes], None]] = {}
        self._written = 0

    def add(self, producer_id: int, group: bytes, place: bytes, value: bytes) -> None:
        """The producer wrote this offset in its transaction."""
        self._written += 1
        waiting = self.by_group.setdefault(group, {}).setdefault(place, {})
        waiting[producer_id] = Waiting(self._written, value)
        self._by_producer.setdefault(producer_id, {})[group, place] = None

    def of(self, group: bytes) -> Collection[bytes]:
        """The places of a group that have a pending offset."""
        return self.by_group.get(group, ())

    def values(self, group: bytes, place: bytes) -> list[bytes]:
        """The offsets of one place that may take effect."""
        waiting = self.by_group.get(group, {}).get(place, {})
        return [value for _, value in waiting.values() if value is not None]

    def overtake(self, group: bytes, place: bytes) -> None:
        """An offset that takes effect at once was written after all pending ones."""
        self._overtake(group, place, self._written + 1)

    def _overtake(self, group: bytes, place: bytes, order: int) -> None:
        waiting = self.by_group.get(group, {}).get(place, {})
        for producer_id, (written, _) in waiting.items():
            if written < order:
                waiting[producer_id] = Waiting(written, None)

    def delete(self, group: bytes, place: bytes) -> None:
        """The partition's offset was deleted: no offset that was written before takes effect."""
        for producer_id in list(self.by_group.get(group, {}).get(place, ())):
            self._take(producer_id, group, place)
            written = self._by_producer[producer_id]
            del written[group, place]
            if not written:
                del self._by_producer[producer_id]

    def end(self, producer_id: int, commits: bool) -> list[TakesEffect]:
        """The producer's transaction has ended; returns the offsets that take effect, in the order of their first
        writing."""
        effective = []
        for group, place in self._by_producer.pop(producer_id, ()):
            order, value = self._take(producer_id, group, place)
            if commits and value is not None:
                self._overtake(group, place, order)
                effective.append(TakesEffect(group, place, value))
        return effective

    def _take(self, producer_id: int, group: bytes, place: bytes) -> Waiting:
        places = self.by_group[group]
        waiting = places[place]
        taken = waiting.pop(producer_id)
        if not waiting:
            del places[place]
            if not places:
                del self.by_group[group]
        return taken
