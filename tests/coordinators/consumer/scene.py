"""Consumer groups on the stage of `scene`: a cluster whose topics scripts make, and heartbeats.

Scripts name topics `t` with numbers of partitions (`topic t 3`), and partitions `t-0`. A member says `owns=` only if
it is written; `owns=-` says that it has nothing. Assignments are written as `t-0+t-1`.
"""

import re
import uuid
from collections.abc import Iterable, Mapping

from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.config import GROUP_SETTINGS, GroupConfig
from moldau.coordinators.consumer.messages import (
    ConsumerGroupSettings,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    PartitionsByTopic,
)
from moldau.coordinators.consumer.records import ConsumerGroupRecord, ConsumerRecordType
from moldau.errors import ErrorCode

LEADER = PartitionImage(1, 0, (1,), (1,))


def topic_id(name: str) -> uuid.UUID:
    """An id that tells the name back, for topics of a few letters."""
    return uuid.UUID(bytes=name.encode().rjust(16, b"\0"))


def name_of(topic: uuid.UUID) -> str:
    return topic.bytes.lstrip(b"\0").decode()


def with_topic(image: Image, name: str, partitions: int) -> Image:
    """The image with that topic; without partitions it is gone."""
    topic = TopicImage(name, topic_id(name), (LEADER,) * partitions, {}) if partitions else None
    return image.with_topics({name: topic})


def matching(expression: str, topics: Iterable[str]) -> list[str]:
    """Expressions as Python has them: which ones there are is not what is played here."""
    try:
        pattern = re.compile(expression)
        return [topic for topic in topics if pattern.fullmatch(topic)]
    except re.error as error:
        raise ValueError(str(error)) from None


GROUP_FIELDS = {setting.field for setting in GROUP_SETTINGS.values()}


def consumer_settings(given: Mapping[str, int]) -> ConsumerGroupSettings:
    """`given` names settings of groups (`session_timeout_ms`) or of their coordinator (`max_size`)."""
    of_groups = {"assignment_interval_ms": 0, **given}
    rest = {name: of_groups.pop(name) for name in given if f"consumer_{name}" not in GROUP_FIELDS}
    config = GroupConfig(**{f"consumer_{name}": value for name, value in of_groups.items()})
    return ConsumerGroupSettings(of_group=lambda _: config, **rest)


def beat_of(name: str, pairs: Mapping[str, str]) -> ConsumerHeartbeat:
    """A heartbeat; one at epoch 0 says all it has to, one at another only what is written."""
    joins = pairs["epoch"] == "0"
    topics = pairs.get("topics", "t" if joins and "expression" not in pairs else None)
    owns = pairs.get("owns", "-" if joins else None)
    hidden = pairs.get("hidden")
    return ConsumerHeartbeat(
        group_id=pairs.get("group", "g"),
        member_id=pairs.get("id", name),
        epoch=int(pairs["epoch"]),
        instance_id=pairs.get("instance"),
        rebalance_timeout_ms=int(pairs.get("rebalance", "30000" if joins else "-1")),
        topics=None if topics is None else tuple(topic for topic in topics.split("+") if topic),
        expression=pairs.get("expression"),
        assignor=pairs.get("assignor"),
        owned=None if owns is None else _owned(owns),
        client_id="c",
        client_host="/h",
        may_see=None if hidden is None else lambda topic: topic not in hidden.split("+"),
    )


def _owned(text: str) -> dict[uuid.UUID, frozenset[int]]:
    owned: dict[uuid.UUID, frozenset[int]] = {}
    for word in text.split("+") if text != "-" else []:
        name, _, partition = word.rpartition("-")
        owned[topic_id(name)] = owned.get(topic_id(name), frozenset()) | {int(partition)}
    return owned


def shown(assigned: PartitionsByTopic) -> str:
    words = [f"{name_of(topic)}-{p}" for topic, partitions in assigned.items() for p in sorted(partitions)]
    return "+".join(sorted(words)) or "nothing"


def told(beaten: ConsumerHeartbeatReply) -> str:
    if beaten.error is not ErrorCode.NONE:
        return beaten.error.name
    assignment = "" if beaten.assignment is None else f", has {shown(beaten.assignment)}"
    return f"{beaten.member_id} at epoch {beaten.epoch}{assignment}"


def said(record: ConsumerGroupRecord) -> str:
    """A record in words."""
    value, who = record.value, f"{record.group} {record.name}".rstrip()
    what = record.kind.name.lower().replace("_", " ")
    if value is None:
        return f"{what} {who} deleted"
    match record.kind:
        case ConsumerRecordType.EPOCH:
            return f"epoch {who} {value.epoch}"
        case ConsumerRecordType.MEMBER:
            reads = "+".join(value.subscribed_topic_names) or "no topic"
            matches = f" and {value.subscribed_topic_regex}" if value.subscribed_topic_regex else ""
            return f"member {who} reads {reads}{matches}"
        case ConsumerRecordType.TARGET_EPOCH:
            return f"target epoch {who} {value.assignment_epoch}"
        case ConsumerRecordType.TARGET:
            return f"target {who}: {shown({t.topic_id: t.partitions for t in value.topic_partitions})}"
        case ConsumerRecordType.CURRENT:
            has = shown({t.topic_id: t.partitions for t in value.assigned_partitions})
            back = {t.topic_id: t.partitions for t in value.partitions_pending_revocation}
            gives = f", gives back {shown(back)}" if back else ""
            return f"current {who}: epoch {value.member_epoch} after {value.previous_member_epoch}, has {has}{gives}"
        case ConsumerRecordType.EXPRESSION:
            return f"expression {who}: {'+'.join(value.topics) or 'nothing'}"
    raise AssertionError(record)
