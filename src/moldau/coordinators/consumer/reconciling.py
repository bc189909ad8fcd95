"""How a member gets from its current assignment to its target, one heartbeat at a time (KIP-848). Pure.

The member first revokes the partitions that the target does not give it, and stays at its epoch until it has. Then it
reaches the target's epoch with the partitions that no other member has, and gets the rest as others revoke them. So no
partition has two owners, and members that have no part in a change never wait for it.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from moldau.coordinators.consumer.group import ConsumerMember, Owned, Phase, TargetAssignment

ReportedPartitions = Mapping[uuid.UUID, frozenset[int]] | None
"""The partitions that the member reports; None if the heartbeat leaves them out because they did not change."""


def reconciled(
    member: ConsumerMember,
    target_epoch: int,
    target: TargetAssignment,
    subscribed: Callable[[], frozenset[uuid.UUID]],
    owner: Callable[[uuid.UUID, int], str | None],
    reported: ReportedPartitions,
    *,
    resubscribed: bool,
) -> ConsumerMember:
    """The member after this heartbeat; the same object if nothing changes.

    `subscribed` returns the ids of the member's topics; `owner` returns the id of the member that has a partition, or
    still has to revoke it.
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
    target: TargetAssignment,
    subscribed: frozenset[uuid.UUID],
    owner: Callable[[uuid.UUID, int], str | None],
    reported: ReportedPartitions,
) -> ConsumerMember:
    kept: dict[uuid.UUID, dict[int, int]] = {}
    revoking: dict[uuid.UUID, dict[int, int]] = {}
    coming: dict[uuid.UUID, list[int]] = {}
    unreleased = False
    for topic in dict.fromkeys((*target, *member.assigned)):
        wanted = target.get(topic, frozenset()) if topic in subscribed else frozenset()
        assigned = member.assigned.get(topic, {})
        # Partitions that stay, partitions to revoke, and new ones that are free or that the member is still revoking.
        if stay := {p: epoch for p, epoch in assigned.items() if p in wanted}:
            kept[topic] = stay
        if go := {p: epoch for p, epoch in assigned.items() if p not in wanted}:
            revoking[topic] = go
        for p in sorted(wanted - assigned.keys()):
            if owner(topic, p) is None or p in member.revoking.get(topic, {}):
                coming.setdefault(topic, []).append(p)
            else:
                unreleased = True
    # The member keeps its epoch until it has revoked.
    if revoking and _has(reported, revoking):
        return member.at_epoch(member.epoch, Phase.UNREVOKED, kept, revoking)
    for topic, partitions in coming.items():
        kept[topic] = {**kept.get(topic, {}), **dict.fromkeys(partitions, target_epoch)}
    return member.at_epoch(target_epoch, Phase.UNRELEASED if unreleased else Phase.STABLE, kept, {})


def _drop_unsubscribed(
    member: ConsumerMember, subscribed: frozenset[uuid.UUID], reported: ReportedPartitions
) -> ConsumerMember:
    """Revoke the partitions of topics that the member no longer subscribes to, before a new target is computed."""
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


def _has(reported: ReportedPartitions, partitions: Owned) -> bool:
    """Whether the member may still have any of these partitions."""
    if reported is None:
        return True
    return any(not reported.get(topic, frozenset()).isdisjoint(owned) for topic, owned in partitions.items())
