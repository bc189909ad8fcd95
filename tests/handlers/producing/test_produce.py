"""Produce as it stands on the wire: acks, errors of one partition among others, order, and what is refused."""

import asyncio
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.patience import stretched
from moldau.errors import ErrorCode
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import METADATA, PRODUCE
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.records.compression import ZSTD
from moldau.replication import client_appends
from tests.handlers.living import NOW_MS, Living, batch, outcomes, produce, run
from tests.replication.producing import planned

NAMED = range(3, 13)


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_batch_has_its_offset_and_is_committed(acks: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire = await alive.dial()
        for version in NAMED:
            at = alive.replica("a").high_watermark
            response = await wire.ask(PRODUCE, version, produce(("a", 0, batch(b"x", b"y")), acks=acks))
            assert outcomes(response) == [(0, 0, at)]
            assert alive.replica("a").high_watermark == at + 2

    run(scenario, tmp_path)


def test_from_version_13_a_topic_goes_by_its_id(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        wire = await alive.dial()
        response = await wire.ask(PRODUCE, 13, produce((topic_id, 0, batch(b"x")), (topic_id, 7, batch(b"x"))))
        assert outcomes(response) == [(0, 0, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
        response = await wire.ask(PRODUCE, 13, produce((uuid.uuid4().bytes, 0, batch(b"x"))))
        assert outcomes(response) == [(0, ErrorCode.UNKNOWN_TOPIC_ID, -1)]

    run(scenario, tmp_path)


def test_without_acks_there_is_no_answer_and_a_refusal_closes(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire = await alive.dial()
        wire.send(PRODUCE, 7, produce(("a", 0, batch(b"x")), acks=0))
        asked = wire.send(METADATA, 1, MetadataRequest(topics=[]))
        assert (await wire.receive(METADATA, 1))[0] == asked
        assert alive.replica("a").high_watermark == 1
        wire.send(PRODUCE, 7, produce(("nowhere", 0, batch(b"x")), acks=0))
        assert await wire.is_closed()

    run(scenario, tmp_path)


def test_one_bad_partition_spoils_no_other(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        await alive.make("b", max_message_bytes=1000)
        wire = await alive.dial()
        broken = bytearray(batch(b"broken"))
        broken[-1] ^= 1
        request = produce(
            ("a", 1, batch(b"1")), ("a", 0, bytes(broken)), ("a", 9, batch(b"9")), ("b", 0, batch(bytes(2000))),
            ("none", 0, batch(b"?")), ("a", 0, batch(b"0")),
        )  # fmt: skip
        for version in NAMED:
            given = {(index, error) for index, error, _ in outcomes(await wire.ask(PRODUCE, version, request))}
            assert given == {
                (1, 0), (0, ErrorCode.CORRUPT_MESSAGE), (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                (0, ErrorCode.MESSAGE_TOO_LARGE), (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, 0),
            }  # fmt: skip
        assert alive.replica("a", 0).high_watermark == alive.replica("a", 1).high_watermark == len(NAMED)

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("topic", "options", "error"),
    [
        ("a", {"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
        (OFFSETS_TOPIC, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_is_refused_before_it_is_looked_at(topic: str, options: Any, error: ErrorCode, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await alive.broker.cluster.topics.ensure_offsets_topic()
        wire = await alive.dial()
        response = await wire.ask(PRODUCE, 9, produce((topic, 0, batch(b"x")), **options))
        assert outcomes(response) == [(0, error, -1)]
        assert alive.replica(topic).high_watermark == 0

    run(scenario, tmp_path)


def test_a_partition_with_one_replica_needs_no_more_in_sync_whatever_its_topic_says(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("two", min_insync_replicas=2)
        wire = await alive.dial()
        assert outcomes(await wire.ask(PRODUCE, 9, produce(("two", 0, batch(b"x")), acks=-1))) == [(0, 0, 0)]

    run(scenario, tmp_path)


def test_zstd_needs_a_version_whose_readers_know_it(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire = await alive.dial()
        request = produce(("a", 0, batch(b"x", codec=ZSTD)))
        assert outcomes(await wire.ask(PRODUCE, 6, request)) == [(0, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)]
        assert outcomes(await wire.ask(PRODUCE, 7, request)) == [(0, 0, 0)]

    run(scenario, tmp_path)


def test_an_error_names_the_records_from_version_8(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", cleanup_policy="compact")
        wire = await alive.dial()
        request = produce(("a", 0, batch(b"no", b"keys")))
        for version in (7, 8, 9, 12):
            part = (await wire.ask(PRODUCE, version, request)).responses[0].partition_responses[0]
            assert part.error_code == ErrorCode.INVALID_RECORD
            assert [one.batch_index for one in part.record_errors] == ([0, 1] if version >= 8 else [])
            assert bool(part.error_message) == (version >= 8)

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [0, 2])
def test_a_version_that_is_only_advertised_closes(version: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        wire.writer.write(b"\0\0\0\x14" + bytes([0, 0, 0, version]) + bytes(16))
        assert await wire.is_closed()

    run(scenario, tmp_path)


def heavy() -> bytes:
    """A batch whose check goes through the executor."""
    return batch(*[os.urandom(1000) + bytes(20_000) for _ in range(20)], codec=ZSTD)


def test_heavy_batches_keep_their_place_among_light_ones(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await alive.make("b")
        wire = await alive.dial()
        big = heavy()
        assert planned(alive.replica("a"), big, NOW_MS).off_loop
        requests = [
            produce(("a", 0, batch(b"1"))),
            produce(("a", 0, batch(b"2")), ("b", 0, big), ("a", 0, batch(b"3"))),
            produce(("a", 0, batch(b"4"))),
            produce(("a", 0, big)),
            produce(("a", 0, batch(b"5"))),
        ]
        sent = [wire.send(PRODUCE, 9, request) for request in requests]
        found = [await wire.receive(PRODUCE, 9) for _ in sent]
        assert [correlation_id for correlation_id, _ in found] == sent
        assert [outcomes(response)[0][2] for _, response in found] == [0, 1, 3, 4, 24]
        assert alive.replica("b").high_watermark == 20

    run(scenario, tmp_path)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Runs something, once, while a heavy batch is being checked in the executor."""

    def install(meanwhile: Callable[[], Any]) -> None:
        check = client_appends.check_produce

        def slow(*arguments: Any) -> Any:
            monkeypatch.setattr(client_appends, "check_produce", check)
            meanwhile()
            return check(*arguments)

        monkeypatch.setattr(client_appends, "check_produce", slow)

    return install


def test_a_topic_deleted_while_its_batch_is_checked_takes_nothing_down(held: Any, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await alive.make("b")
        wire, loop = await alive.dial(), asyncio.get_running_loop()
        big = heavy()

        def delete() -> None:
            gone = alive.broker.cluster.topics.delete([("a", None)])
            asyncio.run_coroutine_threadsafe(gone, loop).result(stretched(10))

        held(delete)
        response = await wire.ask(PRODUCE, 9, produce(("a", 0, big)))
        assert outcomes(response) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
        assert alive.broker.folder.failed is None
        assert outcomes(await wire.ask(PRODUCE, 9, produce(("b", 0, batch(b"x"))))) == [(0, 0, 0)]

    run(scenario, tmp_path)


def test_who_hangs_up_while_a_batch_is_checked_leaves_nothing_behind(held: Any, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire, other, loop = await alive.dial(), await alive.dial(), asyncio.get_running_loop()
        hung_up = asyncio.Event()

        def hang_up() -> None:
            loop.call_soon_threadsafe(wire.writer.transport.abort)
            loop.call_soon_threadsafe(hung_up.set)

        held(hang_up)
        wire.send(PRODUCE, 9, produce(("a", 0, heavy())))
        await hung_up.wait()
        assert outcomes(await other.ask(PRODUCE, 9, produce(("a", 0, batch(b"x")))))[0][1] == 0

    run(scenario, tmp_path)


def test_flushed_before_the_answer_where_the_topic_asks_for_it(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", flush_messages=1)
        wire = await alive.dial()
        await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"x", b"y"))))
        assert alive.replica("a").log.recovery_point == 2

    run(scenario, tmp_path)
