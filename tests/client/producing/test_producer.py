"""Producers against a broker."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau import testing
from moldau.client.administration.admin import Admin
from moldau.client.failures import ClientClosed
from moldau.client.fetching import LATEST, list_offsets
from moldau.client.producing import gone_partitions, serializers
from moldau.client.producing.partitioning import positive_hash
from moldau.client.producing.producer import AsyncProducer, Producer
from moldau.client.routing import Router
from moldau.errors import (
    ConfigError,
    ErrorCode,
    InvalidTopic,
    KafkaError,
    NotEnoughReplicas,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from moldau.names import TopicPartition
from tests.client.producing.beside import stored, values

WRONG: list[dict[str, Any]] = [
    {"value": 5},
    {"value": [1, 2]},
    {"value": {"a": 1}},
    {"value": 1.5},
    {"value": "\ud800"},
    {"value": b"x", "key": 7},
    {"value": b"x", "headers": [("h", 5)]},
    {"value": b"x", "headers": [(b"h", b"x")]},
    {"value": b"x", "headers": ["h"]},
    {"value": b"x", "headers": 7},
    {"value": b"x", "timestamp_ms": -2},
    {"value": b"x", "timestamp_ms": 1 << 63},
    {"value": b"x", "timestamp_ms": 1.5},
    {"value": b"x", "timestamp_ms": True},
    {"value": b"x", "partition": -1},
    {"value": b"x", "partition": "0"},
]


def test_a_delivery_says_where_the_record_is(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        deliveries = [producer.send(topic, str(number)) for number in range(3)]
        assert [delivery.result(stretched(10))[:3] for delivery in deliveries] == [
            (topic, 0, offset) for offset in range(3)
        ]
        assert all(delivery.done for delivery in deliveries)


def test_everything_is_delivered_before_a_with_statement_ends(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, linger_ms=60_000) as producer:
        for number in range(10_000):
            producer.send(topic, b"%d" % number)
    assert values(bootstrap, topic) == [b"%d" % number for number in range(10_000)]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_and_timestamps_arrive_as_they_were_sent(bootstrap: str, topic: str, compression: str) -> None:
    headers = [("kind", b"test"), ("empty", None), ("kind", b"")]
    with Producer(bootstrap, compression_type=compression) as producer:
        producer.send(topic, None, "key", timestamp_ms=1_356_998_400_000, headers=headers)
        producer.send(topic, bytearray(b"value"), None)
    first, second = stored(bootstrap, topic)
    assert (first["key"], first["value"]) == (b"key", None)
    assert first["timestamp"].isoformat() == "2013-01-01T00:00:00+00:00"  # type: ignore[attr-defined]
    assert first["headers"] == [{"key": k, "value": v} for k, v in headers]
    assert (second["key"], second["value"]) == (None, b"value")


def test_a_key_decides_the_partition_and_the_caller_may_decide_instead(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=5)
    with Producer(bootstrap) as producer:
        keyed = [producer.send(topic, b"x", b"k%d" % number) for number in range(50)]
        told = producer.send(topic, b"x", b"k1", partition=3)
    assert [delivery.partition for delivery in keyed] == [positive_hash(b"k%d" % number) % 5 for number in range(50)]
    assert told.result(0).partition == 3


def test_records_without_a_key_reach_every_partition(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    with Producer(bootstrap, batch_size=1000) as producer:
        deliveries = [producer.send(topic, b"x" * 100) for _ in range(1000)]
    assert {delivery.partition for delivery in deliveries} == {0, 1, 2}


def test_without_acknowledgements_a_record_is_sent_and_has_no_offset(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, acks=0) as producer:
        assert producer.send(topic, b"x").result(stretched(10)).offset == -1
        tp = TopicPartition(topic, 0)
        while not list_offsets(bootstrap, {tp: LATEST})[tp]:
            pass
    assert values(bootstrap, topic) == [b"x"]


def test_what_the_broker_refuses_fails_its_batch_and_no_other(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})
    with Producer(bootstrap, batch_size=200) as producer:
        before, refused, after = (producer.send(topic, b"x" * size) for size in (10, 5_000, 20))
        assert before.result(stretched(10)).offset == 0
        with pytest.raises(KafkaError) as failure:
            refused.result(stretched(10))
        assert failure.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert after.result(stretched(10)).offset == 1


@pytest.mark.parametrize("acks", ["all", 1])
def test_a_batch_larger_than_its_topic_takes_is_sent_in_pieces(bootstrap: str, topic: str, acks: str | int) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})
    with Producer(bootstrap, acks=acks) as producer:
        deliveries = [producer.send(topic, b"%0100d" % number) for number in range(500)]
        producer.flush()
        assert [delivery.done for delivery in deliveries] == [True] * 500
    assert [int(str(value, "ascii")) for value in values(bootstrap, topic)] == list(range(500))  # type: ignore[call-overload]
    assert [delivery.result(0).offset for delivery in deliveries] == list(range(500))


def test_a_wrong_record_is_refused_and_the_records_beside_it_are_delivered(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, linger_ms=60_000) as producer:
        producer.send(topic, b"before")
        for wrong in WRONG:
            with pytest.raises((TypeError, ValueError)):
                producer.send(topic, **wrong)
        producer.send(topic, b"after")
    assert values(bootstrap, topic) == [b"before", b"after"]


def test_a_wrong_record_is_refused_by_the_asyncio_producer_too(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        async with AsyncProducer(bootstrap) as producer:
            for wrong in WRONG:
                with pytest.raises((TypeError, ValueError)):
                    await producer.send(topic, **wrong)

    asyncio.run(run())


def test_a_value_without_a_serializer_is_refused_with_the_name_of_the_setting(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        with pytest.raises(TypeError, match=r"the value is dict, not bytes.*value_serializer=.*to_json"):
            producer.send(topic, {"a": 1})
        with pytest.raises(TypeError, match=r"the key is int, not bytes.*key_serializer"):
            producer.send(topic, b"x", 5)


def test_serializers_make_bytes_of_keys_and_values(bootstrap: str, topic: str) -> None:
    with Producer(
        bootstrap, value_serializer=serializers.to_json, key_serializer=lambda key: f"user-{key}".encode()
    ) as producer:
        producer.send(topic, {"name": "Vltava", "km": 430}, 7)
        producer.send(topic, None, 7)
        with pytest.raises(TypeError, match="not JSON serializable"):
            producer.send(topic, object(), 7)
    assert [(row["key"], row["value"]) for row in stored(bootstrap, topic)] == [
        (b"user-7", b'{"name":"Vltava","km":430}'),
        (b"user-7", None),
    ]


def test_headers_may_be_a_mapping_and_text(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x", headers={"trace": "\u017elu\u0165", "empty": None})
    assert stored(bootstrap, topic)[0]["headers"] == [
        {"key": "trace", "value": "\u017elu\u0165".encode()},
        {"key": "empty", "value": None},
    ]


def test_a_partition_that_the_topic_does_not_have_is_refused_after_a_fresh_look(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        admin.create_topic(topic, partitions=3)
        producer.send(topic, b"x").result(stretched(10))
        with pytest.raises(
            UnknownTopicOrPartition, match=f"topic {topic} has no partition 99: it has 3 partitions, 0 to 2"
        ):
            producer.send(topic, b"x", partition=99)
        admin.create_partitions(topic, 100)
        assert producer.send(topic, b"x", partition=99).result(stretched(10)).partition == 99


def test_a_topic_that_is_made_again_with_fewer_partitions_gets_all_keys(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that are on their way to a partition that is gone fail; the next ones go to those that there are."""
    monkeypatch.setattr(gone_partitions, "GONE_S", 0.0)
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
        with Producer(bootstrap, linger_ms=0) as producer:
            gone = next(key for key in map(str, range(99)) if producer.send(topic, key=key).result().partition == 1)
            admin.delete_topic(topic)
            admin.create_topic(topic, partitions=1)
            with pytest.raises(UnknownTopicOrPartition, match="has no partition 1: it has 1 partition, 0"):
                producer.send(topic, key=gone).result(stretched(60))
            assert producer.send(topic, key=gone).result().partition == 0
            admin.create_partitions(topic, 2)
            with pytest.raises(UnknownTopicOrPartition, match="has no partition 7"):
                producer.send(topic, partition=7)  # asks for metadata
            assert producer.send(topic, key=gone).result().partition == 1


@pytest.mark.parametrize("name", ["no topic/at all", "", "..", "x" * 250, "\ud800", "a.*"])
def test_a_name_that_no_topic_can_have_is_refused_before_a_broker_is_asked(name: str) -> None:
    with (
        Producer("127.0.0.1:1") as producer,
        pytest.raises(
            InvalidTopic, match=r"cannot be a topic: a name has 1 to 249 of the characters a-z A-Z 0-9 \. _ -"
        ),
    ):
        producer.send(name, b"x")


@pytest.mark.parametrize("name", [["t"], 5, None, b"t"])
def test_a_topic_that_is_not_text_is_refused_by_its_type(name: Any) -> None:
    async def send() -> None:
        async with AsyncProducer("127.0.0.1:1") as producer:
            await producer.send(name, b"x")

    sentence = f"^the topic is {type(name).__name__}, not str$"
    with Producer("127.0.0.1:1") as producer, pytest.raises(TypeError, match=sentence):
        producer.send(name, b"x")
    with pytest.raises(TypeError, match=sentence):
        asyncio.run(send())


def test_a_delivery_that_takes_too_long_fails_and_says_so(topic: str) -> None:
    with Producer("127.0.0.1:1", max_block_ms=200) as producer, pytest.raises(KafkaError, match="cannot connect"):
        producer.send(topic, b"x")


def test_a_closed_producer_sends_nothing_more(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap)
    producer.close()
    producer.close()
    with pytest.raises(ClientClosed):
        producer.send(topic, b"x")


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": 2},
        {"compression_type": "zip"},
        {"enable_idempotence": True, "acks": 1},
        {"batch_size": 0},
        {"partitioner": "murmur3"},
        {"max_in_flight_requests_per_connection": 6},
        {"retries": 0},
        {"key_serializer": "org.apache.kafka.common.serialization.StringSerializer"},
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Producer("localhost:9092", **settings)


def test_a_restarted_broker_gets_what_was_sent_meanwhile(broker: Broker, topic: str) -> None:
    with Producer(broker.address) as producer:
        producer.send(topic, b"before").result(stretched(10))
        broker.kill()
        meanwhile = [producer.send(topic, b"%d" % number) for number in range(100)]
        broker.start()
        assert [delivery.result(stretched()).offset for delivery in meanwhile] == list(range(1, 101))


def test_what_is_not_delivered_when_a_producer_closes_has_failed(broker: Broker, topic: str) -> None:
    producer = Producer(broker.address)
    producer.send(topic, b"before").result(stretched(10))
    broker.kill()
    try:
        lost = producer.send(topic, b"lost")
        producer.close(timeout_s=0.1)
        with pytest.raises(KafkaError, match="closed"):
            lost.result(0)
    finally:
        broker.start()


def test_on_a_loop_of_ones_own_a_delivery_is_awaited(bootstrap: str, topic: str) -> None:
    async def run() -> list[int]:
        async with AsyncProducer(bootstrap) as producer:
            deliveries = [await producer.send(topic, b"%d" % number) for number in range(100)]
            return [(await delivery).offset for delivery in deliveries]

    assert asyncio.run(run()) == list(range(100))


def test_callers_that_send_to_a_new_topic_at_once_share_one_look_up(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    refresh = Router.refresh

    async def counted(self: Router, topics: Any, **named: Any) -> None:
        asked.append(topics)
        await refresh(self, topics, **named)

    monkeypatch.setattr(Router, "refresh", counted)

    async def run() -> None:
        async with AsyncProducer(bootstrap) as producer:
            await asyncio.gather(*(producer.send(topic, b"%d" % number) for number in range(500)))

    with Admin(bootstrap) as admin:
        admin.create_topic(topic)
    asyncio.run(run())
    assert asked.count([topic]) == 1
    assert len(values(bootstrap, topic)) == 500


def test_threads_share_a_producer_and_each_keeps_its_order(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, batch_size=2_000, buffer_memory=20_000) as producer:

        def work(name: int) -> None:
            for number in range(1_000):
                producer.send(topic, b"%d %d" % (name, number))

        with ThreadPoolExecutor(8) as threads:
            for done in [threads.submit(work, name) for name in range(8)]:
                done.result()
    by_thread: dict[str, list[int]] = {}
    for value in values(bootstrap, topic):
        name, number = str(value, "ascii").split()  # type: ignore[call-overload]
        by_thread.setdefault(name, []).append(int(number))
    assert by_thread == {str(name): list(range(1_000)) for name in range(8)}


def test_a_callback_may_send_and_never_waits_for_its_own_thread(broker: Broker, topic: str) -> None:
    refused: list[BaseException] = []
    with Producer(broker.address, buffer_memory=2_000) as producer:

        def again(error: object, delivered: object) -> None:
            try:
                for _ in range(10):
                    producer.send(topic, b"x" * 400)
            except KafkaError as full:
                refused.append(full)

        producer.send(topic, b"first", on_delivery=again).result(stretched(10))
        producer.flush()
    assert [type(one) for one in refused] == [RequestTimedOut]
    assert len(values(broker.address, topic)) > 1


def test_records_go_round_the_partitions_in_turn(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    with Producer(bootstrap, partitioner="round_robin") as producer:
        assert [producer.send(topic, b"x", b"same").partition for _ in range(6)] == [0, 1, 2, 0, 1, 2]


def test_a_function_chooses_the_partition_and_its_wrong_choices_are_refused(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    asked: list[tuple[str, bytes | None, int]] = []

    def by_length(topic: str, key: bytes | None, partitions: int) -> int:
        asked.append((topic, key, partitions))
        return len(key or b"")

    with Producer(bootstrap, partitioner=by_length) as producer:
        assert [producer.send(topic, b"x", key).partition for key in ("", "a", "ab")] == [0, 1, 2]
        assert producer.send(topic, b"x", "abc", partition=1).partition == 1
        with pytest.raises(ValueError, match=f"the partitioner returned 3 for topic {topic}, which has 3 partitions"):
            producer.send(topic, b"x", "abc")
    assert asked[:2] == [(topic, b"", 3), (topic, b"a", 3)]


def test_keys_are_ignored_if_the_settings_say_so(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    with Producer(bootstrap, partitioner_ignore_keys=True, batch_size=1000) as producer:
        assert {producer.send(topic, b"x" * 100, b"same").partition for _ in range(1000)} == {0, 1, 2}


def test_retries_are_counted_and_end_before_the_delivery_time_out(topic: str) -> None:
    with (
        testing.Broker() as faulty,
        Producer(faulty.bootstrap_servers, enable_idempotence=False, retries=3, retry_backoff_ms=1) as producer,
        faulty.fault("Produce", error="NOT_ENOUGH_REPLICAS"),
    ):
        assert isinstance(producer.send(topic, b"x").exception(stretched()), NotEnoughReplicas)
        assert producer.metrics().records_retried == 3


def test_metrics_count_records_batches_bytes_and_requests(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})
    with Producer(bootstrap, buffer_memory=1_000_000) as producer:
        for _ in range(5):
            producer.send(topic, b"x" * 100)
        waiting = producer.metrics()
        producer.flush()
        producer.send(topic, b"x" * 5_000).exception(stretched(10))
        counted = producer.metrics()
    assert waiting.records_waiting + waiting.records_delivered == 5
    assert (counted.records_delivered, counted.records_failed, counted.records_waiting) == (5, 1, 0)
    assert counted.bytes_delivered > 500
    assert counted.requests >= counted.batches_delivered >= 1
    assert 0 < counted.request_latency_avg_ms <= counted.request_latency_max_ms
    assert (counted.buffer_used_bytes, counted.buffer_total_bytes) == (0, 1_000_000)
