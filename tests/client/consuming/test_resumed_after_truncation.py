"""A position that was kept elsewhere, such as a group's commit, is compared with the log before it is believed.

Each way to keep a position is used before the log is truncated, each way to resume after it. One cluster serves all
tests of this file: starting three brokers and electing one of them takes two seconds.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.patience import Deadline, within
from moldau import aio
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.producing.producer import Producer
from moldau.errors import LogTruncated
from moldau.names import OffsetAndMetadata, TopicPartition
from tests.client.truncated_log import KEPT, LOST, WRITTEN_SINCE, TruncatedLog, truncated_log

TP = TopicPartition(TruncatedLog.topic, 0)
OLD = KEPT + LOST
NEW = [b"new-%d" % number for number in range(WRITTEN_SINCE)]
RESTORED = {"commit-classic": "restored"}
"""Groups whose offsets an administrator saved, and the groups that have them now."""


def some(consumer: Consumer, count: int) -> list[Record]:
    found, deadline = list[Record](), Deadline()
    while len(found) < count:
        assert not deadline.passed, found
        found += consumer.poll(200)
    return found


def committed_positions(log: TruncatedLog, consumer: Consumer) -> None:
    some(consumer, OLD)
    consumer.commit()


def committed_in_the_background(log: TruncatedLog, consumer: Consumer) -> None:
    some(consumer, OLD)
    done = threading.Event()
    consumer.commit_async(callback=lambda *_: done.set())
    deadline = Deadline()
    while not done.is_set():
        assert not deadline.passed
        consumer.poll(20)


def committed_a_record(log: TruncatedLog, consumer: Consumer) -> None:
    some(consumer, OLD)[11].commit()


def committed_a_number(log: TruncatedLog, consumer: Consumer) -> None:
    some(consumer, OLD)
    consumer.commit({TP: 8})


def committed_by_a_loop(log: TruncatedLog, consumer: Consumer) -> None:
    for record in consumer:
        if record.offset == OLD - 1:
            break


def processed(log: TruncatedLog, consumer: Consumer) -> None:
    assert consumer.process(lambda record: None, until=lambda: False, idle_ms=300) == OLD


def read_tables(log: TruncatedLog, consumer: Consumer) -> None:
    rows, deadline = 0, Deadline()
    while rows < OLD:
        assert not deadline.passed
        rows += len(consumer.poll_table(200))
    consumer.commit()


def streamed(log: TruncatedLog, consumer: Consumer) -> None:
    [stream] = consumer.create_message_streams({TP.topic: 1})[TP.topic]
    for record in stream:
        if record.offset == OLD - 1:
            record.commit()
            break


def sent_in_a_transaction(log: TruncatedLog, consumer: Consumer) -> None:
    some(consumer, OLD)
    with Producer(log.address, transactional_id=f"of {consumer.settings.group_id}") as producer:
        with producer.transaction() as transaction:
            transaction.send_offsets(consumer)


def sent_record_by_record(log: TruncatedLog, consumer: Consumer) -> None:
    record = some(consumer, OLD)[9]
    with Producer(log.address, transactional_id=f"of {consumer.settings.group_id}") as producer:
        with producer.transaction() as transaction:
            transaction.send_offsets({TP: record.position}, consumer.group_metadata())


Way = Callable[[TruncatedLog, Consumer], None]
WAYS: dict[str, tuple[Way, int, dict[str, object]]] = {
    "commit": (committed_positions, OLD, {}),
    "commit_async": (committed_in_the_background, OLD, {}),
    "record.commit": (committed_a_record, 12, {}),
    "commit a number": (committed_a_number, 8, {}),
    "a loop": (committed_by_a_loop, OLD - 1, {"enable_auto_commit": True}),
    "process": (processed, OLD, {}),
    "tables": (read_tables, OLD, {}),
    "streams": (streamed, OLD, {}),
    "a transaction": (sent_in_a_transaction, OLD, {}),
    "a record in a transaction": (sent_record_by_record, 10, {}),
}
"""Ways to commit: how, the offset that is committed, and the settings of the consumer."""
PROTOCOLS = ("classic", "consumer")


@pytest.fixture(scope="module")
def log() -> Iterator[TruncatedLog]:
    with truncated_log() as log:
        log.fill()
        for protocol in PROTOCOLS:
            for name, (way, _, settings) in WAYS.items():
                given: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **settings}
                group = f"{name}-{protocol}"
                with Consumer(log.address, group_id=group, group_protocol=protocol, **given) as consumer:
                    if way is not streamed:
                        consumer.subscribe(TP.topic)
                    way(log, consumer)
        with Admin(log.address) as admin:
            for group, restored in RESTORED.items():
                admin.alter_group_offsets(restored, admin.group_offsets(group))
        log.truncate()
        yield log


def resumed(log: TruncatedLog, group: str, protocol: str = "classic", reset: str = "latest") -> Consumer:
    return Consumer(
        log.address, group_id=group, group_protocol=protocol, auto_offset_reset=reset, enable_auto_commit=False
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", WAYS)
def test_a_group_that_committed_a_lost_record_goes_on_at_the_first_lost_offset(
    log: TruncatedLog, name: str, protocol: str
) -> None:
    with resumed(log, f"{name}-{protocol}", protocol) as consumer:
        assert consumer.committed([TP])[TP] == OffsetAndMetadata(WAYS[name][1], leader_epoch=0)
        consumer.subscribe(TP.topic)
        assert [record.value for record in some(consumer, WRITTEN_SINCE)] == NEW


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", WAYS)
def test_without_a_reset_a_group_that_committed_a_lost_record_hears_of_it(
    log: TruncatedLog, name: str, protocol: str
) -> None:
    with resumed(log, f"{name}-{protocol}", protocol, "none") as consumer:
        consumer.subscribe(TP.topic)
        for _ in range(2):
            with pytest.raises(LogTruncated) as truncated:
                some(consumer, 1)
            found = truncated.value
            assert (found.topic_partition, found.position, found.offset) == (TP, WAYS[name][1], KEPT)
        consumer.seek(TP, KEPT)
        assert [record.value for record in some(consumer, WRITTEN_SINCE)] == NEW


def test_offsets_that_were_saved_and_restored_are_compared_as_well(log: TruncatedLog) -> None:
    for restored in RESTORED.values():
        with resumed(log, restored) as consumer:
            consumer.assign([TP])
            assert consumer.position(TP) == KEPT
            assert [record.value for record in some(consumer, WRITTEN_SINCE)] == NEW


def test_a_position_is_asked_for_after_it_was_compared(log: TruncatedLog) -> None:
    with resumed(log, "commit-classic") as consumer:
        consumer.assign([TP])
        assert consumer.lag() == {TP: WRITTEN_SINCE}
        assert consumer.positions() == {TP: OffsetAndMetadata(KEPT, leader_epoch=0)}
    with resumed(log, "commit-classic", reset="none") as consumer:
        consumer.assign([TP])
        with pytest.raises(LogTruncated):
            consumer.position(TP)


@pytest.mark.parametrize("name", ["commit", "a loop"])
def test_a_consumer_on_asyncio_compares_the_commit_of_its_group_too(log: TruncatedLog, name: str) -> None:
    async def run(reset: str) -> list[bytes]:
        group, found = f"{name}-classic", list[bytes]()
        settings = {"group_id": group, "auto_offset_reset": reset, "enable_auto_commit": False}
        async with aio.Consumer(log.address, **settings) as consumer:  # type: ignore[arg-type]
            consumer.subscribe(TP.topic)
            while len(found) < WRITTEN_SINCE:
                found += [record.value for record in await consumer.poll(200)]
        return found

    assert asyncio.run(within(run("latest"))) == NEW
    with pytest.raises(LogTruncated):
        asyncio.run(within(run("none")))


@pytest.mark.parametrize("at", [OLD, 8])
def test_a_position_to_seek_is_compared_if_it_has_an_epoch(log: TruncatedLog, at: int) -> None:
    with Consumer(log.address, auto_offset_reset="latest", fetch_max_wait_ms=20) as consumer:
        consumer.assign([TP])
        consumer.seek(TP, OffsetAndMetadata(at, leader_epoch=0))
        assert consumer.position(TP) == KEPT
        assert [record.value for record in some(consumer, WRITTEN_SINCE)] == NEW
        consumer.seek(TP, 8)
        assert some(consumer, 1)[0].offset == 8


def test_all_positions_of_a_leader_are_compared_in_one_request(log: TruncatedLog) -> None:
    topic, partitions = "wide", range(30)
    tps = [TopicPartition(topic, number) for number in partitions]
    with Admin(log.address) as admin, Producer(log.address) as producer:
        admin.create_topic(topic, assignment={number: [2 + number % 2] for number in partitions})
        for tp in tps:
            producer.send(topic, b"first", partition=tp.partition)
            producer.send(topic, b"second", partition=tp.partition)
        producer.flush()
        admin.alter_group_offsets(topic, {tp: OffsetAndMetadata(1, leader_epoch=0) for tp in tps})
    asked = [broker.fault("OffsetForLeaderEpoch", delay_ms=1) for broker in log.cluster.brokers[1:]]
    try:
        with resumed(log, topic, reset="none") as consumer:
            consumer.assign(tps)
            assert {record.value for record in some(consumer, len(tps))} == {b"second"}
    finally:
        for fault in asked:
            fault.clear()
    assert [fault.hits for fault in asked] == [1, 1]


def test_records_know_the_leader_that_wrote_them(log: TruncatedLog) -> None:
    with Consumer(log.address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TP])
        epochs = [record.leader_epoch for record in some(consumer, KEPT + WRITTEN_SINCE)]
    assert epochs[:KEPT] == [0] * KEPT
    [newest] = {epoch for epoch in epochs[KEPT:] if epoch is not None}
    assert newest > 0
