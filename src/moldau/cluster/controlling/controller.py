"""The controller's decisions: whether topics may be created, deleted, enlarged or changed, and what they become. Where
their replicas go is in `placement`, who leads them in `elections`.

Every decision is a pure function from an `Image` and a request to the new image of a topic, or to a `Refusal`; random
choices are handed in. Error codes and their precedence are those of Kafka 4.3.1; the sentences are ours. A request that
would create more than `PARTITIONS_MAX` partitions is refused as a whole.
"""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from moldau.cluster.state.image import NO_LEADER, Image, PartitionImage, TopicImage
from moldau.cluster.state.placement import NO_CHANCE, Draw, placed, start_at
from moldau.cluster.state.reassignment import target_of
from moldau.config import topic_config
from moldau.errors import ConfigError, ErrorCode
from moldau.names import TopicPartition, counted

if TYPE_CHECKING:
    from moldau.config import BrokerConfig

PARTITIONS_MAX = 10_000
RECORDS_MAX = 10_000
"""Kafka's limit for one request: a record is written for each topic, each partition and each setting."""
NAME_MAX = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
Assignments: TypeAlias = Sequence[tuple[int, Sequence[int]]]


_NO_ID = uuid.UUID(int=0)


class Refusal(NamedTuple):
    """A refused request: Kafka's error code, and a sentence for people."""

    code: ErrorCode
    message: str | None = None


_DOUBLED = Refusal(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")


class NewTopic(NamedTuple):
    """A topic to create; -1 means the default. `assignments` are (partition, replicas), or empty."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Assignments = ()
    configs: Sequence[tuple[str, str | None]] = ()


class MorePartitions(NamedTuple):
    """A topic to enlarge to `total` partitions; `assignments` are the replicas of the new ones, or None."""

    name: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


def name_refusal(name: str) -> Refusal | None:
    """The reason why a topic cannot have that name. A name that passes is safe as part of a path."""
    if not name or name in (".", ".."):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"a topic cannot be named {name!r}")
    if len(name) > NAME_MAX:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"a topic's name has at most {NAME_MAX} characters")
    if not _NAME.fullmatch(name):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "a topic's name has only a-z, A-Z, 0-9, '.', '_' and '-'")
    return None


def create_topics(
    image: Image,
    config: "BrokerConfig",
    wanted: Sequence[NewTopic],
    new_id: Callable[[], uuid.UUID],
    draw: Draw = NO_CHANCE,
) -> list[tuple[str, TopicImage | Refusal]]:
    """The new topics by name; a name that occurs twice is refused once, after the others. Each topic's partitions begin
    where those of the topic before end."""
    counts = Counter(request.name for request in wanted)
    single = [request for request in wanted if counts[request.name] == 1]
    too_much = _too_much(config, single)
    taken = {_plain(name): name for name in image.topics}
    results: list[tuple[str, TopicImage | Refusal]] = []
    for request in single:
        made = too_much or _create_topic(image, config, request, taken, draw)
        if isinstance(made, TopicImage):
            made = made._replace(id=new_id())
            taken[_plain(made.name)] = made.name
            draw = draw._replace(start=draw.start + len(made.partitions))
        results.append((request.name, made))
    return results + [(name, _DOUBLED) for name, count in counts.items() if count > 1]


def _plain(name: str) -> str:
    """Names that differ only in '.' and '_' would share the names of their metrics, so such a topic is refused."""
    return name.replace(".", "_")


def _too_much(config: "BrokerConfig", wanted: Sequence[NewTopic]) -> Refusal | None:
    counts = [
        len(request.assignments)
        or (config.num_partitions if request.num_partitions == -1 else max(request.num_partitions, 0))
        for request in wanted
    ]
    if sum(counts) > PARTITIONS_MAX or sum(counts) + sum(1 + len(request.configs) for request in wanted) > RECORDS_MAX:
        return Refusal(ErrorCode.POLICY_VIOLATION, f"one request can make at most {PARTITIONS_MAX} partitions")
    return None


def _create_topic(
    image: Image, config: "BrokerConfig", request: NewTopic, taken: Mapping[str, str], draw: Draw
) -> TopicImage | Refusal:
    refusal = name_refusal(request.name) or _name_taken(image, request.name, taken)
    if refusal:
        return refusal
    overrides = _new_overrides(config, request.configs)
    if isinstance(overrides, Refusal):
        return overrides
    replicas = _assigned(image, request) if request.assignments else _spread(image, config, request, draw)
    if isinstance(replicas, Refusal):
        return replicas
    return TopicImage(request.name, _NO_ID, tuple(_new_partition(image, who) for who in replicas), overrides)


def name_taken(image: Image, name: str) -> Refusal | None:
    """The reason why a topic cannot have that name beside the existing topics."""
    return _name_taken(image, name, {_plain(other): other for other in image.topics})


def _name_taken(image: Image, name: str, taken: Mapping[str, str]) -> Refusal | None:
    if name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists already")
    other = taken.get(_plain(name))
    if other is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} and {other} differ only in '.' and '_'")
    return None


def _new_overrides(config: "BrokerConfig", configs: Iterable[tuple[str, str | None]]) -> dict[str, str] | Refusal:
    overrides: dict[str, str] = {}
    for name, value in configs:
        if value is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"{name[:NAME_MAX]} has no value")
        overrides[name] = value
    return overrides_refusal(config, overrides) or overrides


def overrides_refusal(config: "BrokerConfig", overrides: Mapping[str, str]) -> Refusal | None:
    """The reason why a topic cannot have these overrides."""
    try:
        topic_config(config, overrides)
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    return None


def _new_partition(image: Image, replicas: Sequence[int]) -> PartitionImage:
    """Every live replica starts in the ISR; the first one leads."""
    isr = tuple(broker for broker in replicas if broker in image.brokers) or tuple(replicas[:1])
    return PartitionImage(isr[0], 0, tuple(replicas), isr)


def _assigned(image: Image, request: NewTopic) -> Sequence[Sequence[int]] | Refusal:
    """The client's replicas, one list for each partition."""
    if request.replication_factor != -1 or request.num_partitions != -1:
        return Refusal(ErrorCode.INVALID_REQUEST, "with assignments, partitions and replication factor must be -1")
    by_number = dict(request.assignments)
    if len(by_number) < len(request.assignments):
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned more than once")
    for _, replicas in request.assignments:
        refusal = _assignment_refusal(image, replicas, None)
        if refusal:
            return refusal
    if any(number not in by_number for number in range(len(by_number))):
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assigned partitions are numbered from 0 without a gap")
    if len({len(replicas) for replicas in by_number.values()}) > 1:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "all partitions of a topic must have the same number of replicas"
        )
    return [by_number[number] for number in range(len(by_number))]


def _assignment_refusal(image: Image, replicas: Sequence[int], factor: int | None) -> Refusal | None:
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        return Refusal(code, "a partition is assigned to no broker")
    for broker in replicas:
        if broker not in image.brokers:
            return Refusal(code, f"broker {broker} does not exist")
    if len(set(replicas)) < len(replicas):
        return Refusal(code, "a partition is assigned to one broker twice")
    if factor is not None and len(replicas) != factor:
        return Refusal(code, f"the topic's partitions have {factor} replicas each")
    return None


def _spread(image: Image, config: "BrokerConfig", request: NewTopic, draw: Draw) -> Sequence[Sequence[int]] | Refusal:
    factor = config.default_replication_factor if request.replication_factor == -1 else request.replication_factor
    count = config.num_partitions if request.num_partitions == -1 else request.num_partitions
    if factor < 1:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, "the replication factor is at least 1, or -1 for the default"
        )
    if count < 1:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "a topic has at least 1 partition, or -1 for the default")
    return _too_few_brokers(image, factor) or placed(image.brokers, count, factor, draw)


def _too_few_brokers(image: Image, factor: int) -> Refusal | None:
    if factor <= len(image.brokers):
        return None
    sentence = f"the replication factor {factor} is above the number of running brokers, {len(image.brokers)}"
    return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, sentence)


def delete_topics(
    image: Image, wanted: Sequence[tuple[str | None, uuid.UUID | None]]
) -> list[tuple[str | None, uuid.UUID | None, TopicImage | Refusal]]:
    """The topics to delete, each named by its name or (name None) by its id; a topic that is named twice is refused
    once."""
    topics = [image.topic(name, topic_id) for name, topic_id in wanted]
    keys = [topic.id if topic else request for topic, request in zip(topics, wanted, strict=True)]
    counts = Counter(keys)
    asked = dict.fromkeys(part for request in wanted for part in request)
    results: list[tuple[str | None, uuid.UUID | None, TopicImage | Refusal]] = []
    for (name, topic_id), topic, key in zip(wanted, topics, keys, strict=True):
        if name is None and topic_id is None:
            results.append((None, None, Refusal(ErrorCode.INVALID_REQUEST, "neither a topic's name nor its id")))
        elif name is not None and topic_id is not None:
            both = Refusal(ErrorCode.INVALID_REQUEST, "give a topic's name or its id, not both")
            results.append((name, topic_id, both))
        elif counts[key] > 1:
            if topic is not None:
                name = topic.name if topic.name in asked else None
                topic_id = topic.id if topic.id in asked else None
            results.append((name, topic_id, _DOUBLED))
            counts[key] = -1
        elif counts[key] == 1:
            code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            results.append((name, topic_id, topic or Refusal(code, "this topic does not exist")))
    return results


def create_partitions(
    image: Image, wanted: Sequence[MorePartitions], shift: int = 0
) -> list[tuple[str, TopicImage | Refusal]]:
    """The topics with their new partitions; a topic that is named twice is refused once. `shift` is as in a `Draw`."""
    counts = Counter(request.name for request in wanted)
    added = 0
    results: list[tuple[str, TopicImage | Refusal]] = []
    for request in {request.name: request for request in wanted}.values():
        grown: TopicImage | Refusal
        if counts[request.name] > 1:
            grown = _DOUBLED
        else:
            grown = _create_partitions(image, request, shift, PARTITIONS_MAX - added)
        if isinstance(grown, TopicImage):
            added += len(grown.partitions) - len(image.topics[request.name].partitions)
        results.append((request.name, grown))
    return results


def _create_partitions(image: Image, request: MorePartitions, shift: int, most: int) -> TopicImage | Refusal:
    topic = image.topics.get(request.name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    more = request.total - len(topic.partitions)
    if more <= 0:
        sentence = (
            f"topic {topic.name} has {counted(len(topic.partitions), 'partition')}, and {request.total:,} is not more"
        )
        return Refusal(ErrorCode.INVALID_PARTITIONS, sentence)
    if request.assignments is not None and len(request.assignments) != more:
        sentence = f"{counted(len(request.assignments), 'assignment')} for {counted(more, 'new partition')}"
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    if more > most:
        return Refusal(ErrorCode.POLICY_VIOLATION, f"one request can make at most {PARTITIONS_MAX} partitions")
    factor = len(target_of(topic.partitions[0]))
    replicas: Sequence[Sequence[int]]
    if request.assignments is None:
        refusal = _too_few_brokers(image, factor)
        if refusal:
            return refusal
        draw = Draw(start_at(image.brokers, topic.partitions[0].replicas[0]), shift)
        replicas = placed(image.brokers, more, factor, draw, len(topic.partitions))
    else:
        replicas = request.assignments
        for who in replicas:
            refusal = _assignment_refusal(image, who, factor)
            if refusal:
                return refusal
    return topic._replace(partitions=topic.partitions + tuple(_new_partition(image, who) for who in replicas))


def election_refusal(image: Image, tp: TopicPartition, *, unclean: bool) -> Refusal:
    """The reason why no election is held for this partition, or why it has no result."""
    part = image.partition(tp)
    if part is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {tp.partition} of {shortened(tp.topic)} does not exist"
        )
    if part.leader == part.replicas[0] or (unclean and part.leader != NO_LEADER):
        who = "a leader" if unclean else "its preferred leader"
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, f"the partition has {who} already")
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if len(part.replicas) == 1 and part.replicas[0] in image.brokers:
        return Refusal(code, "the log folder of the partition is offline")
    return Refusal(code, "no replica of the partition is up" if unclean else "the preferred replica is not in sync")


def shortened(name: str) -> str:
    """A client's name, shortened for a sentence."""
    return repr(name[:NAME_MAX])


def with_directories(topic: TopicImage, broker_id: int, directories: Mapping[int, str]) -> TopicImage:
    """The topic with these partitions (by number) of the broker in these log folders."""
    return topic._replace(
        partitions=tuple(
            part.with_directory(broker_id, directories[number]) if number in directories else part
            for number, part in enumerate(topic.partitions)
        )
    )


def unmade(topic: TopicImage, numbers: Collection[int]) -> TopicImage:
    """The topic with these partitions recorded as not made yet."""
    return topic._replace(
        partitions=tuple(
            part._replace(made=part.made and number not in numbers) for number, part in enumerate(topic.partitions)
        )
    )


def made_in(topic: TopicImage, broker_id: int, directories: Mapping[int, str]) -> TopicImage:
    """The topic after the broker's folders of these partitions were found in these log folders (number -> folder id).
    They count as made, and a partition that lost its leader because it was expected in another folder gets it back."""

    def settled(part: PartitionImage, directory: str) -> PartitionImage:
        part = part.with_directory(broker_id, directory)._replace(made=True)
        if part.leader == NO_LEADER and broker_id in part.isr:
            part = part._replace(leader=broker_id, leader_epoch=part.leader_epoch + 1)
        return part

    return topic._replace(
        partitions=tuple(
            settled(part, directories[number]) if number in directories else part
            for number, part in enumerate(topic.partitions)
        )
    )
