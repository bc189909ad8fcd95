"""Clients and a broker in one process go on while a test stops the clock (freezegun, time-machine): they wait by a
clock of their own, and only the time of records is the test's."""

import asyncio
import datetime
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import time_machine
from freezegun import freeze_time

from harness.patience import SECONDS, wait_until
from moldau import Admin, Consumer, Producer, TopicPartition, aio
from moldau.client.background import LoopThread, _PlainLoop
from moldau.monotonic import monotonic_s
from moldau.testing import Broker, Cluster

THEN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
THEN_MS = int(THEN.timestamp() * 1000)
ENOUGH_MS = int(SECONDS * 1000)
SETTINGS = {"group.min.session.timeout.ms": 1, "group.initial.rebalance.delay.ms": 0}
Stopped = Callable[..., AbstractContextManager[Any]]
WAYS: dict[str, Stopped] = {
    "freezegun": lambda: freeze_time(THEN),
    "freezegun with real_asyncio": lambda: freeze_time(THEN, real_asyncio=True),
    "time-machine": lambda: time_machine.travel(THEN, tick=False),
}


each_way = pytest.mark.parametrize("way", WAYS)


@each_way
def test_records_are_sent_and_read_and_polls_end(way: str) -> None:
    with WAYS[way](), Broker(SETTINGS) as broker:
        with Producer(broker.address) as producer:
            assert producer.send("events", b"x").result(timeout=SECONDS).timestamp_ms == THEN_MS
            producer.flush(timeout=SECONDS)
        with Consumer(broker.address, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe("events")
            assert [record.timestamp_ms for record in consumer.poll(ENOUGH_MS)] == [THEN_MS]
            assert consumer.poll(20) == []
            assert consumer.process(print, idle_ms=20) == 0
            consumer.commit()
        with Admin(broker.address) as admin:
            assert admin.group_offsets("g")[TopicPartition("events", 0)].offset == 1


@each_way
def test_sessions_of_members_last_while_they_live_and_end_when_they_do_not(way: str) -> None:
    settings = {"group_id": "g", "session_timeout_ms": 500, "heartbeat_interval_ms": 10}
    with WAYS[way](), Broker(SETTINGS) as broker, Admin(broker.address) as admin:
        broker.create_topic("events")
        with Consumer(broker.address, **settings) as consumer:
            consumer.subscribe("events")
            assert wait_until(lambda: consumer.poll(20) or consumer.assignment())
            with broker.fault("Heartbeat", delay_ms=1) as beats:
                assert wait_until(lambda: beats.hits > 10)
            assert len(admin.describe_group("g").members) == 1
            with broker.fault("Heartbeat", drop="before"):
                assert wait_until(lambda: not admin.describe_group("g").members)


@each_way
def test_a_broker_s_clock_can_be_moved(way: str) -> None:
    with WAYS[way](), Broker() as broker, Producer(broker.address) as producer, Admin(broker.address) as admin:
        producer.send("events", b"x").result()
        broker.clock.advance(days=7, ms=1)
        assert admin.watermarks("events") == {TopicPartition("events", 0): (1, 1)}


def test_a_cluster_goes_on_in_frozen_time() -> None:
    with freeze_time(THEN), Cluster(brokers=2) as cluster:
        cluster.create_topic("events", partitions=2)
        cluster.controller.kill()
        with Admin(cluster.controller.bootstrap_servers) as admin:
            assert "events" in admin.list_topics()


@pytest.mark.parametrize("way", ["freezegun with real_asyncio", "time-machine"])
def test_the_asyncio_face_goes_on_if_the_test_leaves_asyncio_its_time(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(bootstrap: str) -> None:
        async with aio.Producer(bootstrap) as producer:
            assert (await (await producer.send("events", b"x"))).timestamp_ms == THEN_MS
        async with aio.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("events", 0)])
            assert len(await consumer.poll(ENOUGH_MS)) == 1
            assert await consumer.poll(20) == []

    with Broker() as broker, WAYS[way]():
        asyncio.run(scenario(broker.address))
    assert "real_asyncio" not in caplog.text


def test_a_client_on_a_loop_whose_time_stands_still_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with aio.Admin("localhost:1"):
            pass

    with freeze_time(THEN):
        asyncio.run(scenario())
    assert caplog.text.count("use freeze_time(..., real_asyncio=True)") == 1


def test_the_loop_of_a_client_goes_on_in_frozen_time_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.client.background._new_loop", _PlainLoop)
    with freeze_time(THEN):
        thread = LoopThread("plain")
        thread.start()
        began_s = monotonic_s()
        thread.run(asyncio.sleep, 0.01)
        assert monotonic_s() - began_s >= 0.01
        thread.stop()
