"""What a producer waits for before it tries again."""

import logging

import pytest

from harness.patience import stretched, wait_until
from harness.proxy import Proxy
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.testing import Broker

TOPIC = "orders"


@pytest.fixture
def broker(proxied: Broker) -> Broker:
    proxied.create_topic(TOPIC, 1)
    return proxied


def test_batches_that_one_break_of_the_connection_fails_count_as_one_attempt(
    broker: Broker, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client.failures")
    with Producer(proxy.address, batch_size=1, linger_ms=0) as producer:
        producer.send(TOPIC, b"first").result(stretched())
        proxy.allow(replies=0)
        for number in range(5):
            producer.send(TOPIC, b"%d" % number)
        queue = producer._core.accumulator.queues[TopicPartition(TOPIC, 0)]
        assert wait_until(lambda: len(queue.in_flight) == 5)
        proxy.cut()
        proxy.heal()
        producer.flush(stretched())
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith(f"moldau: {TOPIC}-0")]
    assert len(said) == 1
    assert "(attempt 1 " in said[0]


def test_a_producer_waits_no_longer_than_a_request_may_take_for_its_producer_id(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client.failures")
    with (
        broker.fault("InitProducerId", delay_ms=3_600_000, times=1),
        Producer(broker.address, request_timeout_ms=100) as producer,
    ):
        assert producer.send(TOPIC, b"late").result(stretched()).offset == 0
    said = [record.getMessage() for record in caplog.records if "producer id" in record.getMessage()]
    assert "did not answer within 100 ms" in said[0]
