"""The assignors `sticky` and `cooperative-sticky`: as even as subscriptions allow, with as few moves as possible; pure.

A member claims the partitions that it owned in a generation. If several members claim a partition, the claim of the
latest generation counts; two claims of the same generation cancel each other, because one of them is wrong.

`sticky` is for members that give up all partitions before every rebalance. Members of `cooperative-sticky` keep theirs,
so a partition that moves is assigned in two rebalances: first to nobody, then, once its owner has given it up, to its
new owner. Sources: KIP-54, KIP-429, KIP-341 (generations) and KIP-792.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.assignors import Assignment, Subscriptions
from moldau.assignors.balance import Subscribers, balanced
from moldau.names import TopicPartition


class Claim(NamedTuple):
    """The partitions that a member owned last, and the generation of that assignment; -1 if it is unknown."""

    partitions: Sequence[TopicPartition] = ()
    generation: int = -1


Claims = Mapping[str, Claim]
"""The claims of members, by member id; members without a partition may be left out."""


def sticky_assign(members: Subscriptions, partitions: Mapping[str, int], claims: Claims) -> Assignment:
    """The partitions of every member, sorted. `partitions` are the numbers of partitions of the known topics."""
    wanted = {member: frozenset(topics) for member, topics in members.items()}
    owned: dict[str, list[tuple[str, int]]] = {member: [] for member in members}
    for tp, owner in owners(claims).items():
        if owner in owned:
            owned[owner].append(tp)
    subscribers = Subscribers(sorted(members), wanted)
    shares = balanced(subscribers, {topic: partitions[topic] for topic in sorted(partitions)}, owned)
    return {member: [TopicPartition(*place) for place in share] for member, share in shares.items()}


def cooperative_assign(members: Subscriptions, partitions: Mapping[str, int], claims: Claims) -> Assignment:
    """As `sticky_assign`, without the partitions that have to be given up by another member first. Those that lose a
    partition join again, and it is assigned then."""
    valid = owners(claims)
    claimants: dict[TopicPartition, set[str]] = {}
    for member, claim in claims.items():
        for tp in claim.partitions:
            claimants.setdefault(tp, set()).add(member)
    nobody: frozenset[str] = frozenset()
    return {
        member: [tp for tp in share if valid.get(tp) == member or claimants.get(tp, nobody) <= {member}]
        for member, share in sticky_assign(members, partitions, claims).items()
    }


def owners(claims: Claims) -> dict[TopicPartition, str]:
    """The owner of each claimed partition; without those that several members claim for the same generation."""
    latest: dict[TopicPartition, tuple[int, list[str]]] = {}
    for member in sorted(claims):
        partitions, generation = claims[member]
        for tp in _distinct(partitions):
            known = latest.get(tp)
            if known is None or generation > known[0]:
                latest[tp] = generation, [member]
            elif generation == known[0]:
                known[1].append(member)
    return {tp: who[0] for tp, (_, who) in latest.items() if len(who) == 1}


def _distinct(partitions: Iterable[TopicPartition]) -> dict[TopicPartition, None]:
    return dict.fromkeys(partitions)
