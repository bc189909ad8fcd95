"""Offsets that a producer commits in its transactions, by raw requests in every version: the answers are those of Kafka
4.3.1, and for version 6 of 4.4.0."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    FIND_COORDINATOR,
    JOIN_GROUP,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.sync_group import SyncGroupRequest
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinators.groups.scene import subscription
from tests.handlers.living import Living
from tests.handlers.transacting import PAUSE_S, Transactor, run, transactor, tried

NONE, UNSTABLE = ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT
ABSENT = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
BY_ID = 6
CONSUMER_GROUP = 1
VERSIONS = range(TXN_OFFSET_COMMIT.low, TXN_OFFSET_COMMIT.high + 1)
OLDER = [version for version in VERSIONS if version < 5]


def topic_id(one: Transactor, name: str) -> uuid.UUID:
    """The topic's id; that of no topic if there is none of that name."""
    topic = one.image().topics.get(name)
    return uuid.uuid5(uuid.NAMESPACE_OID, name) if topic is None else topic.id


async def ready(alive: Living, name: str = "t") -> Transactor:
    """A producer, its topic `a` of two partitions, and the coordinator of group g."""
    if "a" not in alive.broker.cluster.image.topics:
        await alive.make("a", 2)
    one = await transactor(alive, name)
    await one.wire.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
    await alive.broker.coordinators.groups.loaded("g")
    return one


async def commit(
    one: Transactor, version: int, offsets: dict[tuple[str, int], int], group: str = "g", **fields: Any
) -> list[tuple[str, int, ErrorCode]]:
    """The answer for each, asked again while the transaction before is being ended."""
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    metadata = fields.pop("metadata", None)
    for (name, index), offset in offsets.items():
        part = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        topics.setdefault(name, []).append(part)
    known = {
        "transactional_id": one.transactional_id,
        "group_id": group,
        "producer_id": one.producer_id,
        "producer_epoch": one.epoch,
        "topics": [
            TxnOffsetCommitRequestTopic(name=name, topic_id=topic_id(one, name), partitions=parts)
            for name, parts in topics.items()
        ],
    }
    names = {topic_id(one, name): name for name in topics}
    request = TxnOffsetCommitRequest(**{**known, **fields})

    def codes(answer: Any) -> list[tuple[str, int, ErrorCode]]:
        return [
            (t.name if version < BY_ID else names[t.topic_id], p.partition_index, ErrorCode(p.error_code))
            for t in answer.topics
            for p in t.partitions
        ]

    def first(answer: Any) -> int:
        return next((error for _, _, error in codes(answer)), NONE)

    return codes(await tried(lambda: one.wire.ask(TXN_OFFSET_COMMIT, version, request), first))


async def error(one: Transactor, version: int, **fields: Any) -> ErrorCode:
    ((_, _, code),) = await commit(one, version, {("a", 0): 1}, **fields)
    return code


async def fetched(
    one: Transactor, *partitions: int, stable: bool = True, version: int = 9, group: str = "g"
) -> list[tuple[int, int, ErrorCode]]:
    """(partition, offset, error) of what is asked for, of everything if nothing is."""
    asked = list(partitions) or None
    if version < 8:
        older = None if asked is None else [OffsetFetchRequestTopic(name="a", partition_indexes=asked)]
        answer = await one.wire.ask(
            OFFSET_FETCH, version, OffsetFetchRequest(group_id=group, topics=older, require_stable=stable)
        )
    else:
        newer = None if asked is None else [OffsetFetchRequestTopics(name="a", partition_indexes=asked)]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=newer)], require_stable=stable
        )
        (answer,) = (await one.wire.ask(OFFSET_FETCH, version, request)).groups
    assert not answer.error_code
    return [
        (p.partition_index, p.committed_offset, ErrorCode(p.error_code)) for t in answer.topics for p in t.partitions
    ]


async def settled(one: Transactor, *partitions: int) -> list[tuple[int, int, ErrorCode]]:
    """What is fetched once no transaction is open."""
    found = await fetched(one, *partitions)
    while any(code is UNSTABLE for *_, code in found):
        await asyncio.sleep(PAUSE_S)
        found = await fetched(one, *partitions)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_count_with_the_end_of_their_transaction(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        seen = [(0, -1, NONE), (1, -1, NONE)]
        for commits, offset in ((True, 5), (False, 6), (True, 7)):
            if version < 5:
                assert await one.add_offsets("g", version=min(version, 3)) is NONE
            assert await commit(one, version, {("a", 0): offset, ("a", 1): offset}) == [("a", 0, NONE), ("a", 1, NONE)]
            assert await fetched(one, 0, 1, stable=False) == seen
            assert await fetched(one, 0, 1) == [(0, -1, UNSTABLE), (1, -1, UNSTABLE)]
            assert await one.end(commits, version=min(version, 5)) is NONE
            seen = [(0, offset, NONE), (1, offset, NONE)] if commits else seen
            assert await settled(one, 0, 1) == seen

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", OLDER)
def test_older_clients_say_first_that_offsets_will_be_committed(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        not_added = ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_TXN_STATE
        assert await error(one, version) is not_added
        assert await one.add_offsets("g") is NONE
        assert await error(one, version) is NONE
        assert await one.end(True, version=3) is NONE
        assert await settled(one, 0) == [(0, 1, NONE)]
        assert await error(one, version) is not_added
        assert await settled(one, 0) == [(0, 1, NONE)]

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", OLDER)
def test_where_nothing_is_verified_offsets_are_taken_as_they_come(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        assert await error(one, version) is NONE
        assert await fetched(one, 0) == [(0, -1, UNSTABLE)]

    run(scenario, tmp_path, transaction_partition_verification_enable="false")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_wrong_with_the_producer_is_said_in_one_word_each(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        assert await one.init() is NONE
        assert one.epoch == 1
        assert await one.add_offsets("g") is NONE
        for begun in (False, True):
            for epoch in (0, 2):
                assert await error(one, version, producer_epoch=epoch) is ErrorCode.INVALID_PRODUCER_EPOCH
            stranger = one.producer_id + 1000
            assert await error(one, version, producer_id=stranger) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
            if not begun:
                assert await error(one, version, transactional_id="x") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
                assert await error(one, version, transactional_id="") is ErrorCode.INVALID_REQUEST
            assert await error(one, version, group="") is ErrorCode.INVALID_GROUP_ID
            assert await error(one, version, metadata="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
            assert await error(one, version) is NONE
        assert await one.end(True, version=3) is NONE
        assert await settled(one) == [(0, 1, NONE)]

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_that_are_not_there_come_first(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        assert await one.add_offsets("g") is NONE
        no_topic = ErrorCode.UNKNOWN_TOPIC_ID if version >= BY_ID else ABSENT
        answer = await commit(one, version, {("nope", 0): 1, ("a", 0): 1, ("a", 7): 1, ("a", -1): 1})
        assert answer == [("nope", 0, no_topic), ("a", 7, ABSENT), ("a", -1, ABSENT), ("a", 0, NONE)]
        assert await commit(one, version, {("nope", 0): 1}) == [("nope", 0, no_topic)]
        assert await commit(one, version, {}) == []

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [5, BY_ID])
def test_a_topic_that_is_named_twice_is_answered_twice_unless_one_is_not_there(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        await alive.make("b", 2)

        async def answered(*asked: tuple[str, list[int]]) -> list[tuple[str, list[int]]]:
            names = {topic_id(one, name): name for name, _ in asked}
            topics = [
                TxnOffsetCommitRequestTopic(
                    name=name,
                    topic_id=topic_id(one, name),
                    partitions=[TxnOffsetCommitRequestPartition(partition_index=number) for number in numbers],
                )
                for name, numbers in asked
            ]
            request = TxnOffsetCommitRequest(
                transactional_id="t",
                group_id="g",
                producer_id=one.producer_id,
                producer_epoch=one.epoch,
                topics=topics,
            )
            answer = await one.wire.ask(TXN_OFFSET_COMMIT, version, request)
            return [
                (t.name if version < BY_ID else names[t.topic_id], [p.partition_index for p in t.partitions])
                for t in answer.topics
            ]

        twice = [("a", [0]), ("b", [0]), ("a", [1])]
        assert await answered(*twice) == twice
        assert await answered(("a", [0]), ("nope", [0]), ("nope", [0]), ("a", [1])) == [
            ("nope", [0, 0]),
            ("a", [0, 1]),
        ]
        assert await answered(("nope", []), ("b", []), ("a", [0])) == [("nope", []), ("a", [0])]

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 3])
def test_a_generation_of_a_group_that_is_not_there_is_refused(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        assert await one.add_offsets("g") is NONE
        no_group = ErrorCode.GROUP_ID_NOT_FOUND if version >= BY_ID else ErrorCode.ILLEGAL_GENERATION
        for generation in (0, 3):
            for member in ("", "m"):
                assert await error(one, version, member_id=member, generation_id_or_member_epoch=generation) is no_group
        assert await error(one, version, member_id="m", group_instance_id="i") is NONE

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 3])
def test_a_member_of_a_consumer_group_at_another_epoch_is_stale(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        assert await one.add_offsets("g") is NONE
        epoch = await consumer_of(one)

        async def told(epoch: int, member_id: str) -> ErrorCode:
            return await error(one, version, member_id=member_id, generation_id_or_member_epoch=epoch)

        stale = ErrorCode.STALE_MEMBER_EPOCH if version >= BY_ID else ErrorCode.ILLEGAL_GENERATION
        assert await told(epoch, "m") is NONE
        assert [await told(other, "m") for other in (-1, 0, epoch - 1, epoch + 1)] == [stale] * 4
        assert [await told(other, "stranger") for other in (-1, epoch)] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
        assert await told(epoch, "") is ErrorCode.UNKNOWN_MEMBER_ID
        assert await told(-1, "") is NONE

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_where_there_are_no_groups_yet_there_is_no_coordinator(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        one = await transactor(alive, "t")
        assert await error(one, version) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await error(one, version, group="") is ErrorCode.INVALID_GROUP_ID

    run(scenario, tmp_path)


async def consumer_of(one: Transactor) -> int:
    """The member m of consumer group g has all partitions of topic a; its epoch."""
    joining = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": ["a"], "topic_partitions": []}
    epoch, given = 0, None
    while given is None or not given.topic_partitions:
        beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **joining)
        answer = await one.wire.ask(CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP, beat)
        assert not answer.error_code
        epoch, given, joining = answer.member_epoch, answer.assignment or given, {}
    assert isinstance(epoch, int)
    return epoch


async def member_of(one: Transactor, instance_id: str | None = None) -> str:
    """The one member of group g, at generation 1."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=subscription("a"))
    join = JoinGroupRequest(
        group_id="g",
        group_instance_id=instance_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    joined = await one.wire.ask(JOIN_GROUP, 3 if instance_id is None else 5, join)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id, group_instance_id=instance_id)
    assert not (await one.wire.ask(SYNC_GROUP, 3, sync)).error_code
    assert isinstance(joined.member_id, str)
    return joined.member_id


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 3])
@pytest.mark.parametrize("instance_id", [None, "A"])
def test_a_consumer_of_another_generation_is_fenced(version: int, instance_id: str | None, tmp_path: Path) -> None:
    """KIP-447: a producer for all inputs of a consumer, told from that of the consumer before by its generation."""

    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        member = await member_of(one, instance_id)
        assert await one.add_offsets("g") is NONE

        async def told(generation: int, member_id: str) -> ErrorCode:
            who = {
                "generation_id_or_member_epoch": generation,
                "member_id": member_id,
                "group_instance_id": instance_id,
            }
            return await error(one, version, **who)

        another = ErrorCode.UNKNOWN_MEMBER_ID if instance_id is None else ErrorCode.FENCED_INSTANCE_ID
        assert await told(2, member) is ErrorCode.ILLEGAL_GENERATION
        assert await told(0, member) is ErrorCode.ILLEGAL_GENERATION
        assert await told(1, "another") is another
        assert await told(1, member) is NONE
        assert await told(-1, "") is (NONE if instance_id is None else another)

    run(scenario, tmp_path, group_initial_rebalance_delay_ms=0)


@pytest.mark.parametrize("version", range(1, 11))
def test_who_does_not_ask_for_stable_offsets_is_not_kept_waiting(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        assert await error(one, 5) is NONE
        assert await one.end(True, version=5) is NONE
        assert await settled(one, 0) == [(0, 1, NONE)]
        assert await commit(one, 5, {("a", 0): 2, ("a", 1): 2}) == [("a", 0, NONE), ("a", 1, NONE)]
        if version < 10:
            assert await fetched(one, 0, 1, stable=False, version=version) == [(0, 1, NONE), (1, -1, NONE)]
        if version >= 2:
            assert await fetched(one, stable=False, version=version) == [(0, 1, NONE)]
        if version >= 7:
            assert await fetched(one, version=version) == [(0, -1, UNSTABLE)]

    run(scenario, tmp_path)


def test_a_transaction_is_one_over_offsets_and_records_and_a_restart(tmp_path: Path) -> None:
    async def first(alive: Living) -> None:
        one = await ready(alive)
        assert await error(one, 5) is NONE
        assert await one.write("a", 0, b"x", version=12) is NONE
        assert await one.end(True, version=5) is NONE
        assert await settled(one, 0) == [(0, 1, NONE)]
        assert await commit(one, 5, {("a", 0): 2, ("a", 1): 2}) == [("a", 0, NONE), ("a", 1, NONE)]
        assert await one.write("a", 1, b"y", version=12) is NONE
        assert await fetched(one, 0, 1) == [(0, -1, UNSTABLE), (1, -1, UNSTABLE)]

    async def second(alive: Living) -> None:
        await alive.broker.coordinators.groups.loaded("g")
        one = Transactor(await alive.dial(), "t", lambda: alive.broker.cluster.image)
        assert await fetched(one, 0, 1) == [(0, -1, UNSTABLE), (1, -1, UNSTABLE)]
        assert await fetched(one, stable=False) == [(0, 1, NONE)]
        assert await one.init() is NONE
        assert await settled(one, 0, 1) == [(0, 1, NONE), (1, -1, NONE)]
        assert await commit(one, 5, {("a", 0): 3}) == [("a", 0, NONE)]
        assert await one.end(True, version=5) is NONE
        assert await settled(one, 0, 1) == [(0, 3, NONE), (1, -1, NONE)]
        number = alive.broker.coordinators.groups.partition_of("g")
        replica = alive.replica(OFFSETS_TOPIC, number)
        assert replica.last_stable_offset == replica.high_watermark

    run(first, tmp_path)
    run(second, tmp_path)


def test_a_deleted_group_takes_along_what_waits_for_it(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await ready(alive)
        assert await commit(one, 5, {("a", 0): 1}) == [("a", 0, NONE)]
        deleted = await one.wire.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["g"]))
        assert [result.error_code for result in deleted.results] == [0]
        assert await fetched(one, 0) == [(0, -1, NONE)]
        assert await one.end(True, version=5) is NONE
        assert await commit(one, 5, {("a", 1): 2}) == [("a", 1, NONE)]
        assert await one.end(True, version=5) is NONE
        assert await settled(one) == [(1, 2, NONE)]

    run(scenario, tmp_path)


def test_a_new_producer_of_the_same_id_ends_what_the_old_one_left(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        old = await ready(alive)
        assert await error(old, 5) is NONE
        new = await ready(alive)
        assert await settled(new, 0) == [(0, -1, NONE)]
        assert await error(old, 5) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await commit(new, 5, {("a", 0): 9}) == [("a", 0, NONE)]
        assert await error(old, 5) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await new.end(True, version=5) is NONE
        assert await settled(new, 0) == [(0, 9, NONE)]

    run(scenario, tmp_path)
