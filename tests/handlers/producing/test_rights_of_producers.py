"""Produce of a client that may not do everything: each partition that it may not write to says so, and no other."""

import uuid
from pathlib import Path

import pytest

from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode
from moldau.handlers.rights import RIGHTS
from moldau.protocol.apis import METADATA, PRODUCE
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.records.batch import TRANSACTIONAL_BIT
from moldau.requests.access import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.requests.gate import Gate
from moldau.security.authorizer import AclAuthorizer
from tests.handlers.living import Living, batch, outcomes, produce, run
from tests.requests.calling import Denying
from tests.security.test_rules import acls

TOPIC_DENIED, ID_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", [PRODUCE.lowest, 8, 12])
def test_a_topic_that_may_not_be_written_to_is_refused_and_others_are_written(version: int, tmp_path: Path) -> None:
    denying = Denying((WRITE_TOPIC, "b"), (WRITE_TOPIC, "none"))

    async def scenario(alive: Living) -> None:
        for name in "ab":
            await alive.make(name)
        wire = await alive.dial()
        parts = [(name, index, batch(b"x")) for name in ("a", "b", "none") for index in (0, 7)]
        response = await wire.ask(PRODUCE, version, produce(*parts))
        denied = [(0, TOPIC_DENIED, -1), (7, TOPIC_DENIED, -1)]
        assert outcomes(response) == [(0, 0, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1), *denied, *denied]
        for part in response.responses[1].partition_responses:
            assert (part.log_append_time_ms, part.log_start_offset, part.error_message) == (-1, -1, None)
        assert alive.replica("b").high_watermark == 0

    run(scenario, tmp_path, gate=Gate(authorizer=denying))
    assert denying.asked == [(WRITE_TOPIC, name) for name in ("a", "b", "none")], "once for each topic"
    assert denying.logged == [(WRITE_TOPIC, "b"), (WRITE_TOPIC, "none")]
    assert {right for right, _ in denying.asked} <= {*RIGHTS[PRODUCE].parts}


def test_a_right_that_is_taken_back_is_missed_by_the_next_request_of_the_same_connection(tmp_path: Path) -> None:
    both = Image("c", acls=acls("allow ANONYMOUS write a", "allow ANONYMOUS write b"))
    by = AclAuthorizer(both, (), allow_if_none=False)

    async def scenario(alive: Living) -> None:
        ids = {name: await alive.make(name) for name in "ab"}
        wire = await alive.dial()
        by_name = produce(*((name, 0, batch(b"x")) for name in "ab"))
        by_id = produce(*((ids[name], 0, batch(b"x")) for name in "ab"))
        for offset in (0, 2):
            assert outcomes(await wire.ask(PRODUCE, 12, by_name)) == [(0, 0, offset)] * 2
            assert outcomes(await wire.ask(PRODUCE, 13, by_id)) == [(0, 0, offset + 1)] * 2
        by.follow(Image("c", acls=acls("allow ANONYMOUS write b")))
        assert outcomes(await wire.ask(PRODUCE, 12, by_name)) == [(0, TOPIC_DENIED, -1), (0, 0, 4)]
        assert outcomes(await wire.ask(PRODUCE, 13, by_id)) == [(0, TOPIC_DENIED, -1), (0, 0, 5)]
        by.follow(both)
        assert outcomes(await wire.ask(PRODUCE, 13, by_id)) == [(0, 0, 4), (0, 0, 6)]

    run(scenario, tmp_path, gate=Gate(authorizer=by))


def test_an_unknown_id_is_unknown_before_it_is_denied(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        topic_id, wire = await alive.make("a"), await alive.dial()
        parts = (topic_id, 0, batch(b"x")), (uuid.uuid4().bytes, 0, batch(b"x"))
        assert outcomes(await wire.ask(PRODUCE, 13, produce(*parts))) == [
            (0, TOPIC_DENIED, -1), (0, ErrorCode.UNKNOWN_TOPIC_ID, -1),
        ]  # fmt: skip

    run(scenario, tmp_path, gate=Gate(authorizer=Denying((WRITE_TOPIC, "*"))))


def test_a_transactional_id_that_may_not_be_used_is_said_in_each_partition(tmp_path: Path) -> None:
    denying = Denying((WRITE_TRANSACTIONAL_ID, "x"))

    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire = await alive.dial()
        request = produce(("a", 0, batch(b"1")), ("none", 3, batch(b"2")), acks=-1, transactional_id="x")
        for version in (3, 9, 12):
            assert outcomes(await wire.ask(PRODUCE, version, request)) == [(0, ID_DENIED, -1), (3, ID_DENIED, -1)]

    run(scenario, tmp_path, gate=Gate(authorizer=denying))
    assert {*denying.asked} == {(WRITE_TRANSACTIONAL_ID, "x")}


def test_a_wide_request_is_judged_topic_by_topic(tmp_path: Path) -> None:
    denying = Denying((WRITE_TOPIC, "b"))

    async def scenario(alive: Living) -> None:
        await alive.make("a", 600)
        wire = await alive.dial()
        parts = [("a", index, batch(b"x")) for index in range(600)] + [
            ("b", index, batch(b"x")) for index in range(600)
        ]
        given = outcomes(await wire.ask(PRODUCE, 9, produce(*parts)))
        assert given == [(index, 0, 0) for index in range(600)] + [(index, TOPIC_DENIED, -1) for index in range(600)]

    run(scenario, tmp_path, gate=Gate(authorizer=denying))
    assert sorted(denying.asked) == [(WRITE_TOPIC, "a"), (WRITE_TOPIC, "b")]


def test_without_acks_a_denial_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        for name in "ab":
            await alive.make(name)
        wire = await alive.dial()
        wire.send(PRODUCE, 7, produce(("a", 0, batch(b"x")), acks=0))
        asked = wire.send(METADATA, 1, MetadataRequest(topics=[]))
        assert (await wire.receive(METADATA, 1))[0] == asked
        wire.send(PRODUCE, 7, produce(("b", 0, batch(b"x")), acks=0))
        assert await wire.is_closed()

    run(scenario, tmp_path, gate=Gate(authorizer=Denying((WRITE_TOPIC, "b"))))


@pytest.mark.parametrize("gate", [None, Gate(authorizer=Denying())], ids=["no authorizer", "every right"])
def test_a_batch_of_a_transaction_is_refused_in_a_request_that_names_no_transactional_id(
    gate: Gate | None, tmp_path: Path
) -> None:
    """CVE-2018-17196: else a client without any right on the id could write in its transaction."""

    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire = await alive.dial()
        crafted = batch(b"x", attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=0, base_sequence=0)
        for version in (3, 9, 12):
            response = await wire.ask(PRODUCE, version, produce(("a", 0, crafted), acks=-1))
            assert outcomes(response) == [(0, ID_DENIED, -1)]
        assert alive.replica("a").log.log_end_offset == 0

    run(scenario, tmp_path, gate=gate)
