"""The leaders of partitions when brokers come and go. Pure: an image in, the partitions that change out.

The rules for one partition are in `eligibility`. A broker leaves the ISR of its partitions when it goes, falls silent
or loses the log folder, and also when it went and came back before the controller noticed. One that is about to stop
hands over what it leads (see `departures`). A broker alone stays in the ISR (see `lead_again`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from moldau.cluster.state import layout
from moldau.cluster.state.departures import after_leaving
from moldau.cluster.state.eligibility import CanLead, elected, preferred, without
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Image, PartitionImage, TopicImage
from moldau.metadata_store.store import NodeOperation
from moldau.names import TopicPartition

BATCH_MAX = 500
"""The most partitions whose leaders are elected in one step of the store."""
BROKERS_NAMED = 10
"""The most brokers that a log line names."""
LeastInSync = Callable[[str], int]
"""The `min.insync.replicas` of a topic, by its name."""


NOBODY: Mapping[int, Collection[str]] = {}


class Elected(NamedTuple):
    """A partition as it is after its election."""

    topic: str
    number: int
    partition: PartitionImage


def elections(
    image: Image,
    least: LeastInSync,
    away: Collection[int] = (),
    anew: Mapping[int, Collection[str]] = NOBODY,
) -> list[Elected]:
    """The partitions whose leader, ISR or ELR changes; those that nobody leads now come first. `away` are registered
    brokers that must not lead; `anew` are brokers that have registered again, each with its `kept_folders`."""
    alive = {broker: image.brokers[broker] for broker in image.brokers if broker not in away}
    leaving, changed = image.leaving, []
    for topic in image.topics.values():
        enough = least(topic.name)
        for number, part in enumerate(topic.partitions):
            able = partial(can_lead, alive, part)
            gone = [one for one in part.isr if one in anew or not able(one)]
            lost = [one for one in part.replicas if one in anew and part.directory_of(one) not in anew[one]]
            staying = partial(_stays, leaving, able) if leaving else able
            after = elected(without(part, gone, enough, lost), staying, enough)
            if leaving:
                after = after_leaving(after, leaving, able, enough)
            if after != part:
                changed.append((after.leader == part.leader, Elected(topic.name, number, after)))
    return [one for _, one in sorted(changed, key=itemgetter(0))]


def preferred_elections(image: Image, wanted: Iterable[TopicPartition]) -> list[Elected]:
    """Those of these partitions whose preferred replica is in sync and does not lead, led by it."""
    elected = []
    for tp in dict.fromkeys(wanted):
        part = image.partition(tp)
        after = part and preferred(part, image.leaving)
        if after is not None and after != part:
            elected.append(Elected(tp.topic, tp.partition, after))
    return elected


def steps_of(image: Image, elected: Sequence[Elected]) -> list[NodeOperation]:
    """The operations that write these partitions."""
    return [
        step
        for topic in with_elected(image, elected)
        for step in layout.topic_changed(image.topics[topic.name], topic, image.controller_epoch)
    ]


def kept_folders(broker: BrokerImage, noted: int | None, since: Mapping[str, Sequence[int]]) -> set[str]:
    """The log folders of a broker that have lost nothing since its registration `noted`, the last one that a controller
    has dealt with; "" (a folder that is not known) is among them if all have. `since` is as in the registration."""
    kept = {one for one in broker.directories if noted in since.get(one, ())}
    return kept | {""} if kept and len(kept) == len(broker.directories) else kept


def can_lead(alive: Mapping[int, BrokerImage], part: PartitionImage, broker: int) -> bool:
    """Whether this broker is among those that are up, and serves the partition's log folder."""
    return broker in alive and alive[broker].serves(part.directory_of(broker))


class Leaderless(NamedTuple):
    """How many partitions nobody leads, the first of them, and the brokers whose replicas they wait for: those that are
    `away`, and those that are up without the log folder."""

    partitions: int
    first: TopicPartition
    away: tuple[int, ...]
    without_folder: tuple[int, ...]

    @property
    def remedy(self) -> str:
        """The remedy for an operator, of bounded length."""
        start = [f"start {_brokers(self.away)}"] if self.away else []
        mount = [f"bring back the log folders of {_brokers(self.without_folder)}"] if self.without_folder else []
        return " and ".join(start + mount)


def leaderless(image: Image, away: Collection[int]) -> Leaderless | None:
    """The partitions that have no leader until brokers are back; None if all have one, or can have one by now. Brokers
    that are about to stop will be back: what waits for them is left out. `away` are registered brokers that must not
    lead."""
    alive = {broker: image.brokers[broker] for broker in image.brokers if broker not in away}
    leaving, count, first, missed = image.leaving, 0, None, set[int]()
    for topic in image.topics.values():
        for number, part in enumerate(topic.partitions):
            if part.leader == NO_LEADER:
                waits_for = _waits_for(part, partial(can_lead, alive, part))
                if waits_for and leaving.isdisjoint(waits_for):
                    count += 1
                    first = first or TopicPartition(topic.name, number)
                    missed.update(waits_for)
    if first is None:
        return None
    up = sorted(missed & alive.keys())
    return Leaderless(count, first, tuple(sorted(missed - alive.keys())), tuple(up))


def _waits_for(part: PartitionImage, able: CanLead) -> list[int]:
    """The brokers that the partition waits for: one of those that were in sync last, or all replicas if these may have
    lost records."""
    complete = part.isr or part.elr
    if any(able(one) for one in complete):
        return []
    return [one for one in complete or part.last_elr or part.replicas if not able(one)]


def _brokers(ids: Sequence[int]) -> str:
    more = f" and {len(ids) - BROKERS_NAMED} more" if len(ids) > BROKERS_NAMED else ""
    return f"broker{'s' * (len(ids) > 1)} {', '.join(map(str, ids[:BROKERS_NAMED]))}{more}"


def _stays(leaving: Collection[int], able: CanLead, broker: int) -> bool:
    return broker not in leaving and able(broker)


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
