"""What the controller decides: may these topics be made, deleted, enlarged, changed, and how will they look.

Every decision is a function from an `Image` and a wish to the new image of a topic, or to a `Refusal`; nothing is
written here, no clock is read, and chance is handed in. Codes, and the order in which they win, are those that Kafka
4.3.1 answers with; the sentences are ours. One request may make at most `PARTITIONS_MAX` partitions: the whole of it
is refused else.
"""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from moldau.cluster.image import NO_LEADER, Image, PartitionImage, TopicImage
from moldau.config import BrokerConfig, topic_config
from moldau.errors import ConfigError, ErrorCode
from moldau.names import TopicPartition, counted

PARTITIONS_MAX = 10_000
RECORDS_MAX = 10_000
"""Kafka's bound on what one request may write: a record for each topic, each partition and each setting."""
NAME_MAX = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
Assignments: TypeAlias = Sequence[tuple[int, Sequence[int]]]


_NO_ID = uuid.UUID(int=0)


class Refusal(NamedTuple):
    """Why not: Kafka's code, and a sentence for people."""

    code: ErrorCode
    message: str | None = None


_DOUBLED = Refusal(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")


class NewTopic(NamedTuple):
    """A topic that is wished for; -1 stands for the default. `assignments` are (partition, replicas), or empty."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Assignments = ()
    configs: Sequence[tuple[str, str | None]] = ()


class MorePartitions(NamedTuple):
    """A topic that shall have `total` partitions; `assignments` are the replicas of the new ones, or None."""

    name: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


def name_refusal(name: str) -> Refusal | None:
    """Why a topic cannot have that name. What passes is safe as a part of a path."""
    if not name or name in (".", ".."):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"a topic cannot be named {name!r}")
    if len(name) > NAME_MAX:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"a topic's name has at most {NAME_MAX} characters")
    if not _NAME.fullmatch(name):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "a topic's name has only a-z, A-Z, 0-9, '.', '_' and '-'")
    return None


def create_topics(
    image: Image, config: BrokerConfig, wanted: Sequence[NewTopic], new_id: Callable[[], uuid.UUID], start: int = 0
) -> list[tuple[str, TopicImage | Refusal]]:
    """The new topics by name, those that are named twice refused once and last. `start` spreads the first replicas."""
    counts = Counter(wish.name for wish in wanted)
    single = [wish for wish in wanted if counts[wish.name] == 1]
    too_much = _too_much(config, single)
    taken = {_plain(name): name for name in image.topics}
    results: list[tuple[str, TopicImage | Refusal]] = []
    for wish in single:
        made = too_much or _create_topic(image, config, wish, taken, start)
        if isinstance(made, TopicImage):
            made = made._replace(id=new_id())
            taken[_plain(made.name)] = made.name
            start += len(made.partitions)
        results.append((wish.name, made))
    return results + [(name, _DOUBLED) for name, count in counts.items() if count > 1]


def _plain(name: str) -> str:
    """Topics may not differ in '.' and '_' alone: names of metrics are made from theirs."""
    return name.replace(".", "_")


def _too_much(config: BrokerConfig, wanted: Sequence[NewTopic]) -> Refusal | None:
    counts = [
        len(wish.assignments) or (config.num_partitions if wish.num_partitions == -1 else max(wish.num_partitions, 0))
        for wish in wanted
    ]
    if sum(counts) > PARTITIONS_MAX or sum(counts) + sum(1 + len(wish.configs) for wish in wanted) > RECORDS_MAX:
        return Refusal(ErrorCode.POLICY_VIOLATION, f"one request can make at most {PARTITIONS_MAX} partitions")
    return None


def _create_topic(
    image: Image, config: BrokerConfig, wish: NewTopic, taken: Mapping[str, str], start: int
) -> TopicImage | Refusal:
    refusal = name_refusal(wish.name) or _name_taken(image, wish.name, taken)
    if refusal:
        return refusal
    overrides = _new_overrides(config, wish.configs)
    if isinstance(overrides, Refusal):
        return overrides
    replicas = _assigned(image, wish) if wish.assignments else _spread(image, config, wish, start)
    if isinstance(replicas, Refusal):
        return replicas
    return TopicImage(wish.name, _NO_ID, tuple(_new_partition(image, who) for who in replicas), overrides)


def name_taken(image: Image, name: str) -> Refusal | None:
    """Why a topic cannot have that name besides those that are there."""
    return _name_taken(image, name, {_plain(other): other for other in image.topics})


def _name_taken(image: Image, name: str, taken: Mapping[str, str]) -> Refusal | None:
    if name in image.topics:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists already")
    other = taken.get(_plain(name))
    if other is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} and {other} differ only in '.' and '_'")
    return None


def _new_overrides(config: BrokerConfig, configs: Iterable[tuple[str, str | None]]) -> dict[str, str] | Refusal:
    overrides: dict[str, str] = {}
    for name, value in configs:
        if value is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"{name[:NAME_MAX]} has no value")
        overrides[name] = value
    return _checked_overrides(config, overrides)


def _checked_overrides(config: BrokerConfig, overrides: dict[str, str]) -> dict[str, str] | Refusal:
    try:
        topic_config(config, overrides)
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    return overrides


def _new_partition(image: Image, replicas: Sequence[int]) -> PartitionImage:
    """Who is up is in sync, and the first of them leads."""
    isr = tuple(broker for broker in replicas if broker in image.brokers) or tuple(replicas[:1])
    return PartitionImage(isr[0], 0, tuple(replicas), isr)


def _assigned(image: Image, wish: NewTopic) -> list[Sequence[int]] | Refusal:
    """The replicas as the client gave them, one list for each partition."""
    if wish.replication_factor != -1 or wish.num_partitions != -1:
        return Refusal(ErrorCode.INVALID_REQUEST, "with assignments, partitions and replication factor must be -1")
    by_number = dict(wish.assignments)
    if len(by_number) < len(wish.assignments):
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned more than once")
    for _, replicas in wish.assignments:
        refusal = _assignment_refusal(image, replicas, None)
        if refusal:
            return refusal
    if any(number not in by_number for number in range(len(by_number))):
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assigned partitions are numbered from 0 without a gap")
    if len({len(replicas) for replicas in by_number.values()}) > 1:
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "all partitions of a topic have as many replicas")
    return [by_number[number] for number in range(len(by_number))]


def _assignment_refusal(image: Image, replicas: Sequence[int], factor: int | None) -> Refusal | None:
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        return Refusal(code, "a partition is assigned to no broker")
    for broker in replicas:
        if broker not in image.brokers:
            return Refusal(code, f"there is no broker {broker}")
    if len(set(replicas)) < len(replicas):
        return Refusal(code, "a partition is assigned to one broker twice")
    if factor is not None and len(replicas) != factor:
        return Refusal(code, f"the topic's partitions have {factor} replicas each")
    return None


def _spread(image: Image, config: BrokerConfig, wish: NewTopic, start: int) -> list[Sequence[int]] | Refusal:
    """Replicas in turn over the brokers that are up, each partition beginning one further."""
    factor = config.default_replication_factor if wish.replication_factor == -1 else wish.replication_factor
    count = config.num_partitions if wish.num_partitions == -1 else wish.num_partitions
    if factor < 1:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, "the replication factor is at least 1, or -1 for the default"
        )
    if count < 1:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "a topic has at least 1 partition, or -1 for the default")
    if factor > len(image.brokers):
        sentence = f"there are not {factor} brokers, only {len(image.brokers)}"
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, sentence)
    return _in_turn(list(image.brokers), count, factor, start)


def _in_turn(brokers: Sequence[int], count: int, factor: int, start: int) -> list[Sequence[int]]:
    spread = range(start, start + count)
    return [tuple(brokers[(first + step) % len(brokers)] for step in range(factor)) for first in spread]


def delete_topics(
    image: Image, wanted: Sequence[tuple[str | None, uuid.UUID | None]]
) -> list[tuple[str | None, uuid.UUID | None, TopicImage | Refusal]]:
    """The topics to delete, each wish by name or (name None) by id; what is meant twice is refused once."""
    found = [image.topic(name, topic_id) for name, topic_id in wanted]
    keys = [topic.id if topic else wish for topic, wish in zip(found, wanted, strict=True)]
    counts = Counter(keys)
    asked = dict.fromkeys(part for wish in wanted for part in wish)
    results: list[tuple[str | None, uuid.UUID | None, TopicImage | Refusal]] = []
    for (name, topic_id), topic, key in zip(wanted, found, keys, strict=True):
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
            results.append((name, topic_id, topic or Refusal(code, "there is no such topic")))
    return results


def create_partitions(
    image: Image, wanted: Sequence[MorePartitions], start: int = 0
) -> list[tuple[str, TopicImage | Refusal]]:
    """The topics with their new partitions, those that are named twice refused once."""
    counts = Counter(wish.name for wish in wanted)
    added = 0
    results: list[tuple[str, TopicImage | Refusal]] = []
    for wish in {wish.name: wish for wish in wanted}.values():
        grown: TopicImage | Refusal
        if counts[wish.name] > 1:
            grown = _DOUBLED
        else:
            grown = _create_partitions(image, wish, start, PARTITIONS_MAX - added)
        if isinstance(grown, TopicImage):
            added += len(grown.partitions) - len(image.topics[wish.name].partitions)
        results.append((wish.name, grown))
    return results


def _create_partitions(image: Image, wish: MorePartitions, start: int, most: int) -> TopicImage | Refusal:
    topic = image.topics.get(wish.name)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    more = wish.total - len(topic.partitions)
    if more <= 0:
        sentence = (
            f"topic {topic.name} has {counted(len(topic.partitions), 'partition')}, and {wish.total:,} is not more"
        )
        return Refusal(ErrorCode.INVALID_PARTITIONS, sentence)
    if wish.assignments is not None and len(wish.assignments) != more:
        sentence = f"{counted(len(wish.assignments), 'assignment')} for {counted(more, 'new partition')}"
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    if more > most:
        return Refusal(ErrorCode.POLICY_VIOLATION, f"one request can make at most {PARTITIONS_MAX} partitions")
    factor = len(topic.partitions[0].replicas)
    replicas: Sequence[Sequence[int]]
    if wish.assignments is None:
        if factor > len(image.brokers):
            sentence = f"there are not {factor} brokers, only {len(image.brokers)}"
            return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, sentence)
        replicas = _in_turn(list(image.brokers), more, factor, start + len(topic.partitions))
    else:
        replicas = wish.assignments
        for who in replicas:
            refusal = _assignment_refusal(image, who, factor)
            if refusal:
                return refusal
    return topic._replace(partitions=topic.partitions + tuple(_new_partition(image, who) for who in replicas))


def election_refusal(image: Image, tp: TopicPartition, *, unclean: bool) -> Refusal:
    """The reason why no leader of this partition is elected. Its preferred replica leads whenever it is up, so an
    election has nothing to choose from."""
    part = image.partition(tp)
    if part is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {tp.partition} of {_cut(tp.topic)} does not exist"
        )
    if part.leader == part.replicas[0] or (unclean and part.leader != NO_LEADER):
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "the partition is led by the replica that should lead it")
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return Refusal(code, "the log folder of the partition is offline")


def reassignment_refusal(image: Image, tp: TopicPartition, replicas: Sequence[int] | None) -> Refusal | None:
    """The reason why this partition cannot have these replicas, or, for None, why no move can be cancelled."""
    part = image.partition(tp)
    if part is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {tp.partition} of {_cut(tp.topic)} does not exist"
        )
    if replicas is None:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    refusal = _assignment_refusal(image, replicas, None)
    if refusal is None and tuple(replicas) != part.replicas:
        refusal = Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "this broker does not move replicas to other brokers")
    return refusal


def _cut(name: str) -> str:
    """A name that a client sent, short enough for a sentence."""
    return repr(name[:NAME_MAX])


def with_overrides(image: Image, config: BrokerConfig, name: str, overrides: Mapping[str, str]) -> TopicImage | Refusal:
    """A topic with other settings of its own."""
    checked = _checked_overrides(config, dict(overrides))
    return checked if isinstance(checked, Refusal) else image.topics[name]._replace(overrides=checked)


def lead_again(
    image: Image, broker_id: int, *, clean: bool, directories: Mapping[str, bool] | None = None
) -> list[TopicImage]:
    """The topics that change when a broker comes up: it leads what has no other, in a new epoch if it lost power.

    `directories` are the ids of its log folders that are there, and whether each was left clean; what is in another
    one it cannot lead. After an unclean stop records at the end of a log may be gone, and others will take their
    offsets: a new epoch tells them apart.
    """

    def again(part: PartitionImage) -> PartitionImage:
        directory = part.directory_of(broker_id)
        if _is_away(directory, directories):
            return _not_led_by(broker_id, part)
        left_clean = directories.get(directory, clean) if directories else clean
        if broker_id in part.isr and (part.leader == -1 or (part.leader == broker_id and not left_clean)):
            return part._replace(leader=broker_id, leader_epoch=part.leader_epoch + 1)
        return part

    return _changed(image, again)


def directories_lost(image: Image, broker_id: int, directories: Collection[str]) -> list[TopicImage]:
    """The topics that change when a broker serves only these log folders any more: what is in others has no leader."""
    return _changed(
        image,
        lambda part: _not_led_by(broker_id, part) if _is_away(part.directory_of(broker_id), directories) else part,
    )


def _is_away(directory: str, directories: Collection[str] | None) -> bool:
    return bool(directory) and directories is not None and directory not in directories


def _not_led_by(broker_id: int, part: PartitionImage) -> PartitionImage:
    """The last one in sync stays so: whoever leads next has to have what it has."""
    if part.leader != broker_id:
        return part
    return part._replace(leader=NO_LEADER, leader_epoch=part.leader_epoch + 1)


def with_directories(topic: TopicImage, broker_id: int, directories: Mapping[int, str]) -> TopicImage:
    """The topic with these partitions (by number) of the broker in these log folders."""
    return topic._replace(
        partitions=tuple(
            part.with_directory(broker_id, directories[number]) if number in directories else part
            for number, part in enumerate(topic.partitions)
        )
    )


def unmade(topic: TopicImage, numbers: Collection[int]) -> TopicImage:
    """The topic, where the folders of these partitions are still to be made."""
    return topic._replace(
        partitions=tuple(
            part._replace(made=part.made and number not in numbers) for number, part in enumerate(topic.partitions)
        )
    )


def made_in(topic: TopicImage, broker_id: int, directories: Mapping[int, str]) -> TopicImage:
    """The topic, after the folders of these partitions (by number) of the broker were found in these log folders: they
    are there for good, and what had no leader because it was thought to be in another folder has one again."""

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


def _changed(image: Image, change: Callable[[PartitionImage], PartitionImage]) -> list[TopicImage]:
    changed = []
    for topic in image.topics.values():
        partitions = tuple(change(part) for part in topic.partitions)
        if partitions != topic.partitions:
            changed.append(topic._replace(partitions=partitions))
    return changed
