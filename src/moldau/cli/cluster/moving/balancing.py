"""Plans that even out what brokers hold, with as few bytes copied as possible. Pure.

Each step moves one replica from a broker that holds more than the mean to one that holds less, and neither passes the
mean: so no byte is copied that evenness does not need. The largest replica that fits goes first. When nothing fits any
more, a replica that still makes the two more equal is moved as long as they differ by more than `TOLERANCE` of the
mean. A move never puts more replicas of a partition into one rack. Preferred leaders are then shared out evenly, which
copies nothing. Same layout, same plan.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection

from moldau.cli.cluster.moving.cluster_layout import ClusterLayout, MovePlan
from moldau.cli.cluster.moving.replacing import Tally
from moldau.names import TopicPartition

TOLERANCE = 0.05


class _Evening:
    """`sources` give, `targets` take; `budget` is how many bytes may be copied, None for any number."""

    def __init__(self, layout: ClusterLayout, sources: Collection[int], targets: Collection[int], budget: int | None):
        self.tally = Tally(layout)
        self.budget = budget
        self.sources = sorted(sources)
        self.targets = sorted(targets)
        # A byte more for each replica: empty ones are evened out too.
        self.held: dict[int, list[tuple[int, TopicPartition]]] = {one: [] for one in layout.brokers}
        for tp, part in layout.partitions.items():
            for broker in part.replicas:
                if broker in self.held:
                    self.held[broker].append((part.bytes + 1, tp))
        for own in self.held.values():
            own.sort()
        self.load = {one: sum(size for size, _ in own) for one, own in self.held.items()}
        self.mean = sum(self.load.values()) / max(len(self.load), 1)
        self._in_vain: dict[tuple[int, int], int] = {}
        """Between which brokers no replica of at most this size can move."""

    def step(self, *, may_pass: bool) -> bool:
        """Move one replica; False if none can. `may_pass`: brokers may pass the mean, if they become more equal."""
        for source in sorted(self.sources, key=lambda one: (-self.load[one], one)):
            for target in sorted(self.targets, key=lambda one: (self.load[one], one)):
                gap = self.load[source] - self.load[target]
                if source == target or gap <= 0:
                    continue
                if may_pass:
                    if gap <= max(2, TOLERANCE * self.mean):
                        continue
                    most = gap // 2
                else:
                    most = int(min(self.load[source] - self.mean, self.mean - self.load[target]))
                found = self._largest(source, target, most)
                if found is not None:
                    self.move(found, source, target)
                    return True
        return False

    def _largest(self, source: int, target: int, most: int) -> tuple[int, TopicPartition] | None:
        """The largest replica of at most that size that may go from one broker to the other."""
        own = self.held[source]
        if self.budget is not None:
            most = min(most, self.budget + 1)
        if most <= self._in_vain.get((source, target), 0):
            return None
        for at in range(bisect_right(own, most, key=lambda one: one[0]) - 1, -1, -1):
            if self.may_move(own[at][1], source, target):
                return own[at]
        self._in_vain[source, target] = most
        return None

    def may_move(self, tp: TopicPartition, source: int, target: int) -> bool:
        tally = self.tally
        return target not in tally.replicas[tp] and (
            tally.neighbours(tp, target, source) <= tally.neighbours(tp, source, source)
        )

    def move(self, replica: tuple[int, TopicPartition], source: int, target: int) -> None:
        size, tp = replica
        del self.held[source][bisect_left(self.held[source], replica)]
        insort(self.held[target], replica)
        self.load[source] -= size
        self.load[target] += size
        self.tally.move(tp, source, target)
        for holder in self.tally.replicas[tp]:
            for other in self.held:
                if size <= self._in_vain.get((holder, other), 0) and self.may_move(tp, holder, other):
                    del self._in_vain[holder, other]
        if self.budget is not None:
            self.budget -= size - 1


def balanced(layout: ClusterLayout, max_bytes: int | None = None) -> MovePlan:
    """All brokers hold about the same number of bytes. At most `max_bytes` are copied."""
    evening = _Evening(layout, layout.brokers, layout.brokers, max_bytes)
    _even(evening)
    _share_leaders(evening.tally)
    return evening.tally.plan()


def spread_to(layout: ClusterLayout, new: Collection[int], max_bytes: int | None = None) -> MovePlan:
    """These brokers get their share of the bytes from the others; nothing else moves."""
    others = [one for one in layout.brokers if one not in new]
    evening = _Evening(layout, others, new, max_bytes)
    _even(evening)
    _share_leaders(evening.tally)
    return evening.tally.plan()


def relieved(layout: ClusterLayout, full: float, max_bytes: int | None = None) -> MovePlan:
    """Brokers whose disks are used to a share of more than `full` give replicas away until they are below it; no other
    broker gets above it. Brokers that do not tell their disks' sizes take no part."""
    used, limit = dict[int, int](), dict[int, int]()
    for one, broker in layout.brokers.items():
        if broker.disk_bytes is not None and broker.free_bytes is not None:
            used[one], limit[one] = broker.disk_bytes - broker.free_bytes, int(full * broker.disk_bytes)
    evening = _Evening(layout, used, used, max_bytes)
    for source in sorted(used, key=lambda one: (limit[one] - used[one], one)):
        while (excess := used[source] - limit[source]) > 0:
            room = {one: limit[one] - used[one] for one in used if one != source}
            found = _to_relieve(evening, source, excess, room)
            if found is None:
                break
            replica, target = found
            evening.move(replica, source, target)
            used[source] -= replica[0] - 1
            used[target] += replica[0] - 1
    return evening.tally.plan()


def _to_relieve(
    evening: _Evening, source: int, excess: int, room: dict[int, int]
) -> tuple[tuple[int, TopicPartition], int] | None:
    """The smallest replica that is enough, else the largest; and the broker with most room for it."""
    own = evening.held[source]
    enough = bisect_left(own, excess + 1, key=lambda one: one[0])
    for at in (*range(enough, len(own)), *range(enough - 1, -1, -1)):
        size, tp = own[at]
        if evening.budget is not None and size - 1 > evening.budget:
            continue
        targets = [one for one, free in room.items() if free >= size - 1 and evening.may_move(tp, source, one)]
        if size > 1 and targets:
            return own[at], max(targets, key=lambda one: (room[one], -one))
    return None


def _even(evening: _Evening) -> None:
    while evening.step(may_pass=False):
        pass
    while evening.step(may_pass=True):
        pass


def _share_leaders(tally: Tally) -> None:
    """Each broker that runs is the preferred leader of about the same number of partitions, as far as their replicas
    allow it."""
    running, leads, order = tally.layout.brokers, tally.leads, sorted(tally.replicas)
    has_moved = True
    while has_moved:
        has_moved = False
        for tp in order:
            replicas = tally.replicas[tp]
            target = min((one for one in replicas if one in running), key=lambda one: (leads[one], one), default=None)
            if target is not None and (replicas[0] not in running or leads[replicas[0]] - leads[target] > 1):
                tally.prefer(tp, target)
                has_moved = True
