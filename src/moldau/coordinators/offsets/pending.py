"""Offsets that wait for the end of a transaction, by group and partition. Pure; knows no record and no epoch.

An offset counts once its producer's transaction is committed, unless a later one of that partition is in the log by
then, of whomever: the order in the log decides, not that of the markers. One that is overtaken goes on waiting, since
its partition is not stable before the marker, but it will not count. A deletion takes everything of its partition
along. Groups and places are bytes, as they stand in keys. Source: KIP-447; what Kafka 4.3 answers.
"""

from collections.abc import Collection
from typing import NamedTuple


class Waiting(NamedTuple):
    """`order` is that of the log; without a value the offset is overtaken."""

    order: int
    value: bytes | None


class Counts(NamedTuple):
    """An offset of a transaction that was committed, and that nothing overtook."""

    group: bytes
    place: bytes
    value: bytes


class PendingOffsets:
    """Those of one partition of the offsets topic."""

    def __init__(self) -> None:
        self.by_group: dict[bytes, dict[bytes, dict[int, Waiting]]] = {}
        """Group -> place -> producer id. It holds nothing that is empty, so it is false where nothing waits."""
        self._by_producer: dict[int, dict[tuple[bytes, bytes], None]] = {}
        self._written = 0

    def add(self, producer_id: int, group: bytes, place: bytes, value: bytes) -> None:
        """A producer has written it in its transaction."""
        self._written += 1
        waiting = self.by_group.setdefault(group, {}).setdefault(place, {})
        waiting[producer_id] = Waiting(self._written, value)
        self._by_producer.setdefault(producer_id, {})[group, place] = None

    def of(self, group: bytes) -> Collection[bytes]:
        """The places of a group that are not stable."""
        return self.by_group.get(group, ())

    def overtake(self, group: bytes, place: bytes) -> None:
        """An offset that counts already was written behind all that wait."""
        self._overtake(group, place, self._written + 1)

    def _overtake(self, group: bytes, place: bytes, order: int) -> None:
        waiting = self.by_group.get(group, {}).get(place, {})
        for producer_id, (written, _) in waiting.items():
            if written < order:
                waiting[producer_id] = Waiting(written, None)

    def delete(self, group: bytes, place: bytes) -> None:
        """Nothing that was written of it so far shall count."""
        for producer_id in list(self.by_group.get(group, {}).get(place, ())):
            self._take(producer_id, group, place)
            written = self._by_producer[producer_id]
            del written[group, place]
            if not written:
                del self._by_producer[producer_id]

    def end(self, producer_id: int, commits: bool) -> list[Counts]:
        """The producer's transaction is over: what counts from now on, in the order in which it was written first."""
        found = []
        for group, place in self._by_producer.pop(producer_id, ()):
            order, value = self._take(producer_id, group, place)
            if commits and value is not None:
                self._overtake(group, place, order)
                found.append(Counts(group, place, value))
        return found

    def _take(self, producer_id: int, group: bytes, place: bytes) -> Waiting:
        places = self.by_group[group]
        waiting = places[place]
        taken = waiting.pop(producer_id)
        if not waiting:
            del places[place]
            if not places:
                del self.by_group[group]
        return taken
