"""The assignors of consumer groups, `uniform` and `range`: members and topics -> the partitions of each member. Pure;
the order of the input does not matter.

Each partition of a subscribed topic gets exactly one owner, which subscribes to the topic. `range` assigns every topic
by itself in consecutive partitions, so that topics of the same size with the same subscribers are split alike.
`uniform` balances the number of partitions over all topics, and leaves a partition at its last owner unless that
conflicts with the balance. Source: KIP-848, and the assignments of Apache Kafka 4.3.
"""

import heapq
import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from moldau.assignors import consecutive


class MemberSpec(NamedTuple):
    """One member as an assignor sees it; `assigned` is its part of the last target."""

    topics: frozenset[uuid.UUID]
    instance_id: str | None
    rack_id: str | None
    assigned: Mapping[uuid.UUID, frozenset[int]]


Given: TypeAlias = dict[str, dict[uuid.UUID, list[int]]]
Assign: TypeAlias = Callable[[Mapping[str, MemberSpec], Mapping[uuid.UUID, int]], Given]
"""Members, and the number of partitions of each topic -> the partitions of each member."""
Place: TypeAlias = tuple[int, int]
"""The position of a topic in the order of ids, and one of its partitions."""


def range_assign(members: Mapping[str, MemberSpec], topics: Mapping[uuid.UUID, int]) -> Given:
    """Topic by topic, static members first: the first ones get one more where partitions do not divide evenly."""
    given: Given = {member: {} for member in members}
    order = sorted(members, key=lambda member: _static_first(member, members[member]))
    subscribers = _Subscribers(order, members)
    for topic in sorted(topics, key=_id):
        for member, numbers in consecutive(topics[topic], subscribers.of(topic)):
            given[member][topic] = list(numbers)
    return given


def _static_first(member: str, spec: MemberSpec) -> tuple[bool, str, str]:
    return spec.instance_id is None, spec.instance_id or "", member


def _id(topic: uuid.UUID) -> int:
    return topic.int


def uniform_assign(members: Mapping[str, MemberSpec], topics: Mapping[uuid.UUID, int]) -> Given:
    """As even as subscriptions allow, moving as few partitions as possible."""
    subscribers = _Subscribers(sorted(members), members)
    known = [topic for topic in sorted(topics, key=_id) if subscribers.of(topic)]
    positions = {topic: at for at, topic in enumerate(known)}
    free = {(at, p): None for at, topic in enumerate(known) for p in range(topics[topic])}
    # Members keep the partitions of their last target that they still subscribe to.
    owned: dict[str, list[Place]] = {member: [] for member in subscribers.order}
    for member, own in owned.items():
        spec = members[member]
        for topic, partitions in spec.assigned.items():
            at = positions.get(topic, -1)
            if at >= 0 and topic in spec.topics:
                own += [(at, p) for p in partitions if (at, p) in free]
        own.sort()
        for place in own:
            del free[place]
    # The free partitions are shared out, and partitions move until the numbers are even.
    if all(len(subscribers.of(topic)) == len(owned) for topic in known):
        _share_alike(owned, list(free))
    else:
        _share_by_subscription(owned, list(free), [subscribers.classes_of(topic) for topic in known])
    given: Given = {member: {} for member in members}
    for member, own in owned.items():
        for at, p in sorted(own):
            given[member].setdefault(known[at], []).append(p)
    return given


class _Subscribers:
    """The subscribers of each topic. Members with the same subscription form a class; few groups have more than one."""

    def __init__(self, order: list[str], members: Mapping[str, MemberSpec]):
        self.order = order
        classes: dict[frozenset[uuid.UUID], list[str]] = {}
        for member in order:
            classes.setdefault(members[member].topics, []).append(member)
        self._topics = list(classes)
        self._classes = list(classes.values())
        self._merged: dict[tuple[int, ...], list[str]] = {}
        self._of: dict[uuid.UUID, tuple[int, ...]] = {}

    def classes_of(self, topic: uuid.UUID) -> list[list[str]]:
        return [self._classes[at] for at in self._subscribing(topic)]

    def of(self, topic: uuid.UUID) -> list[str]:
        """The topic's subscribers, in order."""
        subscribing = self._subscribing(topic)
        if len(subscribing) == len(self._classes):
            return self.order
        merged = self._merged.get(subscribing)
        if merged is None:
            wanted = {member for at in subscribing for member in self._classes[at]}
            merged = self._merged[subscribing] = [member for member in self.order if member in wanted]
        return merged

    def _subscribing(self, topic: uuid.UUID) -> tuple[int, ...]:
        classes = self._of.get(topic)
        if classes is None:
            classes = self._of[topic] = tuple(at for at, topics in enumerate(self._topics) if topic in topics)
        return classes


def _share_alike(owned: dict[str, list[Place]], free: list[Place]) -> None:
    """All members have the same subscription: each gets the same number of partitions, or one more.

    Members that already have one more keep it where possible, so that no other partition moves.
    """
    total = len(free) + sum(map(len, owned.values()))
    least, more = divmod(total, max(len(owned), 1))
    quotas: dict[str, int] = {}
    for member, own in sorted(owned.items(), key=lambda item: len(item[1]) <= least):
        quotas[member] = least + (more > 0)
        more -= more > 0
        free += own[quotas[member] :]
        del own[quotas[member] :]
    free.sort()
    start = 0
    for member, own in owned.items():
        end = start + quotas[member] - len(own)
        own += free[start:end]
        start = end


def _share_by_subscription(owned: dict[str, list[Place]], free: list[Place], takers: list[list[list[str]]]) -> None:
    """Subscriptions differ; `takers` are the classes that subscribe to each topic. Partitions with few takers are
    assigned first, each to the taker with the fewest partitions. Then partitions move from members that have at least
    two more than another taker, until none does."""
    loads = _Loads(owned)
    width = [sum(map(len, classes)) for classes in takers]
    for place in sorted(free, key=lambda place: (width[place[0]], place)):
        loads.give(loads.least(takers[place[0]]), place)
    moved = True
    while moved:
        moved = False
        lowest = min(map(len, owned.values()))
        for member in sorted(owned, key=lambda member: (-len(owned[member]), member)):
            own = owned[member]
            if len(own) <= lowest + 1:
                break
            for at in range(len(own) - 1, -1, -1):
                taker = loads.least(takers[own[at][0]])
                if len(owned[taker]) + 1 < len(own):
                    loads.give(taker, own.pop(at))
                    loads.changed(member)
                    moved = True


class _Loads:
    """The number of partitions of each member, and the member with the fewest in a class: a heap of (load, member) for
    each class. Outdated entries are dropped when they come up."""

    def __init__(self, owned: dict[str, list[Place]]):
        self._owned = owned
        self._heaps: dict[int, list[tuple[int, str]]] = {}
        self._heap_of: dict[str, list[tuple[int, str]]] = {}

    def least(self, classes: list[list[str]]) -> str:
        return min(self._top(members) for members in classes)[1]

    def _top(self, members: list[str]) -> tuple[int, str]:
        heap = self._heaps.get(id(members))
        if heap is None:
            heap = self._heaps[id(members)] = [(len(self._owned[member]), member) for member in members]
            heapq.heapify(heap)
            self._heap_of.update(dict.fromkeys(members, heap))
        while heap[0][0] != len(self._owned[heap[0][1]]):
            heapq.heappop(heap)
        return heap[0]

    def give(self, member: str, place: Place) -> None:
        self._owned[member].append(place)
        self.changed(member)

    def changed(self, member: str) -> None:
        if (heap := self._heap_of.get(member)) is not None:
            heapq.heappush(heap, (len(self._owned[member]), member))


ASSIGNORS: Mapping[str, Assign] = {"uniform": uniform_assign, "range": range_assign}
