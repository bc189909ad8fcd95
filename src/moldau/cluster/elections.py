"""Who may lead a partition, and when a leader is elected. Pure: an image in, the partitions that change out.

A leader is a replica in the ISR whose broker is up and serves the partition's log folder; of several the first in the
order of assignment. Every election begins a new leader epoch, even if the same broker leads again. A broker that goes
leaves the ISR, except that the ISR is never empty: whoever was in it last has every record, and leads when it is back.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from moldau.cluster.image import NO_LEADER, Image, PartitionImage, TopicImage

BATCH_MAX = 500
"""The most partitions whose leaders are elected in one step of the store."""


class Elected(NamedTuple):
    """A partition as it is after its election."""

    topic: str
    number: int
    partition: PartitionImage


def elections(image: Image, away: Collection[int] = (), anew: Collection[int] = ()) -> Iterator[Elected]:
    """The partitions that need a leader and can have one, or lose theirs. `away` are registered brokers that must not
    lead; `anew` are brokers that went and came back unnoticed: what they led, they lead in a new epoch."""
    alive = {broker: image.brokers[broker] for broker in image.brokers if broker not in away}

    def can_lead(part: PartitionImage, broker: int) -> bool:
        return broker in alive and alive[broker].serves(part.directory_of(broker))

    for topic in image.topics.values():
        for number, part in enumerate(topic.partitions):
            after = part._replace(isr=tuple(broker for broker in part.isr if broker in alive) or part.isr)
            if part.leader in anew or not can_lead(part, part.leader):
                leader = next((one for one in part.replicas if one in part.isr and can_lead(part, one)), NO_LEADER)
                if leader != NO_LEADER or part.leader != NO_LEADER:
                    after = after._replace(leader=leader, leader_epoch=part.leader_epoch + 1)
            if after != part:
                yield Elected(topic.name, number, after)


def in_batches(elected: Sequence[Elected]) -> Iterator[Sequence[Elected]]:
    for first in range(0, len(elected), BATCH_MAX):
        yield elected[first : first + BATCH_MAX]


def with_elected(image: Image, elected: Sequence[Elected]) -> list[TopicImage]:
    """The topics with these partitions instead of their own."""
    by_topic: dict[str, dict[int, PartitionImage]] = {}
    for name, number, partition in elected:
        by_topic.setdefault(name, {})[number] = partition
    return [
        image.topics[name]._replace(
            partitions=tuple(changed.get(at, part) for at, part in enumerate(image.topics[name].partitions))
        )
        for name, changed in by_topic.items()
    ]


def lead_again(
    image: Image, broker_id: int, *, clean: bool, directories: Mapping[str, bool] | None = None
) -> list[TopicImage]:
    """The topics that change when the only broker of a cluster comes up: it leads partitions that have no leader and,
    after an unclean stop, its own ones in a new epoch.

    `directories` maps the ids of its available log folders to whether each was left clean; the broker cannot lead
    partitions in other folders. An unclean stop may have lost records at the end of a log, whose offsets new records
    get: the new epoch distinguishes them.
    """

    def again(part: PartitionImage) -> PartitionImage:
        directory = part.directory_of(broker_id)
        if _is_away(directory, directories):
            return _not_led_by(broker_id, part)
        left_clean = directories.get(directory, clean) if directories else clean
        if broker_id in part.isr and (part.leader == NO_LEADER or (part.leader == broker_id and not left_clean)):
            return part._replace(leader=broker_id, leader_epoch=part.leader_epoch + 1)
        return part

    return _changed(image, again)


def directories_lost(image: Image, broker_id: int, directories: Collection[str]) -> list[TopicImage]:
    """The topics that change when a broker serves only these log folders: its partitions in others lose their
    leader."""
    return _changed(
        image,
        lambda part: _not_led_by(broker_id, part) if _is_away(part.directory_of(broker_id), directories) else part,
    )


def _is_away(directory: str, directories: Collection[str] | None) -> bool:
    return bool(directory) and directories is not None and directory not in directories


def _not_led_by(broker_id: int, part: PartitionImage) -> PartitionImage:
    """The partition without that leader. The broker stays in the ISR: the next leader must have its records."""
    if part.leader != broker_id:
        return part
    return part._replace(leader=NO_LEADER, leader_epoch=part.leader_epoch + 1)


def _changed(image: Image, change: Callable[[PartitionImage], PartitionImage]) -> list[TopicImage]:
    changed = []
    for topic in image.topics.values():
        partitions = tuple(change(part) for part in topic.partitions)
        if partitions != topic.partitions:
            changed.append(topic._replace(partitions=partitions))
    return changed
