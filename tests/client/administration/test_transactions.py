"""Transactions of a producer against a broker, in both versions of the protocol, and with faults in the broker."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.patience import stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.client.producing.async_producer import AsyncProducer
from moldau.client.producing.producer import Producer
from moldau.client.producing.transaction import Transaction
from moldau.errors import (
    CommitFailed,
    ConfigError,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    UnknownMemberId,
)
from moldau.names import GroupMetadata, TopicPartition
from moldau.peers import negotiation
from moldau.testing import Broker


@pytest.fixture(scope="module")
def served() -> Iterator[Broker]:
    often = {"group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 100}
    with Broker(often) as broker:
        yield broker


@pytest.fixture(params=[2, 1], ids=["version 2", "version 1"])
def address(served: Broker, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The broker's address, for clients that speak this version of transactions."""
    if request.param == 1:
        monkeypatch.setattr(negotiation, "TRANSACTIONS", "a feature that no cluster has")
    yield served.bootstrap_servers
    served.clear_faults()


def committed(address: str, topic: str, partition: int = 0) -> list[bytes]:
    tp = TopicPartition(topic, partition)
    end = list_offsets(address, {tp: LATEST})[tp]
    return [row["value"] for rows in read_columns(address, topic, partition, 0, end) for row in rows.to_pylist()]


@contextlib.contextmanager
def aborted(producer: Producer) -> Iterator[Transaction]:
    """A transaction that ends with an exception."""
    with contextlib.suppress(ZeroDivisionError), producer.transaction() as transaction:
        yield transaction
        raise ZeroDivisionError


def test_a_block_commits_and_an_exception_aborts(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic) as producer:
        for number in range(3):
            with producer.transaction():
                producer.send(topic, b"committed %d" % number)
        with aborted(producer):
            producer.send(topic, b"aborted").result(stretched(10))
        with producer.transaction():
            producer.send(topic, b"after")
    assert committed(address, topic) == [b"committed 0", b"committed 1", b"committed 2", b"after"]


def test_nothing_is_visible_before_the_commit(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"x").result(stretched(10))
        tp = TopicPartition(topic, 0)
        assert list_offsets(address, {tp: LATEST}, isolation_level="read_committed") == {tp: 0}
        producer.commit_transaction()
    assert committed(address, topic) == [b"x"]


def test_many_partitions_take_part(address: str, topic: str) -> None:
    with Admin(address) as admin:
        admin.create_topic(topic, partitions=5)
    with Producer(address, transactional_id=topic, batch_size=200) as producer:
        for _ in range(3):
            with producer.transaction():
                for number in range(100):
                    producer.send(topic, b"%d" % number, partition=number % 5)
    for partition in range(5):
        assert len(committed(address, topic, partition)) == 60


def test_an_empty_transaction_asks_nobody(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic) as producer:
        with producer.transaction():
            pass
        producer.begin_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"x")
    assert committed(address, topic) == [b"x"]


def test_without_a_transaction_nothing_is_sent(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic) as producer:
        with pytest.raises(InvalidTxnState, match=r"no transaction was begun.*producer\.transaction\(\)"):
            producer.send(topic, b"x")
        with producer.transaction():
            with pytest.raises(InvalidTxnState, match="a transaction is open: end it first"):
                producer.begin_transaction()
        with pytest.raises(InvalidTxnState, match="nothing to commit"):
            producer.commit_transaction()
        with pytest.raises(InvalidTxnState, match="nothing to abort"):
            producer.abort_transaction()


def test_transactions_need_their_setting() -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(ConfigError, match="transactional_id"):
        producer.begin_transaction()


@pytest.mark.parametrize("settings", [{"acks": 1}, {"enable_idempotence": False}])
def test_settings_that_exclude_transactions_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="transactional_id needs"):
        Producer("127.0.0.1:1", transactional_id="t", **settings)  # type: ignore[arg-type]


def test_a_newer_producer_fences_the_older_one_for_good(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic) as older:
        older.begin_transaction()
        older.send(topic, b"older").result(stretched(10))
        with Producer(address, transactional_id=topic) as newer:
            with newer.transaction():
                newer.send(topic, b"newer")
        with pytest.raises(ProducerFenced):
            older.commit_transaction()
        for use in (older.begin_transaction, older.commit_transaction, lambda: older.send(topic, b"x")):
            with pytest.raises(ProducerFenced, match="the producer can only be closed"):
                use()
    assert committed(address, topic) == [b"newer"]


def test_a_fenced_block_raises_that_it_is_fenced(address: str, topic: str) -> None:
    def run() -> None:
        with Producer(address, transactional_id=topic) as older, older.transaction():
            older.send(topic, b"older").result(stretched(10))
            with Producer(address, transactional_id=topic) as newer:
                newer.init_transactions()

    with pytest.raises(ProducerFenced):
        run()
    assert committed(address, topic) == []


def test_a_block_whose_record_is_refused_as_fenced_raises_that_the_producer_is_fenced(
    address: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    def run() -> None:
        with Producer(address, transactional_id=topic) as older, older.transaction():
            older.send(topic, b"older").result(stretched(10))
            with Producer(address, transactional_id=topic) as newer:
                newer.init_transactions()
            older.send(topic, b"too late")

    with pytest.raises(ProducerFenced) as raised:
        run()
    assert isinstance(raised.value.__cause__, TransactionAbortable)
    assert "could not be aborted" not in caplog.text, "there is nothing left to abort"
    assert committed(address, topic) == []


def test_a_record_that_fails_lets_the_commit_fail_and_the_producer_goes_on(address: str, topic: str) -> None:
    with Admin(address) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})

    def too_large(producer: Producer) -> None:
        with producer.transaction():
            producer.send(topic, b"small").result(stretched(10))
            producer.send(topic, b"x" * 5_000)

    with Producer(address, transactional_id=topic) as producer:
        for number in range(3):
            with pytest.raises(TransactionAbortable, match=r"too large|larger"):
                too_large(producer)
            with producer.transaction():
                producer.send(topic, b"%d" % number)
    assert committed(address, topic) == [b"0", b"1", b"2"]


def test_an_exception_drops_what_was_not_sent_yet(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic, linger_ms=60_000) as producer:
        with aborted(producer):
            lost = producer.send(topic, b"x")
        assert isinstance(lost.exception(0), TransactionAbortable)
        with producer.transaction():
            producer.send(topic, b"after")
    assert committed(address, topic) == [b"after"]


def test_a_producer_that_is_closed_aborts_its_transaction(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"x").result(stretched(10))
    with Admin(address) as admin:
        assert admin.transactions.describe(topic).state in ("CompleteAbort", "PrepareAbort")


@pytest.mark.parametrize("by", ["offsets", "consumer"])
def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    address: str, topic: str, fresh: Callable[[], str], group: str, by: str
) -> None:
    source, tp = fresh(), TopicPartition(topic, 0)
    with Producer(address) as producer:
        for number in range(10):
            producer.send(source, b"%d" % number)
    tp = TopicPartition(source, 0)
    with (
        Consumer(address, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest") as consumer,
        Producer(address, transactional_id=topic) as producer,
    ):
        consumer.subscribe([source])

        def copy(count: int) -> None:
            with producer.transaction() as transaction:
                left = count
                while left:
                    for record in consumer.poll(1_000, left):
                        producer.send(topic, record.value)
                        left -= 1
                if by == "consumer":
                    transaction.send_offsets(consumer)
                else:
                    transaction.send_offsets({tp: consumer.position(tp)}, consumer.group_metadata())
                if count == 5:
                    raise ZeroDivisionError

        copy(4)
        with pytest.raises(ZeroDivisionError):
            copy(5)
        [(_, position)] = consumer.committed([tp]).items()
    assert position.offset == 4
    assert committed(address, topic) == [b"0", b"1", b"2", b"3"]


def test_a_consumer_that_has_left_its_group_commits_nothing(address: str, topic: str, group: str) -> None:
    with Producer(address, transactional_id=topic) as producer:

        def run() -> None:
            with producer.transaction() as transaction:
                producer.send(topic, b"x")
                transaction.send_offsets({TopicPartition(topic, 0): 1}, GroupMetadata(group, 5, "nobody"))

        with pytest.raises(CommitFailed):
            run()
        with producer.transaction():
            producer.send(topic, b"after")
    assert committed(address, topic) == [b"after"]


@pytest.mark.parametrize(
    ("api", "settings"),
    [
        ("Heartbeat", {"group_protocol": "classic", "heartbeat_interval_ms": 100}),
        ("ConsumerGroupHeartbeat", {"group_protocol": "consumer"}),
    ],
)
def test_offsets_are_not_sent_for_a_consumer_whose_session_has_ended(
    served: Broker, address: str, topic: str, group: str, api: str, settings: dict[str, Any]
) -> None:
    with (
        Consumer(
            address,
            group_id=group,
            **settings,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
        Producer(address, transactional_id=topic) as producer,
    ):
        consumer.subscribe([topic])
        with producer.transaction():
            producer.send(topic, b"x")
        assert wait_until(lambda: bool(consumer.poll(200)))
        assert consumer.group_metadata().generation_id >= 0

        def is_lost() -> bool:
            try:
                consumer.group_metadata()
            except UnknownMemberId:
                return True
            return False

        def copy() -> None:
            with producer.transaction() as transaction:
                transaction.send_offsets(consumer)

        with served.fault(api, error="UNKNOWN_MEMBER_ID"):
            assert wait_until(is_lost)
        with pytest.raises(CommitFailed):
            copy()
        assert not consumer.committed([TopicPartition(topic, 0)])


@pytest.mark.parametrize("address", [1], ids=["version 1"], indirect=True)
def test_a_partition_that_could_not_join_an_aborted_transaction_is_not_asked_for_again(
    served: Broker, address: str, topic: str, group: str
) -> None:
    with Producer(address, transactional_id=topic) as producer:

        def run() -> None:
            with producer.transaction() as transaction:
                producer.send(topic, b"x")
                assert wait_until(lambda: adding.hits > 1)
                transaction.send_offsets({TopicPartition(topic, 0): 1}, GroupMetadata(group, 5, "nobody"))

        with served.fault("AddPartitionsToTxn", error="CONCURRENT_TRANSACTIONS") as adding:
            with pytest.raises(CommitFailed):
                run()
        with producer.transaction():
            producer.send(topic, b"after")
    assert committed(address, topic) == [b"after"]


def test_offsets_need_a_group(address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic) as producer:
        with producer.transaction() as transaction, pytest.raises(ConfigError, match="the group of these offsets"):
            transaction.send_offsets({TopicPartition(topic, 0): 1})


FAULTS = [
    ("EndTxn", {"drop": "before"}),
    ("EndTxn", {"drop": "after"}),
    ("EndTxn", {"error": "CONCURRENT_TRANSACTIONS"}),
    ("EndTxn", {"error": "COORDINATOR_NOT_AVAILABLE"}),
    ("EndTxn", {"error": "NOT_COORDINATOR"}),
    ("InitProducerId", {"drop": "after"}),
    ("InitProducerId", {"error": "CONCURRENT_TRANSACTIONS"}),
    ("Produce", {"drop": "before"}),
    ("Produce", {"drop": "after"}),
    ("Produce", {"error": "NOT_LEADER_OR_FOLLOWER"}),
    ("FindCoordinator", {"error": "COORDINATOR_NOT_AVAILABLE"}),
    ("AddPartitionsToTxn", {"drop": "after"}),
    ("TxnOffsetCommit", {"drop": "after"}),
    ("TxnOffsetCommit", {"error": "COORDINATOR_LOAD_IN_PROGRESS"}),
    ("AddOffsetsToTxn", {"drop": "before"}),
]


@pytest.mark.parametrize(("api", "fault"), FAULTS, ids=[f"{api} {fault}" for api, fault in FAULTS])
def test_what_may_succeed_later_is_asked_again_and_commits_once(
    served: Broker, address: str, topic: str, group: str, api: str, fault: dict[str, str]
) -> None:
    for number in range(3):
        with Producer(address, transactional_id=topic, retry_backoff_ms=1) as producer:
            with served.fault(api, times=2, **fault):  # type: ignore[arg-type]
                with producer.transaction() as transaction:
                    producer.send(topic, b"%d" % number)
                    transaction.send_offsets({TopicPartition(topic, 0): number}, group)
                with aborted(producer):
                    producer.send(topic, b"aborted")
    assert committed(address, topic) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("error", ["INVALID_TXN_STATE", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"])
def test_what_a_coordinator_refuses_for_good_ends_the_producer(
    served: Broker, address: str, topic: str, error: str
) -> None:
    with Producer(address, transactional_id=topic) as producer:
        producer.begin_transaction()
        producer.send(topic, b"x").result(stretched(10))
        with served.fault("EndTxn", error=error, times=1), pytest.raises(KafkaError) as refused:
            producer.commit_transaction()
        with pytest.raises(type(refused.value), match="the producer can only be closed"):
            producer.begin_transaction()


def test_a_transaction_that_took_too_long_was_aborted(served: Broker, address: str, topic: str) -> None:
    with Producer(address, transactional_id=topic, transaction_timeout_ms=1_000) as producer:
        producer.begin_transaction()
        producer.send(topic, b"late").result(stretched(10))
        served.clock.advance(seconds=60)
        with pytest.raises((ProducerFenced, InvalidTxnState), match=r"open for longer than transaction\.timeout\.ms"):
            producer.commit_transaction()
    assert committed(address, topic) == []


def test_transactions_on_a_loop_of_ones_own(address: str, topic: str, group: str) -> None:
    async def fail(producer: AsyncProducer) -> None:
        async with producer.transaction():
            await producer.send(topic, b"aborted")
            raise ZeroDivisionError

    async def run() -> None:
        async with AsyncProducer(address, transactional_id=topic) as producer:
            async with producer.transaction() as transaction:
                await producer.send(topic, b"committed")
                await transaction.send_offsets({TopicPartition(topic, 0): 7}, group)
            with pytest.raises(ZeroDivisionError):
                await fail(producer)

    asyncio.run(run())
    assert committed(address, topic) == [b"committed"]


def test_columns_join_a_transaction(address: str, topic: str) -> None:

    with Producer(address, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send_many(topic, [b"a", b"b"])
        with aborted(producer):
            producer.send_many(topic, [b"c"])
    assert committed(address, topic) == [b"a", b"b"]
