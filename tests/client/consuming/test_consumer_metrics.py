"""What a consumer counts."""

import asyncio

import pytest

from harness.patience import Deadline, within
from moldau import Admin, Consumer, Producer, TopicPartition, aio
from moldau.client.consuming.consumer_metrics import ConsumerCounters, Meter
from moldau.errors import KafkaError


def fill(bootstrap: str, topic: str, count: int) -> TopicPartition:
    """Records in one batch."""
    with Producer(bootstrap) as producer:
        assert len(producer.send_many(topic, [b"x" * 100] * count).result()) == 1
    return TopicPartition(topic, 0)


def test_a_rate_is_that_of_the_last_minute_and_forgets_what_was_before() -> None:
    meter = Meter(1_000.0)
    meter.add(50, 1_010.0)
    assert meter.rate(1_010.0) == 5.0
    meter.add(40, 1_031.0)
    assert meter.rate(1_045.0) == pytest.approx(90 / 45)
    meter.add(30, 1_061.0)
    assert meter.rate(1_061.0) == pytest.approx(70 / 30)
    assert meter.rate(1_200.0) == 0.0
    assert meter.total == 120


def test_latencies_and_failures_are_counted_apart() -> None:
    clock = iter([0.0, 1.5, 2.5, 3.0])
    counters = ConsumerCounters(lambda: next(clock))
    counters.committed(1.0, failed=False)
    counters.committed(1.0, failed=False)
    counters.committed(1.0, failed=True)
    counted = counters.snapshot(lags=[4, 9], assigned=3, buffered_bytes=7)
    assert (counted.commit_total, counted.commit_failed_total) == (2, 1)
    assert (counted.commit_latency_avg_ms, counted.commit_latency_max_ms) == (1_000.0, 1_500.0)
    assert (counted.records_lag, counted.records_lag_max, counted.assigned_partitions) == (13, 9, 3)
    assert (counted.fetch_latency_avg_ms, counted.records_per_request_avg) == (0.0, 0.0)


def test_records_bytes_fetches_and_lag_of_rows_and_tables_are_counted(bootstrap: str, topic: str) -> None:
    tp = fill(bootstrap, topic, 100)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        assert consumer.metrics().fetch_total == 0
        consumer.assign([tp])
        deadline = Deadline()
        while consumer.metrics().records_consumed_total < 30:
            assert not deadline.passed
            consumer.poll(500, 30)
        rows = consumer.metrics()
        while consumer.metrics().records_consumed_total < 100:
            assert not deadline.passed
            consumer.poll_table(500)
        tables = consumer.metrics()
    assert (rows.records_lag, rows.records_lag_max) == (70, 70)
    assert rows.buffered_bytes > 0
    assert rows.bytes_consumed_total > 10_000
    assert rows.records_consumed_rate > 0 < rows.bytes_consumed_rate
    assert (tables.records_consumed_total, tables.records_lag) == (100, 0)
    assert tables.fetch_total >= 1 and tables.fetch_rate > 0
    assert 0 < tables.fetch_latency_avg_ms <= tables.fetch_latency_max_ms
    assert (tables.commit_total, tables.rebalance_total, tables.assigned_partitions) == (0, 0, 1)


def test_commits_and_rebalances_of_a_member_are_counted(bootstrap: str, topic: str, group: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)

    async def work() -> None:
        async with aio.Consumer(bootstrap, group_id=group, enable_auto_commit=False) as consumer:
            consumer.subscribe(topic)
            while not consumer.assignment():
                await consumer.poll(100)
            await consumer.commit({TopicPartition(topic, 0): 0})
            with pytest.raises(KafkaError):
                await consumer.commit({TopicPartition("no-such-topic", 0): 0})
            counted = consumer.metrics()
        assert (counted.rebalance_total, counted.assigned_partitions) == (1, 2)
        assert (counted.commit_total, counted.commit_failed_total) == (1, 1)
        assert 0 < counted.commit_latency_avg_ms <= counted.commit_latency_max_ms

    asyncio.run(within(work()))
