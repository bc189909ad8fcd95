"""The target assignment of a consumer group: the partitions that each member is to have in the end. Pure.

An assignor gets each member's subscription, as ids of topics that exist, and the member's part of the last target, so
that it can leave partitions where they are.
"""

import hashlib
import struct
import uuid
from collections.abc import Iterable

from moldau.cluster.state.image import Image
from moldau.coordinators.consumer.group import ConsumerGroup, TargetAssignment
from moldau.coordinators.consumer.server_assignors import Assign, MemberSpec


def topic_ids(names: Iterable[str], image: Image) -> frozenset[uuid.UUID]:
    """The ids of those of the topics that exist."""
    topics = image.topics
    return frozenset(topics[name].id for name in names if name in topics)


def new_targets(group: ConsumerGroup, assign: Assign, image: Image) -> dict[str, TargetAssignment]:
    """The target of each member."""
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


def metadata_hash(topics: Iterable[str], image: Image) -> int:
    """Changes whenever one of these topics is created, deleted or gets partitions; 0 if none of them exists."""
    digest, known = hashlib.blake2b(digest_size=8), False
    for name in topics:
        topic = image.topics.get(name)
        if topic is not None:
            known = True
            digest.update(struct.pack(">16si", topic.id.bytes, len(topic.partitions)))
    return int.from_bytes(digest.digest(), "big", signed=True) if known else 0
