"""Bugs of consumer groups (KIP-848) that worlds of groups must find (`mutations`)."""

from dataclasses import replace
from typing import Any

from moldau.coordinators.consumer.group import LEAVES, LEAVES_FOR_NOW
from moldau.coordinators.consumer.member_deadlines import REVOKE
from moldau.coordinators.consumer.member_deadlines import SESSION as CONSUMER_SESSION
from moldau.coordinators.consumer.records import ConsumerRecordType
from moldau.errors import ErrorCode
from tests.replacing import Instead, nothing
from tests.worlds.changed_answers import DEADLINES, SHARD, Do, forgiving, not_moving, skipping

CONSUMERS = "moldau.coordinators.consumer.groups:ConsumerGroups"
CONSUMER_GROUP = "moldau.coordinators.consumer.group:ConsumerGroup"
STATES = "moldau.coordinators.consumer.group_states:GroupStates"
CHANGES = "moldau.coordinators.consumer.changes:GroupChanges"
MEMBERS = "moldau.coordinators.consumer.consumer_members:ConsumerMembers"
CLASSIC_MEMBERS = "moldau.coordinators.consumer.classic_members:ClassicMembers"
DEPARTURES = "moldau.coordinators.consumer.departures:Departures"
MEMBER_DEADLINES = "moldau.coordinators.consumer.member_deadlines:MemberDeadlines"
RECONCILED = "moldau.coordinators.consumer.reconciling:reconciled"


def as_if_free(
    reconciled: Do, member: Any, epoch: int, target: Any, subscribed: Any, _: Do, *rest: Any, **more: Any
) -> Any:
    return reconciled(member, epoch, target, subscribed, lambda *_: None, *rest, **more)


def as_if_given_back(
    reconciled: Do, member: Any, epoch: int, target: Any, subscribed: Any, owner: Do, _: Any, **more: Any
) -> Any:
    return reconciled(member, epoch, target, subscribed, owner, {}, **more)


def without_revoking(original: Do, *arguments: Any) -> Any:
    *rest, member = arguments
    return original(*rest, replace(member, revoking={}))


def target_epoch_unwritten(
    write: Do, self: Any, group: Any, kind: ConsumerRecordType, name: str, value: Any, out: Any
) -> None:
    if kind is ConsumerRecordType.TARGET_EPOCH:
        group.target_epoch = group.epoch
    else:
        write(self, group, kind, name, value, out)


def targets_unwritten(
    write: Do, self: Any, group: Any, kind: ConsumerRecordType, name: str, value: Any, out: Any
) -> None:
    if kind is ConsumerRecordType.TARGET:
        group.targets[name] = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
    else:
        write(self, group, kind, name, value, out)


def leaves_for_good(beat: Do, self: Any, ask: Any, *rest: Any) -> Any:
    return beat(self, replace(ask, epoch=LEAVES) if ask.epoch == LEAVES_FOR_NOW else ask, *rest)


def without_its_target(replace_member: Do, self: Any, group: Any, left: Any, *rest: Any) -> None:
    group.targets.pop(left.member_id, None)
    replace_member(self, group, left, *rest)


def as_if_it_had_left(member: Do, self: Any, group: Any, ask: Any, joins: bool) -> Any:
    static = group.static_member(ask.instance_id) if joins and ask.instance_id is not None else None
    if static is not None:
        group.members[static.member_id] = replace(static, epoch=LEAVES_FOR_NOW)
    return member(self, group, ask, joins)


def only_if_resubscribed(bump: Do, self: Any, group: Any, changed: bool, out: Any) -> None:
    if changed:
        bump(self, group, changed, out)


def acknowledged(commit: Do, self: Any, ask: Any, ticket: Any, now: Any) -> Any:
    out = commit(self, ask, ticket, now)
    if ask.group_id in self.consumer.live:
        out.replies = [(to, [ErrorCode.NONE] * len(errors)) for to, errors in out.replies]
    return out


CONSUMER_GROUPS: dict[str, list[Instead]] = {
    "a heartbeat does not keep a member of a consumer group": [
        Instead(f"{DEADLINES}.set", not_moving(CONSUMER_SESSION), within=f"{MEMBERS}.beat")
    ],
    "sessions of consumer groups are forgotten at a start": [
        Instead(f"{DEADLINES}.set", skipping(CONSUMER_SESSION), within=f"{STATES}.start")
    ],
    "the session of a dead member of a consumer group never ends": [
        Instead(f"{DEPARTURES}.fence", nothing, within=f"{CONSUMERS}.tick")
    ],
    "commits at any epoch are taken": [
        Instead(
            "moldau.coordinators.consumer.rights:check_commit",
            forgiving(ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION),
        )
    ],
    "a refused commit of a consumer group is acknowledged": [Instead(f"{SHARD}.commit", acknowledged)],
    "a revocation is not waited for": [Instead(RECONCILED, as_if_free)],
    "a member goes on before it has given back": [Instead(RECONCILED, as_if_given_back)],
    "a member that has not given back in time stays": [Instead(f"{DEADLINES}.set", skipping(REVOKE))],
    "a partition that is still to be given back counts as free": [Instead(f"{CONSUMER_GROUP}._own", without_revoking)],
    "a partition that is still to be given back is not in the log": [
        Instead("moldau.coordinators.consumer.group:current_of", without_revoking)
    ],
    "the epoch is not counted up when members go": [Instead(f"{CHANGES}.bump", nothing, within=f"{DEPARTURES}.fence")],
    "the epoch of the target is not in the log": [
        Instead(f"{STATES}.write", target_epoch_unwritten, within=f"{CHANGES}._assign")
    ],
    "the target of a member is not in the log": [
        Instead(f"{STATES}.write", targets_unwritten, within=f"{CHANGES}._assign")
    ],
    "a static member that an administrator removes from a consumer group stays": [
        Instead(f"{DEPARTURES}.fence", nothing, within=f"{CLASSIC_MEMBERS}.leave")
    ],
    "a member that leaves a consumer group stays until its session ends": [
        Instead(f"{DEPARTURES}.fence", nothing, within=f"{MEMBERS}.beat")
    ],
    "a static member that leaves for a while is out": [Instead(f"{MEMBERS}.beat", leaves_for_good)],
    "a static member gets nothing of what it had": [Instead(f"{CHANGES}._replace", without_its_target)],
    "a static member is replaced though it has not left": [Instead(f"{MEMBERS}._member", as_if_it_had_left)],
    "a consumer group does not notice that a topic grew": [Instead(f"{CHANGES}._bump", only_if_resubscribed)],
}
