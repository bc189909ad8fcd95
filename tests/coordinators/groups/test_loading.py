"""A broker that loads a large partition of the offsets topic goes on answering, and says that it is loading."""

import asyncio
import uuid
from collections.abc import Iterator

from moldau.coordinators.coordinator_runtime import LOAD_BYTES, LOAD_RECORD_BYTES, START_BITS, CoordinatorRuntime
from moldau.coordinators.decision import Decision, InternalRecord, Now, Replies
from moldau.coordinators.groups.shard import GroupShard
from moldau.coordinators.offsets.records import offset_record
from moldau.coordinators.partitioning import partition_of
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol import apis
from moldau.protocol.internal import OffsetCommitValue
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.protocol.messages.sync_group import SyncGroupRequest
from moldau.records.batch import Row, encode_batch
from tests.coordinators.fake_log import PARTITIONS, FakeLog, LoopClock, in_virtual_time
from tests.handlers.group_asking import Group, play

TURNS = 20
VALUE_BYTES = 42
LOAD_RECORDS = -(-LOAD_BYTES // (LOAD_RECORD_BYTES + VALUE_BYTES))
"""So many offsets are applied in one turn."""


def commits(first: int, count: int) -> bytes:
    """A batch of so many commits of group g, each of a partition of its own."""
    rows = []
    for at in range(first, first + count):
        value = OffsetCommitValue(offset=at, metadata="", commit_timestamp=1, topic_id=uuid.UUID(int=7))
        record = offset_record("g", TopicPartition("t", at), value)
        rows.append(Row(record.key, record.value, 1))
    return bytes(encode_batch(rows))


async def errors_of_all(group: Group) -> dict[str, int]:
    """What is answered now to everything that a group's members and administrators may ask."""
    ask = group.ask
    topic = OffsetCommitRequestTopic(
        name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    )
    committed = await ask(apis.OFFSET_COMMIT, 8, OffsetCommitRequest(group_id="g", topics=[topic]))
    wanted = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    fetched = await ask(apis.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[wanted]))
    synced = await ask(apis.SYNC_GROUP, 3, SyncGroupRequest(group_id="g", generation_id=1, member_id="m"))
    leaving = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return {
        "OffsetCommit": committed.topics[0].partitions[0].error_code,
        "OffsetFetch": fetched.groups[0].error_code,
        "JoinGroup": (await group.join()).error_code,
        "SyncGroup": synced.error_code,
        "LeaveGroup": (await ask(apis.LEAVE_GROUP, 4, leaving)).error_code,
        "Heartbeat": (await ask(apis.HEARTBEAT, 3, beat)).error_code,
        "ListGroups": (await ask(apis.LIST_GROUPS, 3, ListGroupsRequest())).error_code,
    }


def test_while_a_large_topic_loads_everybody_is_told_so_and_all_others_get_their_turn() -> None:
    async def scene(group: Group) -> None:
        partition = partition_of("g", PARTITIONS)
        group.log.batches[partition] = [commits(at * LOAD_RECORDS, LOAD_RECORDS) for at in range(TURNS)]
        group.coordinator.lead(partition, 0)
        await asyncio.sleep(0)
        turns = 0
        while (errors := await errors_of_all(group))["OffsetFetch"]:
            assert turns <= 10 * TURNS
            turns += 1
            loading = dict.fromkeys(errors, int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            assert errors == {**loading, "Heartbeat": 0}
            await asyncio.sleep(0)
        assert turns >= TURNS
        assert len(group.coordinator.offsets("g")) == TURNS * LOAD_RECORDS

    play(scene)


def test_one_batch_of_many_records_is_applied_in_pieces() -> None:
    async def scene(group: Group) -> None:
        partition = partition_of("g", PARTITIONS)
        group.log.batches[partition] = [commits(0, TURNS * LOAD_RECORDS)]
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.ensure_future(count())
        await group.load("g")
        counting.cancel()
        assert turns >= TURNS
        assert len(group.coordinator.offsets("g")) == TURNS * LOAD_RECORDS

    play(scene)


class Counting:
    """A machine that counts what it is given, and decides nothing."""

    def __init__(self, seen: list[int], partition: int):
        self._seen = seen
        self._partition = partition

    def apply(self, record: InternalRecord, now: Now) -> Replies:
        self._seen.append(self._partition)
        return []

    def start(self, now: Now, out: Decision) -> Iterator[int]:
        yield from ()

    def tick(self, now: Now) -> Decision | None:
        return None

    def next_ms(self) -> int | None:
        return None

    def stop(self, error: ErrorCode) -> Replies:
        return []


def test_large_records_are_applied_one_by_one() -> None:
    async def scene() -> None:
        log, seen = FakeLog(), list[int]()
        host = CoordinatorRuntime(log, lambda partition: Counting(seen, partition), LoopClock())
        log.batches = {0: [bytes(encode_batch([Row(b"k", b"v" * LOAD_BYTES, 1) for _ in range(TURNS)]))]}
        host.lead(0, 0)
        loading, most, before = asyncio.ensure_future(host.loaded(0)), 0, 0
        while not loading.done():
            await asyncio.sleep(0)
            most, before = max(most, len(seen) - before), len(seen)
        assert (most, len(seen)) == (1, TURNS)
        await host.stop()

    in_virtual_time(scene())


def test_partitions_that_are_loaded_together_take_turns_chunk_by_chunk() -> None:
    async def scene() -> None:
        log, seen = FakeLog(), list[int]()
        host = CoordinatorRuntime(log, lambda partition: Counting(seen, partition), LoopClock())
        many, few = 4 * LOAD_RECORDS, 10
        log.batches = {0: [commits(0, many), commits(0, many)], 1: [commits(0, few)], 2: [commits(0, few)]}
        for partition in log.batches:
            host.lead(partition, 0)
        loading, most, before = [asyncio.ensure_future(host.loaded(p)) for p in log.batches], 0, 0
        while not all(each.done() for each in loading):
            await asyncio.sleep(0)
            most, before = max(most, len(seen) - before), len(seen)
        assert 0 < most <= LOAD_RECORDS
        order = [0] * many + [1] * few + [2] * few + [0] * many
        assert seen == order
        await host.stop()

    in_virtual_time(scene())


def test_a_partition_of_many_groups_starts_bit_by_bit_and_is_loading_until_it_has() -> None:
    """Groups that only have offsets, which the start makes; their records were applied in the turns before."""
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=1, topic_id=uuid.UUID(int=7))
    here = partition_of("g", PARTITIONS)
    groups = [f"g{n}" for n in range(PARTITIONS * TURNS * START_BITS) if partition_of(f"g{n}", PARTITIONS) == here]
    records = [offset_record(name, TopicPartition("t", 0), value) for name in groups]
    rows = [Row(record.key, record.value, 1) for record in records]
    shards: list[GroupShard] = []

    async def scene(group: Group) -> None:
        group.log.batches[here] = [bytes(encode_batch(rows))]
        host = group.coordinator._runtime
        make = host._machine

        def kept(partition: int) -> GroupShard:
            shards.append(make(partition))
            return shards[-1]

        host._machine = kept
        group.coordinator.lead(here, 0)
        loading, most, before = asyncio.ensure_future(group.load("g")), 0, 0
        while not loading.done():
            await asyncio.sleep(0)
            now = len(shards[0].classic.live)
            most, before = max(most, now - before), now
            if now < len(groups):
                assert (await group.join()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert 0 < most <= START_BITS
        assert before == len(groups) > TURNS * START_BITS // 2

    play(scene)
