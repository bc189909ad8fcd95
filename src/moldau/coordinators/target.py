"""The target assignment of a group of the newer protocol: what each member is to have in the end. Pure.

Members go to an assignor by what they subscribe to, as ids of topics that there are, and what the target gave them
before, so that it can leave partitions where they are.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from moldau.cluster.image import Image
from moldau.coordinators.consumer_group import ConsumerGroup, Target


class MemberSpec(NamedTuple):
    """One member as an assignor sees it."""

    topics: frozenset[uuid.UUID]
    instance_id: str | None
    rack_id: str | None
    assigned: Target


Assign = Callable[[Mapping[str, MemberSpec], Mapping[uuid.UUID, int]], Mapping[str, Mapping[uuid.UUID, list[int]]]]
"""Members and the number of partitions of each topic -> what each member gets."""


def range_assign(
    members: Mapping[str, MemberSpec], topics: Mapping[uuid.UUID, int]
) -> dict[str, dict[uuid.UUID, list[int]]]:
    assigned: dict[str, dict[uuid.UUID, list[int]]] = {member: {} for member in members}
    order = sorted(members, key=lambda m: (members[m].instance_id is None, members[m].instance_id or m))
    for topic in sorted(topics):
        takers = [member for member in order if topic in members[member].topics]
        share, more = divmod(topics[topic], len(takers)) if takers else (0, 0)
        start = 0
        for at, member in enumerate(takers):
            end = start + share + (at < more)
            if end > start:
                assigned[member][topic] = list(range(start, end))
            start = end
    return assigned


def uniform_assign(
    members: Mapping[str, MemberSpec], topics: Mapping[uuid.UUID, int]
) -> dict[str, dict[uuid.UUID, list[int]]]:
    subscribed = [t for t in sorted(topics) if any(t in spec.topics for spec in members.values())]
    total = sum(topics[t] for t in subscribed)
    least, more = divmod(total, max(len(members), 1))
    free = {(t, p) for t in subscribed for p in range(topics[t])}
    assigned: dict[str, dict[uuid.UUID, list[int]]] = {member: {} for member in members}
    counts = dict.fromkeys(sorted(members), 0)
    for member in counts:
        spec = members[member]
        for topic, partitions in spec.assigned.items():
            for p in sorted(partitions):
                quota = least + (more > 0)
                if counts[member] < quota and topic in spec.topics and (topic, p) in free:
                    free.discard((topic, p))
                    assigned[member].setdefault(topic, []).append(p)
                    counts[member] += 1
                    if counts[member] == least + 1:
                        more -= 1
    for topic, p in sorted(free):
        takers = [member for member in counts if topic in members[member].topics]
        member = min(takers, key=lambda m: counts[m])
        assigned[member].setdefault(topic, []).append(p)
        counts[member] += 1
    return assigned


ASSIGNORS: Mapping[str, Assign] = {"uniform": uniform_assign, "range": range_assign}


def topic_ids(names: Iterable[str], image: Image) -> frozenset[uuid.UUID]:
    """The ids of those of these topics that there are."""
    topics = image.topics
    return frozenset(topics[name].id for name in names if name in topics)


def new_targets(group: ConsumerGroup, assign: Assign, image: Image) -> dict[str, Target]:
    """What each member is to have."""
    cache: dict[tuple[object, object], frozenset[uuid.UUID]] = {}
    specs: dict[str, MemberSpec] = {}
    wanted: dict[uuid.UUID, int] = {}
    for member_id, member in group.members.items():
        key = (member.topics, member.expression)
        ids = cache.get(key)
        if ids is None:
            ids = cache[key] = topic_ids(group.topics_of(member), image)
        specs[member_id] = MemberSpec(ids, member.instance_id, member.rack_id, group.targets.get(member_id, {}))
    for ids in cache.values():
        for topic in ids:
            wanted[topic] = len(image.topics_by_id[topic].partitions)
    given = assign(specs, wanted)
    return {
        member_id: {topic: frozenset(parts) for topic, parts in given.get(member_id, {}).items() if parts}
        for member_id in specs
    }
