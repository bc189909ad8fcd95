"""What a person must act on comes out of `poll`, at once or after `default_api_timeout_ms`, with warnings before."""

import asyncio
import logging
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.listening import free_port
from harness.patience import Deadline, stretched, within
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, ErrorCode, KafkaError, UnknownTopicOrPartition
from moldau.names import TopicPartition


def poll_until_it_fails(consumer: Consumer) -> KafkaError:
    deadline = Deadline(60)
    try:
        while not deadline.passed:
            assert consumer.poll(200) == []
    except KafkaError as failure:
        return failure
    raise AssertionError("poll did not raise")


def test_an_assigned_topic_that_does_not_exist_is_an_error_at_once(bootstrap: str, topic: str) -> None:
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        failure = poll_until_it_fails(consumer)
        assert isinstance(failure, UnknownTopicOrPartition)
        assert not failure.retriable
        assert str(failure) == f"topic {topic} does not exist"


def test_an_assigned_partition_that_does_not_exist_is_an_error_at_once(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x")
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 7)])
        consumer.seek(TopicPartition(topic, 7), 0)
        assert str(poll_until_it_fails(consumer)) == f"topic {topic} has no partition 7, only 0 to 0"


def test_subscribed_topics_that_do_not_exist_are_warned_of_and_then_an_error(
    bootstrap: str, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(bootstrap, group_id=group, default_api_timeout_ms=2_500) as consumer:
        consumer.subscribe(topic)
        failure = poll_until_it_fails(consumer)
    assert failure.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic in str(failure)
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warned == [f"moldau: the subscribed topic {topic} does not exist"]


@pytest.mark.parametrize("subscribes", [True, False])
def test_a_broker_that_was_never_there_is_an_error(subscribes: bool, group: str) -> None:
    port = free_port()
    with Consumer(f"127.0.0.1:{port}", group_id=group, default_api_timeout_ms=1_000) as consumer:
        if subscribes:
            consumer.subscribe("t")
        else:
            consumer.assign([TopicPartition("t", 0)])
        failure = poll_until_it_fails(consumer)
    assert failure.code == ErrorCode.NETWORK_EXCEPTION
    assert str(port) in str(failure)


@pytest.mark.parametrize("subscribes", [True, False])
def test_a_broker_that_stays_away_is_an_error(subscribes: bool, tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.start()
    with (
        Producer(broker.address) as producer,
        Consumer(broker.address, group_id="g", auto_offset_reset="earliest", default_api_timeout_ms=2_000) as consumer,
    ):
        producer.send("t", b"x", partition=0).result(stretched(10))
        if subscribes:
            consumer.subscribe("t")
        else:
            consumer.assign([TopicPartition("t", 0)])
        deadline = Deadline()
        while not consumer.poll(200):
            assert not deadline.passed
        broker.kill()
        failure = poll_until_it_fails(consumer)
        assert failure.retriable
    assert broker.address in str(failure)


def test_a_broker_that_is_away_is_warned_of_meanwhile(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moldau.client.failures.RetryLog.UNREACHABLE_S", 0.2)
    with Consumer(f"127.0.0.1:{free_port()}", default_api_timeout_ms=1_000) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        poll_until_it_fails(consumer)
    assert any(r.levelno == logging.WARNING and r.name.startswith("moldau") for r in caplog.records)


def test_wrong_arguments_are_one_sentence(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    with Consumer(bootstrap, group_id=group) as consumer:
        for wrong in ([topic], [(topic, -1)], [(topic, "0")], [("a b", 0)]):
            with pytest.raises(ConfigError):
                consumer.assign(wrong)  # type: ignore[arg-type]
        with pytest.raises(LookupError, match=rf"{tp} is not assigned to this consumer"):
            consumer.seek(tp, 0)
        consumer.assign([(topic, 0)])  # type: ignore[list-item]
        assert consumer.assignment() == [tp]
        for offset in (-1, "0", 1.0):
            with pytest.raises(ConfigError, match="seek"):
                consumer.seek(tp, offset)  # type: ignore[arg-type]
            with pytest.raises(ConfigError, match="commit"):
                consumer.commit({tp: offset})  # type: ignore[dict-item]
        consumer.subscribe(topic)
        with pytest.raises(ConfigError, match="unsubscribe"):
            consumer.assign([tp])
    for policy in ("by_duration:", "by_duration:1h", "by_duration:P", "by_duration:PT", "by_duration:-PT1H", "soon"):
        with pytest.raises(ConfigError, match="auto_offset_reset"):
            Consumer(bootstrap, auto_offset_reset=policy)


def test_polling_on_asyncio_without_a_broker_gives_the_loop_to_others() -> None:
    async def run() -> None:
        async with AsyncConsumer(f"127.0.0.1:{free_port()}") as consumer:
            consumer.assign([TopicPartition("t", 0)])
            polling = asyncio.ensure_future(consumer.poll(600_000))
            for _ in range(20):
                await asyncio.sleep(0.01)
                assert not polling.done()
            polling.cancel()
            assert await consumer.poll(50) == []

    asyncio.run(within(run()))
