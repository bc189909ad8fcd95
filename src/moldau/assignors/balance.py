"""Sharing out partitions as evenly as subscriptions allow, with as few moves as possible; pure.

`balanced` is the core of the assignors that keep partitions where they are: `sticky` and `cooperative-sticky` of the
client (`sticky`), `uniform` of the coordinator. A topic is any value that can be a key of a dict.
"""

import heapq
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)
Place: TypeAlias = tuple[int, int]
"""The position of a topic in the order of topics, and one of its partitions."""


class Subscribers(Generic[T]):
    """The subscribers of each topic. Members with the same subscription form a class; few groups have more than one."""

    def __init__(self, order: list[str], topics: Mapping[str, frozenset[T]]):
        self.order = order
        self.topics = topics
        classes: dict[frozenset[T], list[str]] = {}
        for member in order:
            classes.setdefault(topics[member], []).append(member)
        self._wanted = list(classes)
        self._classes = list(classes.values())
        self._merged: dict[tuple[int, ...], list[str]] = {}
        self._of: dict[T, tuple[int, ...]] = {}

    def classes_of(self, topic: T) -> list[list[str]]:
        return [self._classes[at] for at in self._subscribing(topic)]

    def of(self, topic: T) -> list[str]:
        """The topic's subscribers, in order."""
        subscribing = self._subscribing(topic)
        if len(subscribing) == len(self._classes):
            return self.order
        merged = self._merged.get(subscribing)
        if merged is None:
            wanted = {member for at in subscribing for member in self._classes[at]}
            merged = self._merged[subscribing] = [member for member in self.order if member in wanted]
        return merged

    def _subscribing(self, topic: T) -> tuple[int, ...]:
        classes = self._of.get(topic)
        if classes is None:
            classes = self._of[topic] = tuple(at for at, wanted in enumerate(self._wanted) if topic in wanted)
        return classes


def balanced(
    subscribers: Subscribers[T], topics: Mapping[T, int], owned: Mapping[str, Iterable[tuple[T, int]]]
) -> dict[str, list[tuple[T, int]]]:
    """The partitions of each member, in the order of `topics` (topic -> number of partitions).

    Every partition of a topic with subscribers gets one owner among them. `owned` are the partitions that members have
    now; no partition may have two owners there. Those that exist and are still subscribed to stay unless that conflicts
    with the balance.
    """
    known = [topic for topic in topics if subscribers.of(topic)]
    positions = {topic: at for at, topic in enumerate(known)}
    free = {(at, p): None for at, topic in enumerate(known) for p in range(topics[topic])}
    shares: dict[str, list[Place]] = {member: [] for member in subscribers.order}
    for member, share in shares.items():
        wanted = subscribers.topics[member]
        for topic, p in owned.get(member, ()):
            at = positions.get(topic, -1)
            if (at, p) in free and topic in wanted:
                share.append((at, p))
        share.sort()
        for place in share:
            del free[place]
    if all(len(subscribers.of(topic)) == len(shares) for topic in known):
        _share_alike(shares, list(free))
    else:
        _share_by_subscription(shares, list(free), [subscribers.classes_of(topic) for topic in known])
    return {member: [(known[at], p) for at, p in sorted(share)] for member, share in shares.items()}


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
    while _level(owned, takers, loads):
        pass


def _level(owned: dict[str, list[Place]], takers: list[list[list[str]]], loads: "_Loads") -> bool:
    """Each of the fullest members that can gives one partition away; False if nobody can. Members that are less full
    wait until it is their turn, so that no more partitions move than the balance needs."""
    lowest = min(map(len, owned.values()))
    load, moved = 0, False
    for member in sorted(owned, key=lambda member: (-len(owned[member]), member)):
        own = owned[member]
        if len(own) <= lowest + 1 or (moved and len(own) < load):
            break
        load = len(own)
        for at in range(len(own) - 1, -1, -1):
            taker = loads.least(takers[own[at][0]])
            if len(owned[taker]) + 1 < len(own):
                loads.give(taker, own.pop(at))
                loads.changed(member)
                moved = True
                break
    return moved


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
