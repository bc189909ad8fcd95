"""Fetch, ListOffsets and OffsetForLeaderEpoch of a client that may not do everything."""

import uuid
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.rights import RIGHTS
from moldau.net.peer import Peer
from moldau.protocol import codec
from moldau.protocol.apis import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, Api
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from moldau.requests.access import CLUSTER_ACTION, CLUSTER_NAME, DESCRIBE_TOPIC, READ_TOPIC
from moldau.requests.gate import Gate
from moldau.requests.session import Session
from tests.handlers.fetching.fetches import LONG_MS, at, fetch, fill, parts_of, topic_of, values
from tests.handlers.living import Living, batch, run
from tests.requests.calling import Denying

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def two(alive: Living) -> dict[str, bytes]:
    """Topics `a` and `b` with a record each; their ids."""
    ids = {name: await alive.make(name) for name in "ab"}
    for name in "ab":
        await fill(alive, name, batch(name.encode()))
    return ids


@pytest.mark.parametrize("version", [4, 11, 12, 13, FETCH.high])
def test_a_topic_that_may_not_be_read_is_refused_at_once_and_others_are_read(version: int, tmp_path: Path) -> None:
    denying = Denying((READ_TOPIC, "b"))

    async def scenario(alive: Living) -> None:
        ids = await two(alive)
        wire = await alive.dial()
        named: Any = (lambda name: name) if version < 13 else ids.__getitem__
        request = fetch((named("b"), at(0)), (named("a"), at(0)), (named("b"), at(5)), max_wait_ms=LONG_MS)
        response = await wire.ask(FETCH, version, request)
        denied, read, again = parts_of(response)
        assert values(read) == [b"a"]
        for part in (denied, again):
            assert (part.error_code, part.high_watermark, part.last_stable_offset) == (DENIED, -1, -1)
            assert (part.log_start_offset, part.preferred_read_replica) == (-1, -1)
            assert not part.records and not part.aborted_transactions
        assert getattr(response, "error_code", 0) == 0
        denying.asked.clear()
        assert parts_of(await wire.ask(FETCH, version, fetch((named("b"), at(0)), max_wait_ms=LONG_MS)))
        assert denying.asked == [(READ_TOPIC, "b")]

    run(scenario, tmp_path, gate=Gate(authorizer=denying))
    assert {right for right, _ in denying.logged} <= {*RIGHTS[FETCH].parts}


def test_what_may_not_be_read_does_not_tell_whether_it_exists(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await two(alive)
        wire = await alive.dial()
        there, missing = [
            parts_of(await wire.ask(FETCH, 12, fetch((name, at(0)), (name, at(0, partition=9)))))
            for name in ("a", "no")
        ]
        assert there == missing
        unknown = await wire.ask(FETCH, 13, fetch((uuid.uuid4().bytes, at(0))))
        assert parts_of(unknown)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run(scenario, tmp_path, gate=Gate(authorizer=Denying((READ_TOPIC, "*"))))


def test_a_session_is_judged_at_every_request(tmp_path: Path) -> None:
    denying = Denying()

    async def scenario(alive: Living) -> None:
        await two(alive)
        wire = await alive.dial()
        begun = await wire.ask(FETCH, 12, fetch(("a", at(0)), ("b", at(0)), session_epoch=0))
        assert [values(part) for part in parts_of(begun)] == [[b"a"], [b"b"]]
        denying.deny((READ_TOPIC, "b"))
        told = await wire.ask(FETCH, 12, fetch(session_id=begun.session_id, session_epoch=1))
        assert {topic.topic: topic.partitions[0].error_code for topic in told.responses} == {"a": 0, "b": DENIED}

    run(scenario, tmp_path, gate=Gate(authorizer=denying))


@pytest.mark.parametrize("owner", ["User:ANONYMOUS", "User:ann"])
def test_a_session_is_of_the_principal_that_began_it(owner: str, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await two(alive)
        wire = await alive.dial()
        number = (await wire.ask(FETCH, 12, fetch(("a", at(1)), session_epoch=0))).session_id
        asked = fetch(session_id=number, session_epoch=1)
        dispatch = alive.broker.dispatch
        session = Session("PLAINTEXT", Peer("127.0.0.1", 1), owner, authorizer=dispatch.gate.authorizer)
        frame = codec.write_request(FETCH, 12, 7, "asker", asked)[4:]
        answer: Any = dispatch.requests_of(session)(memoryview(bytearray(frame)))
        answer = await answer if isinstance(answer, Awaitable) else answer
        reply = codec.read_reply(FETCH, 12, b"".join(map(bytes, answer))[4:])
        is_found = owner == "User:ANONYMOUS"
        assert reply.error_code == (0 if is_found else ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        assert not reply.responses
        still = await wire.ask(FETCH, 12, fetch(session_id=number, session_epoch=2 if is_found else 1))
        assert (still.error_code, still.session_id) == (0, number)

    run(scenario, tmp_path, gate=Gate(authorizer=Denying()))


def test_a_wide_request_is_judged_topic_by_topic(tmp_path: Path) -> None:
    denying = Denying((READ_TOPIC, "b"))

    async def scenario(alive: Living) -> None:
        await alive.make("a", 600)
        wire = await alive.dial()
        parts = [(name, at(0, partition=number)) for name in "ab" for number in range(600)]
        response = await wire.ask(FETCH, 12, fetch(*parts))
        assert [part.error_code for part in parts_of(response)] == [0] * 600 + [DENIED] * 600

    run(scenario, tmp_path, gate=Gate(authorizer=denying))
    assert denying.asked == [(READ_TOPIC, "a"), (READ_TOPIC, "b")]


def test_a_client_that_says_it_is_a_broker_needs_the_right_to_be_one(tmp_path: Path) -> None:
    denying = Denying()

    async def scenario(alive: Living) -> None:
        ids = await two(alive)
        denying.asked.clear()
        wire = await alive.dial()
        for version in (12, 14):
            asked = fetch((topic_of(version, ids["a"]), at(0)), replica_id=2)
            allowed = parts_of(await wire.ask(FETCH, version, asked))
            assert allowed[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            denying.deny((CLUSTER_ACTION, CLUSTER_NAME))
            assert parts_of(await wire.ask(FETCH, version, asked))[0].error_code == DENIED
            denying.deny()

    run(scenario, tmp_path, gate=Gate(authorizer=denying))
    assert {right for right, _ in denying.asked} == {CLUSTER_ACTION}


def offsets(*named: tuple[str, int]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=number, timestamp=-1)])
            for name, number in named
        ],
    )


def epochs(*named: tuple[str, int]) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(topic=name, partitions=[OffsetForLeaderPartition(partition=number, leader_epoch=0)])
            for name, number in named
        ],
    )


@pytest.mark.parametrize(
    ("api", "version"),
    [(LIST_OFFSETS, 1), (LIST_OFFSETS, 7), (LIST_OFFSETS, 11)] + [(OFFSET_FOR_LEADER_EPOCH, n) for n in (2, 3, 4)],
    ids=lambda value: getattr(value, "name", value),
)
def test_offsets_of_a_topic_that_may_not_be_seen_are_refused(api: Api, version: int, tmp_path: Path) -> None:
    denying = Denying((DESCRIBE_TOPIC, "b"), (DESCRIBE_TOPIC, "none"), (CLUSTER_ACTION, CLUSTER_NAME))
    ask = offsets if api is LIST_OFFSETS else epochs

    async def scenario(alive: Living) -> None:
        await two(alive)
        denying.asked.clear()
        wire = await alive.dial()
        response = await wire.ask(api, version, ask(("b", 0), ("a", 0), ("b", 0), ("none", 0)))
        denied, seen, again, missing = (topic.partitions[0] for topic in response.topics)
        assert (seen.error_code, seen.offset if api is LIST_OFFSETS else seen.end_offset) == (0, 1)
        assert denied.error_code == DENIED
        assert denied == again == missing, "neither its existence nor that it is named twice"
        nothing = (denied.leader_epoch, denied.offset, denied.timestamp) if api is LIST_OFFSETS else (
            denied.leader_epoch, denied.end_offset,
        )  # fmt: skip
        assert {*nothing} == {-1}

    run(scenario, tmp_path, gate=Gate(authorizer=denying))
    assert {right for right, _ in denying.asked} == {*RIGHTS[api].parts}
    assert {right for right, _ in denying.logged} == {DESCRIBE_TOPIC}, "the right on the cluster is only tried"


def test_a_broker_may_ask_for_the_epochs_of_every_topic(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await two(alive)
        wire = await alive.dial()
        response = await wire.ask(OFFSET_FOR_LEADER_EPOCH, 4, epochs(("a", 0), ("b", 0)))
        assert [topic.partitions[0].end_offset for topic in response.topics] == [1, 1]

    run(scenario, tmp_path, gate=Gate(authorizer=Denying((DESCRIBE_TOPIC, "*"))))
