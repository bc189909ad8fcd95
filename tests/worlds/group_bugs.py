"""Bugs of what runs the group coordinators, of offsets, deletions and conversions, that worlds of groups must find
(`mutations`); with those of either kind of group, all of them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from moldau.coordinators.consumer.member_deadlines import JOIN as CONSUMER_JOIN
from moldau.coordinators.consumer.member_deadlines import SYNC as CONSUMER_SYNC
from moldau.coordinators.coordinator_runtime import LedPartition
from moldau.coordinators.decision import Decision
from moldau.coordinators.offsets.committed import Applied
from moldau.coordinators.offsets.records import is_offset
from moldau.errors import ErrorCode
from moldau.records.batch import batches
from tests.replacing import Instead, nothing, unless
from tests.worlds.changed_answers import DEADLINES, SHARD, Do, forgiving, skipping
from tests.worlds.classic_group_bugs import (
    CLASSIC,
    CLASSIC_GROUP,
    CLASSIC_GROUPS,
    REBALANCE,
    always_settled,
    with_a_leader,
    without_joins,
)
from tests.worlds.consumer_group_bugs import CLASSIC_MEMBERS, CONSUMER_GROUPS, CONSUMERS, MEMBER_DEADLINES

RUNTIME = "moldau.coordinators.coordinator_runtime:CoordinatorRuntime"

OFFSETS = "moldau.coordinators.offsets.committed:CommittedOffsets"

MIGRATED = "moldau.coordinators.consumer.migration:consumer_group_of"

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


# -- classic groups, and from one kind to another


def settled_first(sync: Do, self: Any, ask: Any, ticket: Any, now: Any) -> Any:
    out = sync(self, ask, ticket, now)
    if out.records:
        self._rebalance.settle(self.live[ask.group_id], ask.assignments, now, Decision())
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
