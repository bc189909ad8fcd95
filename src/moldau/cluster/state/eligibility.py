"""The in-sync replicas (ISR) of one partition, the eligible leaders outside of it (ELR), and the leader. Pure.

Invariant: every member of ISR or ELR has everything below the high watermark.

- A replica that leaves the ISR becomes an eligible leader if the ISR is below `min.insync.replicas` then: from that
  moment on the watermark does not move. A larger ISR empties the ELR, since the watermark moves without it (KIP-966).
- A replica that may have lost records leaves both. `last_elr` remembers it in case nobody else is left: then the
  longest log leads, once all replicas that might have it are up.
- The leader is the first replica in the order of assignment that is in the ISR, else the first in the ELR, which is
  then the whole ISR. Every election begins a new leader epoch, even if the same broker leads again.

`least` is the topic's `min.insync.replicas`; a partition with fewer replicas needs all it has, as in Kafka. `can_lead`
tells whether a broker is up and serves the partition's log.
"""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from moldau.cluster.state.image import NO_LEADER, PartitionImage

CanLead = Callable[[int], bool]


class LogEnd(NamedTuple):
    """How far a replica's log goes; the greater one has more."""

    epoch: int
    offset: int


def with_isr(part: PartitionImage, isr: Collection[int], least: int, lost: Collection[int] = ()) -> PartitionImage:
    """The partition with this ISR, after these brokers may have lost records, which are not in it."""
    if len(isr) >= min(least, len(part.replicas)):
        return part._replace(isr=tuple(isr), elr=(), last_elr=())
    had_all = {*part.isr, *part.elr}
    elr = tuple(one for one in part.replicas if one in had_all and one not in isr and one not in lost)
    before = {*had_all, *part.last_elr}
    last_elr = tuple(one for one in part.replicas if one in before and one not in isr and one not in elr)
    return part._replace(isr=tuple(isr), elr=elr, last_elr=last_elr)


def without(part: PartitionImage, gone: Collection[int], least: int, lost: Collection[int] = ()) -> PartitionImage:
    """The partition after these brokers went, or were away and came back; `lost` are those that came back and may have
    lost records."""
    if not part.elr and not part.last_elr and not any(one in gone or one in lost for one in part.isr):
        return part
    return with_isr(part, [one for one in part.isr if one not in gone and one not in lost], least, lost)


def elected(part: PartitionImage, can_lead: CanLead, least: int) -> PartitionImage:
    """The partition with a leader if it can have one. Its ISR has brokers only that can lead; a leader out of it does
    not lead any more."""
    if part.leader in part.isr:
        return part
    leader = next((one for one in part.replicas if one in part.isr), NO_LEADER)
    if leader == NO_LEADER:
        leader = next((one for one in part.replicas if one in part.elr and can_lead(one)), NO_LEADER)
        if leader == NO_LEADER and len(part.replicas) == 1 and can_lead(part.replicas[0]):
            leader = part.replicas[0]  # nobody has more than the only replica, whatever it has lost
        if leader != NO_LEADER:
            part = with_isr(part, (leader,), least)
    return part if part.leader == leader == NO_LEADER else led_by(part, leader)


def preferred(part: PartitionImage, leaving: Collection[int] = ()) -> PartitionImage:
    """The partition led by its preferred replica, if that is in sync and not among those `leaving`."""
    first = part.replicas[0]
    return led_by(part, first) if first in part.isr and first != part.leader and first not in leaving else part


def candidates(part: PartitionImage, can_lead: CanLead, *, unclean: bool) -> list[int]:
    """The replicas whose logs decide about the next leader; none if that is not to be decided (yet): somebody leads, or
    the ones that may have most are away. An unclean election waits for nobody."""
    if part.leader != NO_LEADER:
        return []
    if not unclean and (part.isr or part.elr or not all(can_lead(one) for one in part.last_elr or part.replicas)):
        return []
    return [one for one in part.replicas if can_lead(one)]


def led_by_longest(part: PartitionImage, ends: Mapping[int, LogEnd], least: int, *, unclean: bool) -> PartitionImage:
    """The partition led by the candidate that has most, of those that have answered. An unclean election forgets who
    might have more; else the partition stays as it is unless all of them have answered."""
    if not ends or not (unclean or ends.keys() >= {*(part.last_elr or part.replicas)}):
        return part
    leader = max((one for one in part.replicas if one in ends), key=lambda one: ends[one])
    if unclean:
        part = part._replace(isr=(), elr=(), last_elr=())
    return led_by(with_isr(part, (leader,), least), leader)


def led_by(part: PartitionImage, leader: int) -> PartitionImage:
    """The partition led by this broker, in a new leader epoch."""
    return part._replace(leader=leader, leader_epoch=part.leader_epoch + 1)
