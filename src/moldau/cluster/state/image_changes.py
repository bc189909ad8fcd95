"""What differs between two images of a cluster, as a value that can be sent and applied.

`applied(before, difference(before, after))` equals `after` and shares with `before` all that did not change. A change
names single partitions, so one partition of a topic of 10,000 costs one entry. The whole image is its change from the
empty one of the same cluster.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple, TypeVar

from moldau.cluster.state.acls import AclPattern, Entries
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.state.quotas import QuotaOwner, QuotaValues

K = TypeVar("K")
V = TypeVar("V")


class TopicDifference(NamedTuple):
    """An existing topic's new settings (None: unchanged) and its new or changed partitions, by number. Partitions that
    are beyond the previous last one follow it without a gap."""

    name: str
    overrides: Mapping[str, str] | None
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True)
class ImageChange:
    """The step from one image to a later one of the same cluster. In a mapping, None means that the entry is gone.

    `created` has topics that are new or have another id than before; `removed` has the names of topics without a
    successor of that name.
    """

    controller_id: int = NO_LEADER
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage | None] = field(default_factory=dict)
    broker_overrides: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    group_overrides: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    created: tuple[TopicImage, ...] = ()
    changed: tuple[TopicDifference, ...] = ()
    removed: tuple[str, ...] = ()
    deleted: Mapping[uuid.UUID, str | None] = field(default_factory=dict)
    acls: Mapping[AclPattern, Entries | None] = field(default_factory=dict)
    quotas: Mapping[QuotaOwner, QuotaValues | None] = field(default_factory=dict)
    client_metrics: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        """The size of the change: partitions, brokers, topics, owners of settings and access rights in it."""
        new = sum(1 + len(topic.partitions) for topic in self.created)
        different = sum(1 + len(topic.partitions) for topic in self.changed)
        owners = len(self.broker_overrides) + len(self.group_overrides) + len(self.quotas) + len(self.client_metrics)
        rights = sum(1 + len(entries or ()) for entries in self.acls.values())
        return new + different + owners + rights + len(self.brokers) + len(self.removed) + len(self.deleted)


def difference(before: Image, after: Image) -> ImageChange:
    """The change that leads from one image to the other, of the same cluster."""
    created, changed, removed = [], [], []
    for name, old, topic in _differing(before.topics, after.topics):
        if topic is None:
            removed.append(name)
        elif old is None or old.id != topic.id or len(topic.partitions) < len(old.partitions):
            created.append(topic)
        else:
            changed.append(_topic_difference(old, topic))
    return ImageChange(
        after.controller_id,
        after.controller_epoch,
        _different(before.brokers, after.brokers),
        _different(before.broker_overrides, after.broker_overrides),
        _different(before.group_overrides, after.group_overrides),
        tuple(created),
        tuple(changed),
        tuple(removed),
        _different(before.deleted, after.deleted),
        _different(before.acls, after.acls),
        quotas=_different(before.quotas, after.quotas),
        client_metrics=_different(before.client_metrics, after.client_metrics),
    )


def applied(image: Image, change: ImageChange) -> tuple[Image, list[str]]:
    """The image after the change, and the names of the topics that may be different in it: all of them if settings of
    brokers changed, since topics inherit these."""
    topics: dict[str, TopicImage | None] = {topic.name: topic for topic in change.created}
    for topic in change.changed:
        topics[topic.name] = _topic_applied(image.topics[topic.name], topic)
    topics.update(dict.fromkeys(change.removed))
    after = image.with_topics(topics) if topics else image
    if change.group_overrides:
        after = after.with_groups(change.group_overrides)
    if change.acls:
        after = after.with_acls(change.acls)
    if change.quotas:
        after = after.with_quotas(change.quotas)
    if change.client_metrics:
        after = after.with_client_metrics(change.client_metrics)
    after = replace(
        after,
        controller_id=change.controller_id,
        controller_epoch=change.controller_epoch,
        brokers=_merged(image.brokers, change.brokers),
        broker_overrides=_merged(image.broker_overrides, change.broker_overrides),
        deleted=_merged(image.deleted, change.deleted),
    )
    if not change.broker_overrides:
        return after, list(topics)
    return after, list(dict.fromkeys([*topics, *after.topics]))


def whole(image: Image) -> ImageChange:
    """The image as a change from the empty one."""
    return difference(Image(image.cluster_id), image)


def replaced(image: Image, by: ImageChange) -> tuple[Image, list[str]]:
    """The image that `by` is the whole of, sharing with `image` what is equal, and the names of the topics that may be
    different."""
    return applied(image, difference(image, applied(Image(image.cluster_id), by)[0]))


def _topic_difference(old: TopicImage, topic: TopicImage) -> TopicDifference:
    overrides = None if topic.overrides == old.overrides else topic.overrides
    if topic.partitions is old.partitions:
        return TopicDifference(topic.name, overrides, {})
    known = len(old.partitions)
    pairs = enumerate(zip(old.partitions, topic.partitions, strict=False))
    partitions = {number: now for number, (then, now) in pairs if now is not then and now != then}
    partitions.update(enumerate(topic.partitions[known:], known))
    return TopicDifference(topic.name, overrides, partitions)


def _topic_applied(topic: TopicImage, change: TopicDifference) -> TopicImage:
    if change.overrides is not None:
        topic = topic._replace(overrides=change.overrides)
    if not change.partitions:
        return topic
    partitions = list(topic.partitions)
    for number, partition in sorted(change.partitions.items()):
        partitions[number : number + 1] = [partition]
    return topic._replace(partitions=tuple(partitions))


def _differing(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """The key, old and new value of all that differs, what is gone first."""
    if before is after:
        return
    for key, old in before.items():
        if key not in after:
            yield key, old, None
    for key, new in after.items():
        previous = before.get(key)
        if new is not previous and new != previous:
            yield key, previous, new


def _different(before: Mapping[K, V], after: Mapping[K, V]) -> dict[K, V | None]:
    return {key: new for key, _, new in _differing(before, after)}


def _merged(before: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    """In the order of the keys where something changed, so that all brokers list them alike."""
    if not changes:
        return before
    merged = {**before, **changes}
    return {key: value for key, value in sorted(merged.items(), key=itemgetter(0)) if value is not None}
