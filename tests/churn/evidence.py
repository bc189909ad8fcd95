"""What is known of a group whose members come, go and are killed: the broker's own trace, and what only who plays with
its members can know.

`Trace` is all of it: what the broker wrote down about the group, in order, how it answered, and when members died. It
judges nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

JOIN_GROUP, SYNC_GROUP, LEAVE_GROUP, BEAT = "JoinGroup", "SyncGroup", "LeaveGroup", "ConsumerGroupHeartbeat"
COMMIT = "OffsetCommit"
LEAVES, LEAVES_FOR_NOW = -1, -2
NOT_ITS_PLACE = ("UNRELEASED_INSTANCE_ID", "FENCED_INSTANCE_ID")
"""What somebody is told whose instance id another has: it neither comes nor goes."""


class Share(NamedTuple):
    """What a generation gives a member, and what the member said it had when it joined."""

    client: str
    partitions: frozenset[int]
    kept: frozenset[int] = frozenset()
    instance: str | None = None


class Generation(NamedTuple):
    """A classic group as it was written down, by member id; no members if it is empty or gone."""

    at_ms: int
    number: int
    shares: Mapping[str, Share]


class Current(NamedTuple):
    """What a member of a consumer group has, and has still to give back; both empty when it is gone."""

    at_ms: int
    epoch: int
    member: str
    client: str
    assigned: frozenset[int] = frozenset()
    revoking: frozenset[int] = frozenset()
    instance: str | None = None


class Answer(NamedTuple):
    """An answer to a member, when it was asked for and given."""

    asked_ms: int
    at_ms: int
    api: str
    client: str
    member: str
    epoch: int
    error: str


class Trace(NamedTuple):
    """All that is known of one group of `partitions` partitions until `until_ms`."""

    partitions: int
    written: Sequence[Generation | Current]
    answers: Sequence[Answer]
    dead_ms: Mapping[str, int] = {}
    """By client, when it was killed, or went without a word."""
    until_ms: int = 0
    produced: Mapping[int, int] = {}
    """By partition, how many records."""
    processed: Iterable[tuple[int, int]] = ()
    """Partition and offset of each, as often as it was."""
    read_ms: Mapping[tuple[str, int], Sequence[int]] = {}
    """By client and partition, when records of it were processed."""
    stalls: Sequence[tuple[int, int]] = ()
    """When, and for how many milliseconds, somebody who only waited was kept waiting."""
    kills: Sequence[tuple[int, int]] = ()
    """From when to when there was no broker, which had been killed."""


def bearers(trace: Trace) -> dict[str, str]:
    """By member id, the client that has it. The group's own records tell of the first life of a static member's."""
    return {answer.member: answer.client for answer in trace.answers}


def leaves(answer: Answer) -> bool:
    if answer.error in NOT_ITS_PLACE:
        return False
    return answer.api == LEAVE_GROUP or (answer.api == BEAT and answer.epoch in (LEAVES, LEAVES_FOR_NOW))


def comes(answer: Answer) -> bool:
    """Whether it tells that there is somebody."""
    return answer.api in (JOIN_GROUP, BEAT) and answer.error not in NOT_ITS_PLACE


def ended_ms(trace: Trace) -> dict[str, int]:
    """By client, when it died or left, be it that the group had forgotten it."""
    ended = dict(trace.dead_ms)
    for answer in trace.answers:
        if leaves(answer):
            ended[answer.client] = min(answer.at_ms, ended.get(answer.client, answer.at_ms))
    return ended
