"""How a member gets from what it has to what the target gives it, one heartbeat at a time (KIP-848).

It first gives back what is not its own any more, and stays at its epoch until it has; then it reaches the target's
epoch with whatever nobody else has, and gets the rest as others give it back. So no partition has two owners, and
nobody waits for those who are done. Pure: a member and what it says it owns go in, the next member comes out.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from moldau.coordinators.consumer.group import ConsumerMember, Owned, Phase, Target

Reported = Mapping[uuid.UUID, frozenset[int]] | None
"""What a member says it has; None if it says nothing, since nothing changed."""


def reconciled(
    member: ConsumerMember,
    target_epoch: int,
    target: Target,
    subscribed: Callable[[], frozenset[uuid.UUID]],
    owner: Callable[[uuid.UUID, int], str | None],
    reported: Reported,
    *,
    resubscribed: bool,
) -> ConsumerMember:
    """The member as it is after this heartbeat, itself if nothing changes.

    `subscribed` gives the ids of its topics, `owner` who has a partition or has still to give it back.
    """
    if not resubscribed and member.is_reconciled_to(target_epoch):
        return member
    waiting = member.phase is Phase.UNREVOKED and _has(reported, member.revoking)
    if waiting or member.is_reconciled_to(target_epoch):
        return _drop_unsubscribed(member, subscribed(), reported) if resubscribed else member
    return _next(member, target_epoch, target, subscribed(), owner, reported)


def _next(
    member: ConsumerMember,
    target_epoch: int,
    target: Target,
    subscribed: frozenset[uuid.UUID],
    owner: Callable[[uuid.UUID, int], str | None],
    reported: Reported,
) -> ConsumerMember:
    kept: dict[uuid.UUID, dict[int, int]] = {}
    revoking: dict[uuid.UUID, dict[int, int]] = {}
    coming: dict[uuid.UUID, list[int]] = {}
    unreleased = False
    for topic in dict.fromkeys((*target, *member.assigned)):
        wanted = target.get(topic, frozenset()) if topic in subscribed else frozenset()
        assigned = member.assigned.get(topic, {})
        if stay := {p: epoch for p, epoch in assigned.items() if p in wanted}:
            kept[topic] = stay
        if go := {p: epoch for p, epoch in assigned.items() if p not in wanted}:
            revoking[topic] = go
        for p in sorted(wanted - assigned.keys()):
            if owner(topic, p) is None or p in member.revoking.get(topic, {}):
                coming.setdefault(topic, []).append(p)
            else:
                unreleased = True
    if revoking and _has(reported, revoking):
        return member.at_epoch(member.epoch, Phase.UNREVOKED, kept, revoking)
    for topic, partitions in coming.items():
        kept[topic] = {**kept.get(topic, {}), **dict.fromkeys(partitions, target_epoch)}
    return member.at_epoch(target_epoch, Phase.UNRELEASED if unreleased else Phase.STABLE, kept, {})


def _drop_unsubscribed(member: ConsumerMember, subscribed: frozenset[uuid.UUID], reported: Reported) -> ConsumerMember:
    """A new target is still to come; what the member no longer subscribes to it gives back at once."""
    gone = {topic: partitions for topic, partitions in member.assigned.items() if topic not in subscribed}
    if not gone:
        return member
    kept = {topic: partitions for topic, partitions in member.assigned.items() if topic in subscribed}
    revoking: dict[uuid.UUID, Mapping[int, int]] = dict(member.revoking)
    for topic, partitions in gone.items():
        revoking[topic] = {**revoking.get(topic, {}), **partitions}
    if _has(reported, revoking):
        return member.at_epoch(member.epoch, Phase.UNREVOKED, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _has(reported: Reported, partitions: Owned) -> bool:
    """Whether the member has any of these, for all we know."""
    if reported is None:
        return True
    return any(not reported.get(topic, frozenset()).isdisjoint(owned) for topic, owned in partitions.items())
