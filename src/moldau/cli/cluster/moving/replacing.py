"""Plans that take replicas away from brokers: all of them, or onto one other broker. Pure.

The largest partitions are placed first, each on the broker that holds fewest bytes then; a new replica shares a rack
with as few of the others as possible. Same layout, same plan.
"""

from collections.abc import Collection

from moldau.cli.cluster.moving.cluster_layout import ClusterLayout, MovePlan, changed
from moldau.errors import ConfigError
from moldau.names import TopicPartition, counted


class Tally:
    """The replicas, bytes and leaders of each broker under the plan so far."""

    def __init__(self, layout: ClusterLayout):
        self.layout = layout
        self.replicas = {tp: part.replicas for tp, part in layout.partitions.items()}
        self.bytes = layout.bytes_by_broker()
        self.count = layout.replicas_by_broker()
        self.leads = layout.leaders_by_broker()
        self._racks = {one: broker.rack for one, broker in layout.brokers.items()} if layout.racks_are_known else {}

    def neighbours(self, tp: TopicPartition, broker: int, without: int) -> int:
        """How many other replicas would be in the rack of this broker; 0 where racks are not known."""
        rack = self._racks.get(broker)
        if rack is None:
            return 0
        return sum(self._racks.get(other) == rack for other in self.replicas[tp] if other not in (broker, without))

    def move(self, tp: TopicPartition, source: int, target: int) -> None:
        """The replica goes from one broker to the other, at the same place of the list."""
        before, held = self.replicas[tp], self.layout.partitions[tp].bytes
        self.replicas[tp] = tuple(target if one == source else one for one in before)
        for tally, amount in ((self.bytes, held), (self.count, 1), (self.leads, int(before[0] == source))):
            tally[source] -= amount
            tally[target] += amount

    def prefer(self, tp: TopicPartition, broker: int) -> None:
        """The broker becomes the preferred leader of one of its partitions."""
        before = self.replicas[tp]
        self.leads[before[0]] -= 1
        self.leads[broker] += 1
        self.replicas[tp] = (broker, *(one for one in before if one != broker))

    def plan(self) -> dict[TopicPartition, tuple[int, ...]]:
        return changed(self.layout, self.replicas)


def drained(layout: ClusterLayout, brokers: Collection[int]) -> MovePlan:
    """No replica is left on these brokers. Raises `ConfigError`: the others are too few for some partition."""
    tally, left = Tally(layout), set(brokers)
    allowed = [one for one in layout.brokers if one not in left]
    by_size = sorted(layout.partitions.items(), key=lambda one: (-one[1].bytes, one[0]))
    for tp, part in by_size:
        for source in part.replicas:
            if source in left:
                _place(tally, tp, source, allowed)
        if part.replicas[0] in left:
            tally.prefer(tp, min(tally.replicas[tp], key=lambda one: (tally.leads[one], one)))
    return tally.plan()


def replaced(layout: ClusterLayout, old: int, new: int) -> MovePlan:
    """All replicas of one broker go to another one, at the same place of the list. A partition that has a replica on
    both gets one on a third broker instead. Raises `ConfigError` as `drained`."""
    tally = Tally(layout)
    others = [one for one in layout.brokers if one != old]
    for tp, part in sorted(layout.partitions.items(), key=lambda one: (-one[1].bytes, one[0])):
        if old in part.replicas:
            _place(tally, tp, old, [new] if new not in part.replicas else others)
    return tally.plan()


def _place(tally: Tally, tp: TopicPartition, source: int, allowed: Collection[int]) -> None:
    has = tally.replicas[tp]
    candidates = [one for one in allowed if one not in has]
    if not candidates:
        raise ConfigError(
            f"{tp} has {counted(len(has), 'replica')}, and too few brokers would be left for them: start more brokers, "
            f"or lower the replication factor of the topic first"
        )

    def costs(broker: int) -> tuple[int, int, int, int]:
        return tally.neighbours(tp, broker, source), tally.bytes[broker], tally.count[broker], broker

    tally.move(tp, source, min(candidates, key=costs))
