"""Bugs of the group coordinators, and of what runs them, that worlds of groups must find (`mutations`)."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from moldau.coordinators.classic.group import ClassicGroupState as State
from moldau.coordinators.classic.messages import Joined
from moldau.coordinators.classic.rebalance import JOIN, SESSION, SYNC
from moldau.coordinators.consumer.group import LEAVES, LEAVES_FOR_NOW
from moldau.coordinators.consumer.member_deadlines import JOIN as CONSUMER_JOIN
from moldau.coordinators.consumer.member_deadlines import REVOKE
from moldau.coordinators.consumer.member_deadlines import SESSION as CONSUMER_SESSION
from moldau.coordinators.consumer.member_deadlines import SYNC as CONSUMER_SYNC
from moldau.coordinators.consumer.records import ConsumerRecordType
from moldau.coordinators.coordinator_runtime import LedPartition
from moldau.coordinators.decision import Decision
from moldau.coordinators.offsets.committed import Applied
from moldau.coordinators.offsets.records import is_offset
from moldau.errors import ErrorCode
from moldau.records.batch import batches
from tests.replacing import Instead, nothing, returns, unless

RUNTIME = "moldau.coordinators.coordinator_runtime:CoordinatorRuntime"
SHARD = "moldau.coordinators.groups.shard:GroupShard"
OFFSETS = "moldau.coordinators.offsets.committed:CommittedOffsets"
DEADLINES = "moldau.coordinators.deadlines:Deadlines"
CLASSIC = "moldau.coordinators.classic.groups:ClassicGroups"
JOINING = "moldau.coordinators.classic.joining:Joining"
CLASSIC_GROUP = "moldau.coordinators.classic.group:ClassicGroup"
REBALANCE = "moldau.coordinators.classic.rebalance:Rebalance"
CONSUMERS = "moldau.coordinators.consumer.groups:ConsumerGroups"
CONSUMER_GROUP = "moldau.coordinators.consumer.group:ConsumerGroup"
STATES = "moldau.coordinators.consumer.group_states:GroupStates"
CHANGES = "moldau.coordinators.consumer.changes:GroupChanges"
MEMBERS = "moldau.coordinators.consumer.consumer_members:ConsumerMembers"
CLASSIC_MEMBERS = "moldau.coordinators.consumer.classic_members:ClassicMembers"
DEPARTURES = "moldau.coordinators.consumer.departures:Departures"
MEMBER_DEADLINES = "moldau.coordinators.consumer.member_deadlines:MemberDeadlines"
RECONCILED = "moldau.coordinators.consumer.reconciling:reconciled"
MIGRATED = "moldau.coordinators.consumer.migration:consumer_group_of"

Do = Callable[..., Any]


# -- runs coordinators


class Recorder:
    """In the place of a machine: keeps what it is to apply."""

    def __init__(self) -> None:
        self.applied: list[tuple[Any, Any]] = []

    def apply(self, record: Any, now: Any) -> list[Any]:
        self.applied.append((record, now))
        return []


async def applied_first(commit: Do, self: Any, replica: Any, outcomes: Any) -> None:
    for record in [record for outcome in outcomes for record in outcome.records]:
        self._answer(replica.machine.apply(record, self.now()))
    await commit(self, LedPartition(replica.partition, replica.leader_epoch, Recorder()), outcomes)


async def applied_backwards(commit: Do, self: Any, replica: Any, outcomes: Any) -> None:
    recorder = Recorder()
    await commit(self, LedPartition(replica.partition, replica.leader_epoch, recorder), outcomes)
    for record, now in reversed(recorder.applied):
        self._answer(replica.machine.apply(record, now))


def written_backwards(encode: Do, rows: Any, **options: Any) -> Any:
    return encode(rows[::-1], **options)


async def answered_first(append: Do, self: Any, replica: Any, outcomes: Any) -> None:
    for outcome in outcomes:
        self._answer(outcome.replies)
    await append(self, replica, outcomes)


def overtaken(carry_out: Do, self: Any, replica: Any, outcome: Any) -> None:
    carry_out(self, replica, outcome)
    if replica.queue and replica.queue[-1] is outcome:
        replica.queue.insert(0, replica.queue.pop())


def without_replies(stop: Do, self: Any, error: Any) -> list[Any]:
    stop(self, error)
    return []


async def without_the_last_batch(read_all: Do, self: Any, partition: int) -> AsyncIterator[bytes]:
    chunks = [chunk async for chunk in read_all(self, partition)]
    if chunks:
        *_, (last, _) = batches(chunks[-1])
        chunks[-1] = chunks[-1][:last]
    for chunk in chunks:
        if chunk:
            yield chunk


# -- answers and arguments


def forgiving(*errors: ErrorCode) -> Do:
    """The function's answer, without these errors."""

    def do(original: Do, *arguments: Any) -> Any:
        error = original(*arguments)
        if isinstance(error, list):
            return [ErrorCode.NONE if one in errors else one for one in error]
        return ErrorCode.NONE if error in errors else error

    return do


def of_any_generation(original: Do, self: Any, group_id: str, generation: int, *rest: Any) -> Any:
    group = self.live.get(group_id)
    if group is not None and 0 <= generation < group.generation:
        generation = group.generation
    return original(self, group_id, generation, *rest)


def commit_of_any_generation(original: Do, self: Any, ask: Any, now: Any) -> Any:
    group = self.live.get(ask.group_id)
    if group is not None and 0 <= ask.generation < group.generation:
        ask = replace(ask, generation=group.generation)
    return original(self, ask, now)


def skipping(*kinds: str) -> Do:
    """Deadlines of these kinds are not set."""
    return unless(lambda _, key, __: key[0] in kinds)


def not_moving(kind: str) -> Do:
    """A deadline of this kind is set once."""
    return unless(lambda self, key, _: key[0] == kind and key in self)


def with_no_record(original: Do, self: Any, group: Any, *rest: Any) -> None:
    *_, out = rest
    count = len(out.records)
    original(self, group, *rest)
    del out.records[count:]


# -- offsets


def without_tombstones(apply: Do, self: Any, record: Any) -> Any:
    is_tombstone = record.value is None and is_offset(record.key)
    return Applied(b"", False) if is_tombstone else apply(self, record)


def a_quarter_of_the_retention(expire: Do, self: Any, group: Any, stamp_ms: int, out: Any) -> Any:
    return expire(self, group, stamp_ms + self.settings.retention_ms * 3 // 4, out)


def never_old(expire: Do, self: Any, group: Any, _: int, out: Any) -> Any:
    return expire(self, group, 0, out)


def without_offsets(delete: Do, self: Any, group_id: str, out: Any) -> None:
    out.records[:] = [record for record in out.records if not is_offset(record.key)]
    delete(self, group_id, out)


# -- classic groups


def keeping_deleted(apply: Do, self: Any, record: Any, now: Any) -> Any:
    before = self.stored.get(record.group)
    replies = apply(self, record, now)
    if record.value is None and before is not None:
        self.stored[record.group] = before
    return replies


def same_generation(begin: Do, self: Any, stamp_ms: int) -> None:
    before = self.generation
    begin(self, stamp_ms)
    self.generation = max(before, 1)


def for_its_holder(
    beat: Do, self: Any, group_id: str, generation: int, member_id: str, instance_id: Any, now: Any
) -> Any:
    group = self.live.get(group_id)
    if group is not None and instance_id in group.statics:
        member_id = group.statics[instance_id]
    return beat(self, group_id, generation, member_id, instance_id, now)


def settled_first(sync: Do, self: Any, ask: Any, ticket: Any, now: Any) -> Any:
    out = sync(self, ask, ticket, now)
    if out.records:
        self._rebalance.settle(self.live[ask.group_id], ask.assignments, now, Decision())
    return out


def without_joins(give_up: Do, self: Any, group: Any, error: Any, out: Any) -> None:
    give_up(self, group, error, out)
    out.replies[:] = [reply for reply in out.replies if not isinstance(reply[1], Joined)]


def always_settled(adopt: Do, self: Any, group: Any, _: bool, now: Any, out: Any) -> None:
    adopt(self, group, True, now, out)


def without_a_deadline(start: Do, self: Any, group: Any, now: Any, out: Any) -> None:
    first = group.state is State.EMPTY
    start(self, group, now, out)
    if not first and group.state is State.PREPARING_REBALANCE:
        self.deadlines.cancel((JOIN, group.group_id, ""))


def is_first(group: Any) -> bool:
    return bool(group.state is State.PREPARING_REBALANCE and group.before is State.EMPTY)


def put_off(passed: Do, self: Any, key: Any, group: Any, now: Any, out: Any) -> None:
    grew, left_ms = group.grew, group.delay_left_ms
    passed(self, key, group, now, out)
    if key[0] == JOIN and is_first(group):
        group.grew, group.delay_left_ms = grew, left_ms


def empty_unrecorded(complete: Do, self: Any, group: Any, now: Any, out: Any) -> None:
    count = len(out.records)
    complete(self, group, now, out)
    if group.state is State.EMPTY:
        del out.records[count:]


def other_protocol(elected: Do, self: Any) -> Any:
    return "" if self.state is State.STABLE else elected(self)


def static_stays(leave: Do, self: Any, group: Any, leaver: Any, out: Any) -> Any:
    if not leaver.member_id and leaver.instance_id in group.statics:
        return ErrorCode.NONE
    return leave(self, group, leaver, out)


def unknown_taken(beat: Do, self: Any, group_id: str, *rest: Any) -> Any:
    error = beat(self, group_id, *rest)
    return ErrorCode.NONE if error is ErrorCode.UNKNOWN_MEMBER_ID and group_id in self.live else error


def joining(_: Do, self: Any) -> bool:
    return bool(self.joining > 0)


def rebalanced(revive: Do, self: Any, group_id: str, value: Any, now: Any, out: Any) -> None:
    revive(self, group_id, value, now, out)
    group = self.live[group_id]
    if group.members and group.state is State.STABLE:
        self._rebalance.start(group, now, out)


def with_a_leader(value: Do, self: Any) -> Any:
    written = value(self)
    written.leader = next(iter(self.members), None)
    return written


# -- consumer groups


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


def at_epoch_one(migrated: Do, *arguments: Any) -> Any:
    group = migrated(*arguments)
    group.epoch = group.target_epoch = 1
    return group


def without_assignments(migrated: Do, *arguments: Any) -> Any:
    group = migrated(*arguments)
    group.members = {name: replace(member, assigned={}) for name, member in group.members.items()}
    return group


ANSWERS_BEFORE_THE_COMMIT = [Instead(f"{RUNTIME}._append", answered_first)]

WITH_POWER_LOSS: dict[str, list[Instead]] = {
    "records are applied before they are committed": [Instead(f"{RUNTIME}._commit", applied_first)],
    "answers go out before the commit": ANSWERS_BEFORE_THE_COMMIT,
    "an assignment counts before it is committed, and the members that wait for it are forgotten": [
        Instead(f"{CLASSIC}.sync", settled_first),
    ],
}

RUNNING: dict[str, list[Instead]] = {
    "records of one batch are applied backwards": [Instead(f"{RUNTIME}._commit", applied_backwards)],
    "records of one batch are written backwards": [
        Instead("moldau.coordinators.coordinator_runtime:encode_batch", written_backwards)
    ],
    "a later decision overtakes an earlier one": [Instead(f"{RUNTIME}._execute", overtaken)],
    "parked requests are forgotten at a resignation": [
        Instead(f"{SHARD}.stop", without_replies, within=f"{RUNTIME}.resign")
    ],
    "decisions on their way are forgotten at a resignation": [
        Instead(f"{RUNTIME}._refuse", nothing, within=f"{RUNTIME}.resign")
    ],
    "a coordinator begins without the last batch": [
        Instead("moldau.replication.internal_topic:InternalTopic.read_all", without_the_last_batch)
    ],
    "a coordinator that comes back is not loaded": [Instead(f"{RUNTIME}.lead", nothing)],
}

OFFSETS_AND_DELETIONS: dict[str, list[Instead]] = {
    "tombstones of offsets are skipped": [Instead(f"{OFFSETS}.apply", without_tombstones)],
    "offsets are forgotten too early": [Instead(f"{OFFSETS}.expire", a_quarter_of_the_retention)],
    "offsets are never forgotten": [Instead(f"{OFFSETS}.expire", never_old)],
    "the offsets of a deleted classic group stay": [
        Instead(f"{CLASSIC}.delete", without_offsets, within=f"{SHARD}.delete_groups")
    ],
    "the offsets of a deleted consumer group stay": [
        Instead(f"{CONSUMERS}.delete", without_offsets, within=f"{SHARD}.delete_groups")
    ],
    "a group is deleted though it has members": [
        Instead(f"{CLASSIC}.check_delete", forgiving(ErrorCode.NON_EMPTY_GROUP))
    ],
}

CLASSIC_GROUPS: dict[str, list[Instead]] = {
    "tombstones of groups are skipped": [Instead(f"{CLASSIC}.apply", keeping_deleted)],
    "a heartbeat does not keep a member": [Instead(f"{REBALANCE}.keep_alive", nothing, within=f"{CLASSIC}.heartbeat")],
    "a commit does not keep a member": [Instead(f"{REBALANCE}.keep_alive", nothing, within=f"{CLASSIC}.check_commit")],
    "the session of a dead member never ends": [
        Instead(f"{REBALANCE}.passed", unless(lambda _, key, *__: key[0] == SESSION))
    ],
    "sessions begin anew only for some after a start": [
        Instead(f"{REBALANCE}.keep_alive", nothing, within=f"{CLASSIC}.start")
    ],
    "the generation is not counted up": [Instead(f"{CLASSIC_GROUP}.begin_generation", same_generation)],
    "a fenced member is taken for the one that fenced it": [Instead(f"{CLASSIC}.heartbeat", for_its_holder)],
    "commits of an older generation are taken": [Instead(f"{CLASSIC}.check_commit", commit_of_any_generation)],
    "heartbeats of an older generation are taken": [Instead(f"{CLASSIC}.heartbeat", of_any_generation)],
    "heartbeats of unknown members are taken": [Instead(f"{CLASSIC}.heartbeat", unknown_taken)],
    "a rebalance has no deadline": [Instead(f"{REBALANCE}.start", without_a_deadline)],
    "a rebalance waits for ever for a busy member": [
        Instead(f"{REBALANCE}.passed", unless(lambda _, key, group, *__: key[0] == JOIN and not is_first(group)))
    ],
    "an assignment that nobody gives is waited for for ever": [
        Instead(f"{REBALANCE}.passed", unless(lambda _, key, *__: key[0] == SYNC))
    ],
    "a first rebalance is put off for ever": [Instead(f"{REBALANCE}.passed", put_off)],
    "a group that becomes empty is not written to the log": [Instead(f"{REBALANCE}.complete", empty_unrecorded)],
    "a rebalance goes on without members that are missing": [Instead(f"{CLASSIC_GROUP}.all_joined", joining)],
    "a static member is replaced without its record": [Instead(f"{JOINING}._replace_static", with_no_record)],
    "a static member keeps its member id when it is replaced": [Instead(f"{CLASSIC_GROUP}.rename", nothing)],
    "a static member that comes back makes all join again": [
        Instead(f"{CLASSIC_GROUP}.elected_protocol", other_protocol, within=f"{JOINING}._replace_static")
    ],
    "a static member that an administrator removes stays": [Instead(f"{CLASSIC}._leave_one", static_stays)],
    "a member that leaves stays until its session ends": [
        Instead(f"{REBALANCE}.drop", nothing, within=f"{CLASSIC}.leave")
    ],
    "a group takes more members than it may": [Instead(f"{JOINING}.has_room", returns(True))],
    "too many members stay after a start": [
        Instead(f"{REBALANCE}.start", unless(lambda _, group, *__: group.leader is not None), within=f"{CLASSIC}.start")
    ],
    "a group that is loaded begins a rebalance": [Instead(f"{CLASSIC}._revive", rebalanced)],
}

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

CONVERSIONS: dict[str, list[Instead]] = {
    "members that wait in a group that is upgraded are forgotten": [Instead(f"{CLASSIC}.abandon", without_joins)],
    "a group that is downgraded does not begin a rebalance": [Instead(f"{CLASSIC}.adopt", always_settled)],
    "the rebalance of a downgraded group is not in the log": [
        Instead(f"{CLASSIC_GROUP}.value", with_a_leader, within=f"{CLASSIC}.adopt")
    ],
    "the rebalance of a downgraded group is not read from the log": [
        Instead(f"{REBALANCE}.start", unless(lambda _, group, *__: group.leader is None), within=f"{CLASSIC}.start")
    ],
    "classic members do not hear of changes of a consumer group": [
        Instead(f"{MEMBER_DEADLINES}.expect_join", nothing, within=f"{CLASSIC_MEMBERS}.heartbeat"),
        Instead(f"{CLASSIC_MEMBERS}.heartbeat", forgiving(ErrorCode.REBALANCE_IN_PROGRESS)),
    ],
    "a classic member that does not join again stays in a consumer group": [
        Instead(f"{DEADLINES}.set", skipping(CONSUMER_JOIN))
    ],
    "a classic member that does not sync stays in a consumer group": [
        Instead(f"{DEADLINES}.set", skipping(CONSUMER_SYNC))
    ],
    "the epoch of an upgraded group is one": [Instead(MIGRATED, at_epoch_one)],
    "members lose their partitions when their group is upgraded": [Instead(MIGRATED, without_assignments)],
}

BUGS = RUNNING | OFFSETS_AND_DELETIONS | CLASSIC_GROUPS | CONSUMER_GROUPS | CONVERSIONS
