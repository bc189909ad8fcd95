"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup say in every version what Apache Kafka 4.3.1 said when it was asked."""

import pytest

from moldau.errors import ErrorCode
from moldau.protocol import apis
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.coordinators.groups.scene import subscription
from tests.handlers.group_asking import Group, play


def versions(api: apis.Api) -> range:
    return range(api.low, api.high + 1)


@pytest.mark.parametrize("version", versions(apis.JOIN_GROUP))
def test_a_newcomer_joins_in_every_version(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        joined = await group.join(version=version)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert (joined.generation_id, joined.leader) == (-1, "")
            joined = await group.join(version=version, member=joined.member_id)
        assert joined.error_code == ErrorCode.NONE
        assert joined.member_id.startswith("asker-")
        assert (joined.generation_id, joined.protocol_name, joined.leader) == (1, "range", joined.member_id)
        assert joined.protocol_type == ("consumer" if version >= 7 else None)
        assert [(m.member_id, m.metadata) for m in joined.members] == [(joined.member_id, subscription("t"))]
        described = group.coordinator.describe("g")
        assert described is not None
        assert described.members[0].client_host == "/127.0.0.1"

    play(scene)


@pytest.mark.parametrize("version", versions(apis.JOIN_GROUP))
def test_a_join_that_cannot_be_is_answered_with_its_error(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g", "never")
        nobody = None if version >= 7 else ""
        for fields, error in [
            ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
            *([({"group": "g" * 32768}, ErrorCode.INVALID_GROUP_ID)] if apis.JOIN_GROUP.is_flexible(version) else []),
            ({"session_timeout_ms": 5999}, ErrorCode.INVALID_SESSION_TIMEOUT),
            ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
            ({"group": "never", "member": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
            ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ]:
            joined = await group.join(version=version, **fields)
            assert ErrorCode(joined.error_code) is error
            assert (joined.generation_id, joined.protocol_name, joined.leader, joined.members) == (-1, nobody, "", [])
            assert joined.member_id == fields.get("member", "")

    play(scene)


def test_version_0_has_one_timeout_for_session_and_rebalance() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        joined = await group.join(version=0, session_timeout_ms=7000, rebalance_timeout_ms=1)
        shard = group.coordinator._runtime.machine(group.coordinator.partition_of("g"))
        assert shard.classic.live["g"].members[joined.member_id].rebalance_timeout_ms == 7000

    play(scene)


def test_a_static_leader_that_returns_is_told_to_keep_the_assignment_from_version_9_on() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        joined = await group.join(version=5, group_instance_id="A")
        part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id, assignments=[part])
        await group.ask(apis.SYNC_GROUP, 3, sync)
        older = await group.join(version=8, group_instance_id="A")
        assert (older.generation_id, older.leader, older.skip_assignment) == (1, joined.member_id, False)
        newer = await group.join(version=9, group_instance_id="A")
        assert (newer.generation_id, newer.leader, newer.skip_assignment) == (1, newer.member_id, True)
        assert [(m.member_id, m.group_instance_id) for m in newer.members] == [(newer.member_id, "A")]

    play(scene)


@pytest.mark.parametrize("version", versions(apis.SYNC_GROUP))
def test_sync_gives_the_assignment_or_the_error(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        member = (await group.join()).member_id
        good = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}

        async def sync(generation: int, member_id: str, **fields: object) -> tuple[ErrorCode, bytes, str | None]:
            part = SyncGroupRequestAssignment(member_id=member, assignment=b"all")
            what = {"group_id": "g", "generation_id": generation, "member_id": member_id, "assignments": [part]}
            synced = await group.ask(apis.SYNC_GROUP, version, SyncGroupRequest(**{**what, **good, **fields}))
            return ErrorCode(synced.error_code), synced.assignment, synced.protocol_name

        assert await sync(2, member) == (ErrorCode.ILLEGAL_GENERATION, b"", None)
        assert await sync(1, "ghost") == (ErrorCode.UNKNOWN_MEMBER_ID, b"", None)
        assert await sync(1, member, group_id="") == (ErrorCode.INVALID_GROUP_ID, b"", None)
        if version >= 3:
            assert await sync(1, member, group_instance_id="i") == (ErrorCode.UNKNOWN_MEMBER_ID, b"", None)
        if version >= 5:
            for wrong in (
                {"protocol_type": "x"},
                {"protocol_name": "x"},
                {"protocol_type": None},
                {"protocol_name": None},
            ):
                assert await sync(1, member, **wrong) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, b"", None)
        assert await sync(1, member) == (ErrorCode.NONE, b"all", "range" if version >= 5 else None)

    play(scene)


@pytest.mark.parametrize("version", versions(apis.HEARTBEAT))
def test_heartbeats_are_answered_at_once(version: int) -> None:
    async def scene(group: Group) -> None:
        member = await group.stable()

        async def beat(generation: int, member_id: str, group_id: str = "g") -> ErrorCode:
            request = HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member_id)
            return ErrorCode((await group.ask(apis.HEARTBEAT, version, request)).error_code)

        assert await beat(1, member) is ErrorCode.NONE
        assert await beat(0, member) is ErrorCode.ILLEGAL_GENERATION
        assert await beat(1, "ghost") is ErrorCode.UNKNOWN_MEMBER_ID
        assert await beat(1, member, "") is ErrorCode.INVALID_GROUP_ID
        assert await beat(1, member, "not-ours") is ErrorCode.NOT_COORDINATOR

    play(scene)


@pytest.mark.parametrize("version", versions(apis.LEAVE_GROUP))
def test_leaving_one_by_one_or_many_at_once(version: int) -> None:
    async def scene(group: Group) -> None:
        member = await group.stable()

        async def leave(
            *members: tuple[str, str | None], group_id: str = "g"
        ) -> tuple[int, list[tuple[str, str | None, int]]]:
            many = [MemberIdentity(member_id=one, group_instance_id=instance) for one, instance in members]
            request = LeaveGroupRequest(group_id=group_id, member_id=members[0][0], members=many)
            left = await group.ask(apis.LEAVE_GROUP, version, request)
            return left.error_code, [(m.member_id, m.group_instance_id, m.error_code) for m in left.members]

        unknown = int(ErrorCode.UNKNOWN_MEMBER_ID)
        if version < 3:
            assert await leave(("ghost", None)) == (unknown, [])
            assert await leave((member, None), group_id="") == (ErrorCode.INVALID_GROUP_ID, [])
            assert await leave((member, None)) == (0, [])
            assert await leave((member, None)) == (unknown, [])
        else:
            asked = [("ghost", None), ("", "i"), (member, "i"), (member, None), (member, None)]
            errors = [unknown, unknown, unknown, 0, unknown]
            assert await leave(*asked) == (0, [(*one, error) for one, error in zip(asked, errors, strict=True)])
            assert await leave((member, None), group_id="") == (ErrorCode.INVALID_GROUP_ID, [])

    play(scene)


def test_a_flood_of_newcomers_that_never_come_back_is_bounded() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        for _ in range(10_050):
            assert (await group.join(version=4)).error_code == ErrorCode.MEMBER_ID_REQUIRED
        shard = group.coordinator._runtime.machine(group.coordinator.partition_of("g"))
        assert len(shard.classic.live["g"].expected) == 10_000

    play(scene)


def test_a_long_list_of_protocols_is_elected_from_by_vote() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        offered = [JoinGroupRequestProtocol(name=f"p{n}", metadata=b"") for n in range(500)]
        joined = await group.join(protocols=offered)
        assert joined.protocol_name == "p0"

    play(scene)
