"""A partition whose replicas change: from the plan to its end (KIP-455). Pure.

    moved from A B C to C D   replicas     adding_replicas   removing_replicas
    begun                     C D A B      D                 A B
    ended                     C D          -                 -
    or cancelled              C A B        -                 -

It ends when every added replica is in the ISR: a replica that stays may be away, since the ISR gets no smaller. If the
partition gets fewer replicas, every target replica must be in the ISR. Until then all replicas follow the leader, and
any in the ISR may lead.
A plan that replaces a running one starts from the originals, as in Kafka with ZooKeeper; a replica that only the first
plan added is dropped.

A broker that is dropped leaves ISR and ELR, and a new leader epoch begins, even under the same leader: the broker's
later fetches and proposals are refused. A change that drops replicas is refused if none of the others is in sync: only
an unclean election could find a leader then.
"""

from collections.abc import Iterable, Iterator

from moldau.cluster.state.elections import Elected, LeastInSync
from moldau.cluster.state.eligibility import led_by, with_isr
from moldau.cluster.state.image import PartitionImage, TopicImage


def is_under_way(part: PartitionImage) -> bool:
    return bool(part.adding_replicas or part.removing_replicas)


def target_of(part: PartitionImage) -> tuple[int, ...]:
    """The replicas after the reassignment; all of them if none is under way."""
    return tuple(one for one in part.replicas if one not in part.removing_replicas)


def originals_of(part: PartitionImage) -> tuple[int, ...]:
    """The replicas that the partition has again if the reassignment is cancelled."""
    return tuple(one for one in part.replicas if one not in part.adding_replicas)


def begun(part: PartitionImage, target: tuple[int, ...], least: int) -> PartitionImage | None:
    """The partition on its way to these replicas, the preferred leader first; at its end if they are the originals in
    some order. None if that drops a replica and none of the others is in sync. `least` is `min.insync.replicas`, here
    and below."""
    originals = originals_of(part)
    adding = tuple(one for one in target if one not in originals)
    removing = tuple(one for one in originals if one not in target)
    return _with_replicas(part, (*target, *removing), least, adding, removing)


def cancelled(part: PartitionImage, least: int) -> PartitionImage | None:
    """The partition with its original replicas again, those of the target first. None as for `begun`."""
    return _with_replicas(part, originals_of(part), least)


def ended(part: PartitionImage, least: int) -> PartitionImage | None:
    """The partition with its target replicas; None if none is under way, or replicas that it waits for are not in sync
    yet."""
    target, in_sync = target_of(part), {*part.isr}
    gets_fewer = len(part.adding_replicas) < len(part.removing_replicas)
    awaited = target if gets_fewer else part.adding_replicas
    if not is_under_way(part) or in_sync.isdisjoint(target) or not in_sync.issuperset(awaited):
        return None
    return _with_replicas(part, target, least)


def next_ended(topics: Iterable[TopicImage], least: LeastInSync) -> Iterator[Elected]:
    """The partitions of these topics whose reassignment ends now, as they are then."""
    for topic in topics:
        for number, part in enumerate(topic.partitions):
            if is_under_way(part) and (after := ended(part, least(topic.name))) is not None:
                yield Elected(topic.name, number, after)


def _with_replicas(
    part: PartitionImage,
    replicas: tuple[int, ...],
    least: int,
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
) -> PartitionImage | None:
    after = part.with_replicas(replicas)._replace(adding_replicas=adding, removing_replicas=removing)
    if {*part.replicas} <= {*replicas}:
        return after
    isr = tuple(one for one in replicas if one in part.isr)
    if not isr:
        return None
    return led_by(with_isr(after, isr, least), part.leader if part.leader in isr else isr[0])
