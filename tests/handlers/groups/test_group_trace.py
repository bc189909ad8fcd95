"""Every answer about a group is one line of the log where that is asked for, and costs nothing where it is not."""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moldau.handlers.groups.consumer_group_heartbeat import ConsumerGroupHeartbeat
from moldau.handlers.groups.group_trace import READERS, traced
from moldau.protocol import apis
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.handlers.group_asking import Group, play


def lines_of(caplog: pytest.LogCaptureFixture, scene: Callable[[Group], Coroutine[Any, Any, None]]) -> list[Any]:
    async def with_trace(group: Group) -> None:
        handlers = {**group._handlers, apis.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeat(group.coordinator)}
        with caplog.at_level(logging.DEBUG, "moldau.groups"):
            group._handlers = {api: traced(api, handler) for api, handler in handlers.items()}
            await scene(group)

    play(with_trace)
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == "moldau.groups"]


def test_what_is_answered_where_nobody_asked_for_lines_is_what_the_handler_answers() -> None:
    handlers = [traced(api, lambda request, _: request) for api in READERS]
    assert not logging.getLogger("moldau.groups").isEnabledFor(logging.DEBUG)
    assert [handler("as it is", None) for handler in handlers] == ["as it is"] * len(READERS)


def test_a_member_of_a_classic_group_is_followed_from_its_first_join_to_its_leave(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(group: Group) -> None:
        member = await group.stable()
        await group.ask(apis.HEARTBEAT, 3, HeartbeatRequest(group_id="g", generation_id=1, member_id=member))
        await group.ask(apis.HEARTBEAT, 3, HeartbeatRequest(group_id="g", generation_id=7, member_id=member))
        topic = OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(committed_offset=3)])
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id="ghost", topics=[topic])
        await group.ask(apis.OFFSET_COMMIT, 5, commit)
        await group.ask(apis.LEAVE_GROUP, 2, LeaveGroupRequest(group_id="g", member_id=member))
        gone = [MemberIdentity(member_id=member), MemberIdentity(member_id="ghost")]
        await group.ask(apis.LEAVE_GROUP, 5, LeaveGroupRequest(group_id="g", members=gone))

    lines = lines_of(caplog, scene)
    assert {(line["group"], line["client"]) for line in lines} == {("g", "asker")}
    who = lines[0]["member"]
    assert [(line["api"], line["member"] == who, line["epoch"], line["error"]) for line in lines] == [
        ("JoinGroup", True, 1, "NONE"),
        ("SyncGroup", True, 1, "NONE"),
        ("Heartbeat", True, 1, "NONE"),
        ("Heartbeat", True, 7, "ILLEGAL_GENERATION"),
        ("OffsetCommit", False, 1, "UNKNOWN_MEMBER_ID"),
        ("LeaveGroup", True, -1, "NONE"),
        ("LeaveGroup", True, -1, "UNKNOWN_MEMBER_ID"),
        ("LeaveGroup", False, -1, "UNKNOWN_MEMBER_ID"),
    ]


def test_a_parked_join_is_told_with_how_long_it_was_parked(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(group: Group) -> None:
        first = await group.stable()
        parked = asyncio.create_task(group.join())
        await asyncio.sleep(2)
        await group.join(member=first)
        await parked

    waited_ms = {line["member"]: line["ms"] for line in lines_of(caplog, scene) if line["epoch"] == 2}
    assert sorted(waited_ms.values()) == [0, 2000]


def test_a_member_of_the_newer_protocol_is_told_with_the_epoch_that_it_reaches(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        joins = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, 1, joins)
        late = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=9)
        await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, 1, late)

    lines = lines_of(caplog, scene)
    assert [(line["api"], line["member"], line["error"]) for line in lines] == [
        ("ConsumerGroupHeartbeat", "m", "NONE"),
        ("ConsumerGroupHeartbeat", "m", "FENCED_MEMBER_EPOCH"),
    ]
    assert lines[0]["epoch"] > 0 and lines[1]["epoch"] == 9


def test_a_refused_heartbeat_of_the_newer_protocol_has_a_line_that_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        for refused in (
            {"member_id": "m", "member_epoch": -7},
            {"member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": -1},
            {"member_id": "m", "member_epoch": 3, "server_assignor": "none"},
            {"member_id": "", "member_epoch": 3},
        ):
            request = ConsumerGroupHeartbeatRequest(group_id="g", **refused)  # type: ignore[arg-type]
            await group.ask(apis.CONSUMER_GROUP_HEARTBEAT, 1, request)

    lines = lines_of(caplog, scene)
    assert [(line["member"], line["epoch"], line["error"]) for line in lines] == [
        ("m", -7, "INVALID_REQUEST"),
        ("m", 0, "INVALID_REQUEST"),
        ("m", 3, "UNSUPPORTED_ASSIGNOR"),
        ("", 3, "INVALID_REQUEST"),
    ]
    assert "none" in lines[2]["message"] and all(line["message"] for line in lines), lines


def test_an_id_that_a_client_chose_is_quoted_and_cut(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="a\nb\x1b" + "c" * 1000)
        await group.ask(apis.HEARTBEAT, 3, beat)

    (line,) = lines_of(caplog, scene)
    assert line["member"].startswith("a\nb\x1bc") and len(line["member"]) == 200
    assert caplog.records[-1].getMessage().isascii() and caplog.records[-1].getMessage().isprintable()
