"""Clients that push metrics to a broker: what they are told, what comes into the topic, what is refused."""

import gzip
import random
import uuid
from pathlib import Path

import pytest

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.config import broker_config
from moldau.errors import ConfigError, ErrorCode
from moldau.handlers.telemetry import client_telemetry
from moldau.names import short_id
from moldau.records.compression import GZIP, LZ4, SNAPPY, ZSTD, compress
from tests.handlers.living import Living, run
from tests.handlers.telemetry.pushing import TOPIC, PushingClient, came, client_of, records, subscribe
from tests.metrics.scraping import scrape, value

SWITCHED_ON = {"client_metrics_topic": TOPIC}
PAYLOAD = b"\x0a\x03abc" * 50


def test_a_client_is_offered_to_push_only_while_there_is_a_topic(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        client = PushingClient(await alive.dial())
        assert not {71, 72} & set(await client.introduce())
        # A client that asks all the same is answered as by a Kafka without a receiver.
        await subscribe(alive)
        assert (await client.get()).error_code == 0
        assert await client.push(PAYLOAD) == 0
        client.interval_passed(alive)
        assert await client.push(b"no gzip", GZIP) == ErrorCode.INVALID_RECORD
        assert list(alive.broker.cluster.image.topics) == []

    run(scenario, tmp_path)


def test_what_a_client_is_asked_for_and_pushes_comes_into_the_topic(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await subscribe(alive, interval_ms="60000", match="client_software_name=test-.*,client_id=test")
        client = PushingClient(await alive.dial())
        assert {71, 72} <= set(await client.introduce())
        told = await client.get()
        assert (told.push_interval_ms, told.telemetry_max_bytes, told.delta_temporality) == (60_000, 1_048_576, True)
        assert (told.accepted_compression_types, told.requested_metrics) == ([4, 3, 1, 2], ["*"])
        assert told.client_instance_id.version == 4
        assert await client.push(PAYLOAD) == 0
        (record,) = await came(alive, 1)
        name = short_id(told.client_instance_id)
        assert (record.key, record.value) == (name.encode(), PAYLOAD)
        headers = {key: (text or b"").decode() for key, text in record.headers}
        assert headers.pop("client_source_port").isdecimal()
        assert abs(int(headers.pop("push_time_ms")) - record.timestamp_ms) < 1000
        assert headers == {
            "client_instance_id": name,
            "client_id": "test",
            "client_software_name": "test-client",
            "client_software_version": "1.2",
            "client_source_address": "127.0.0.1",
            "principal": "User:ANONYMOUS",
            "terminating": "false",
        }

    run(scenario, tmp_path, **SWITCHED_ON)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_payloads_are_inflated_in_every_codec(tmp_path: Path, codec: int) -> None:
    async def scenario(alive: Living) -> None:
        await subscribe(alive)
        client = await client_of(alive)
        assert await client.push(compress(codec, PAYLOAD), codec) == 0
        assert [one.value for one in await came(alive, 1)] == [PAYLOAD]

    run(scenario, tmp_path, **SWITCHED_ON)


def test_pushes_of_many_clients_keep_each_clients_order(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make(TOPIC, 3)
        await subscribe(alive)
        clients = [await client_of(alive) for _ in range(10)]
        for number in range(3):
            for client in clients:
                client.interval_passed(alive)
                assert await client.push(b"%d" % number) == 0
        by_key: dict[bytes | None, list[bytes | None]] = {}
        for record in await came(alive, 30):
            by_key.setdefault(record.key, []).append(record.value)
        assert len(by_key) == 10
        assert all(values == [b"0", b"1", b"2"] for values in by_key.values())

    run(scenario, tmp_path, **SWITCHED_ON)


def test_a_changed_subscription_sends_a_client_back_to_ask(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await subscribe(alive)
        client = await client_of(alive)
        await subscribe(alive, interval_ms="5000")
        assert await client.push(PAYLOAD) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        told = await client.get()
        assert (told.error_code, told.push_interval_ms) == (0, 5000)
        assert (await client.get()).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert records(alive) == []

    run(scenario, tmp_path, **SWITCHED_ON)


def test_a_client_that_no_subscription_matches_is_asked_for_nothing_and_may_push_nothing_new(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        client = await client_of(alive)
        assert (client.told.requested_metrics, client.told.push_interval_ms) == ([], 300_000)
        assert await client.push(b"") == 0
        assert await client.push(b"") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert await client.push(b"", terminating=True) == 0
        assert await client.push(b"") == ErrorCode.INVALID_REQUEST
        assert await client.push(b"", client_instance_id=uuid.UUID(int=1)) == ErrorCode.INVALID_REQUEST
        assert await client.push(b"", client_instance_id=uuid.UUID(int=0)) == ErrorCode.INVALID_REQUEST

    run(scenario, tmp_path, **SWITCHED_ON)


def test_hostile_payloads_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await subscribe(alive)
        bomb = compress(ZSTD, bytes(17 * 20_000))
        for metrics, codec, error in (
            (bytes(20_001), 0, ErrorCode.TELEMETRY_TOO_LARGE),
            (bomb, ZSTD, ErrorCode.INVALID_RECORD),
            (gzip.compress(bytes(17 * 20_000)), GZIP, ErrorCode.INVALID_RECORD),
            (b"no gzip", GZIP, ErrorCode.INVALID_RECORD),
            (b"\xff" * 30, SNAPPY, ErrorCode.INVALID_RECORD),
            (b"x", 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ):
            client = await client_of(alive)
            assert await client.push(metrics, codec) == error
        client = await client_of(alive)
        assert await client.push(compress(ZSTD, bytes(16 * 20_000)), ZSTD) == 0
        assert [len(one.value or b"") for one in await came(alive, 1)] == [16 * 20_000]

    run(scenario, tmp_path, telemetry_max_bytes=20_000, **SWITCHED_ON)


def test_pushes_that_would_take_too_much_memory_are_put_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "HELD_BYTES_MAX", 0)

    async def scenario(alive: Living) -> None:
        await subscribe(alive)
        telemetry = alive.broker.telemetry.telemetry
        telemetry._waiting_bytes += 160  # as if others were being inflated
        client = await client_of(alive)
        assert await client.push(b"x") == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        telemetry._waiting_bytes -= 160
        client = await client_of(alive)
        assert await client.push(b"x" * 10) == 0
        assert len(await came(alive, 1)) == 1
        found = await scrape(alive.broker)
        assert value(found, "moldau_client_metrics_crowded_total") == 1
        assert value(found, "moldau_client_metrics_records_total") == 1
        assert value(found, "moldau_client_metrics_instances") == 2

    run(scenario, tmp_path, telemetry_max_bytes=10, metrics_port=0, metrics_host="127.0.0.1", **SWITCHED_ON)


def test_what_cannot_be_written_is_lost_with_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make(TOPIC, max_message_bytes=1000)
        await subscribe(alive)
        for payload in (random.Random(7).randbytes(2000), b"small"):
            client = await client_of(alive)
            assert await client.push(payload) == 0
        assert [one.value for one in await came(alive, 1)] == [b"small"]
        assert alive.broker.telemetry.telemetry.counts.lost == 1

    run(scenario, tmp_path, **SWITCHED_ON)
    assert f"metrics of clients could not be written to the topic {TOPIC} and are lost" in caplog.text


def test_what_was_taken_is_written_before_the_broker_stops(tmp_path: Path) -> None:
    async def push(alive: Living) -> None:
        await subscribe(alive)
        client = await client_of(alive)
        assert await client.push(PAYLOAD) == 0

    async def look(alive: Living) -> None:
        assert [one.value for one in records(alive)] == [PAYLOAD]

    run(push, tmp_path, **SWITCHED_ON)
    run(look, tmp_path, **SWITCHED_ON)


def test_the_topic_can_be_set_and_taken_back_while_the_broker_runs(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await subscribe(alive)
        client = PushingClient(await alive.dial())
        for name, offered in ((TOPIC, True), ("", False)):
            change = [Alteration("client.metrics.topic", OpType.SET, name)]
            assert await alive.broker.cluster.configs.alter_broker("<default>", change) is None
            assert ({71, 72} <= set(await client.introduce())) is offered

    run(scenario, tmp_path)


def test_topics_with_other_records_are_refused() -> None:
    with pytest.raises(ConfigError, match="has other records"):
        broker_config({"client.metrics.topic": "__consumer_offsets"})
