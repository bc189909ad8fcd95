"""The virtual clock: what the broker's time decides happens when the test moves it, and not before."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from harness.patience import Deadline, wait_until
from moldau import Admin, Consumer, Producer, Record, TopicPartition
from moldau.coordinators.groups import shard
from moldau.errors import ErrorCode
from moldau.protocol.apis import (
    ADD_PARTITIONS_TO_TXN,
    CONSUMER_GROUP_HEARTBEAT,
    END_TXN,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    Api,
)
from moldau.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.testing import Broker
from moldau.testing.clock import Clock, ShiftedLoop
from tests.handlers.living import Wire


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


def test_records_expire_when_their_retention_has_passed(broker: Broker) -> None:
    topic = broker.create_topic("expiring", retention_ms=3_600_000)
    with Producer(broker.address) as producer, Admin(broker.address) as admin:
        for _ in range(3):
            producer.send(topic, b"x")
        producer.flush()
        broker.clock.advance(minutes=59)
        assert admin.watermarks(topic) == {TopicPartition(topic, 0): (0, 3)}
        broker.clock.advance(minutes=2)
        assert admin.watermarks(topic) == {TopicPartition(topic, 0): (3, 3)}


def test_a_week_passes_in_a_moment() -> None:
    with Broker() as broker, Producer(broker.address) as producer, Admin(broker.address) as admin:
        producer.send("t", b"x").result()
        broker.clock.advance(days=7)
        assert admin.watermarks("t") == {TopicPartition("t", 0): (1, 1)}


def members(admin: Admin, group: str) -> int:
    return len(admin.describe_group(group).members)


def test_a_silent_member_leaves_its_group_when_its_session_has_timed_out(broker: Broker) -> None:
    topic = broker.create_topic("of-members")
    settings = {"group_id": "g", "heartbeat_interval_ms": 10_000, "session_timeout_ms": 45_000}
    with Consumer(broker.address, **settings) as consumer, Admin(broker.address) as admin:
        consumer.subscribe([topic])
        assert wait_until(lambda: consumer.poll(100) or consumer.assignment())
        assert members(admin, "g") == 1
        broker.clock.advance(seconds=20)
        assert members(admin, "g") == 1
        broker.clock.advance(seconds=46)
        assert members(admin, "g") == 0


def test_a_silent_member_of_the_newer_protocol_leaves_its_group(broker: Broker) -> None:
    topic = broker.create_topic("of-newer-members")
    joining = ConsumerGroupHeartbeatRequest(
        group_id="newer",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )

    with Admin(broker.address) as admin:
        asyncio.run(answered(broker, "newer", CONSUMER_GROUP_HEARTBEAT, 1, joining))
        broker.clock.advance(seconds=40)
        assert members(admin, "newer") == 1
        broker.clock.advance(seconds=6)
        assert members(admin, "newer") == 0


@contextlib.asynccontextmanager
async def dialled(broker: Broker) -> AsyncIterator[Wire]:
    wire = Wire(*await asyncio.open_connection("127.0.0.1", broker.port))
    try:
        yield wire
    finally:
        wire.writer.close()


def adding(transactional_id: str, topic: str, producer: dict[str, int]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        **{f"v3_and_below_{name}": value for name, value in producer.items()},
    )


async def answered(broker: Broker, name: str, api: Api, version: int, request: object, key_type: int = 0) -> Any:
    """The reply to the request once the coordinator of that group (or transactional id) has loaded its state."""
    async with dialled(broker) as wire:
        deadline = Deadline()
        while not deadline.passed:
            await wire.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name]))
            reply = await wire.ask(api, version, request)
            if not reply.error_code:
                return reply
            assert ErrorCode(reply.error_code).retriable, reply
        raise AssertionError(f"still {reply}")


LENGTHS_S = (1, 150, 151, 3 * 3600, 30 * 86400)


@pytest.mark.parametrize("length_s", LENGTHS_S)
def test_all_deadlines_have_passed_when_advance_returns(length_s: int) -> None:
    """A transaction and a session time out, a fetch is answered, a record and offsets expire; 4 s for all lengths."""
    half_ms = min(length_s * 500, 900_000)
    settings = {
        "group_min_session_timeout_ms": 100,
        "offsets_retention_minutes": 1,
        "offsets_retention_check_interval_ms": 200,
        "log_retention_check_interval_ms": 200,
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": 200,
    }

    async def scenario(broker: Broker) -> None:
        async with dialled(broker) as wire, dialled(broker) as waiting:
            session = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=half_ms,
                rebalance_timeout_ms=half_ms,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
            await answered(broker, "g", JOIN_GROUP, 3, session)
            begin = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=half_ms)
            producer = await answered(broker, "tx", INIT_PRODUCER_ID, 4, begin, key_type=1)
            me = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
            await wire.ask(ADD_PARTITIONS_TO_TXN, 3, adding("tx", "t", me))
            part = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1000)
            topics = [FetchTopic(topic="t", partitions=[part])]
            parked = FetchRequest(max_wait_ms=half_ms, min_bytes=1000, max_bytes=1000, session_epoch=-1, topics=topics)
            waiting.send(FETCH, 11, parked)
            fetched = asyncio.create_task(waiting.receive(FETCH, 11))
            await asyncio.to_thread(broker.clock.advance, seconds=length_s)
            ended = await wire.ask(END_TXN, 3, EndTxnRequest(transactional_id="tx", committed=True, **me))
            # After seven days without a transaction the id itself has expired.
            expired = length_s > 7 * 86400
            assert ended.error_code == (ErrorCode.INVALID_PRODUCER_ID_MAPPING if expired else ErrorCode.PRODUCER_FENCED)
            await fetched

    with Broker(**settings) as broker, Admin(broker.address) as admin, Producer(broker.address) as producer:
        broker.create_topic("t", retention_ms=min(half_ms, 3_600_000))
        producer.send("t", b"x", timestamp_ms=broker.clock.now_ms()).result()
        for number in range(7):
            admin.alter_group_offsets(f"of-{number}", {TopicPartition("t", 0): 1})
        asyncio.run(scenario(broker))
        # An empty group without offsets is gone.
        assert not [one for one in admin.list_groups() if one.group_id == "g" and members(admin, "g")]
        # The log may end behind the transaction's marker, which is newer than the record.
        assert admin.watermarks("t")[TopicPartition("t", 0)][0] >= 1
        left = [number for number in range(7) if admin.group_offsets(f"of-{number}")]
        assert left == ([] if length_s > 60 else [*range(7)])


def test_work_that_goes_on_after_pauses_is_over_when_advance_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "EXPIRY_LOOKS", 2)
    with Broker(offsets_retention_minutes=1) as broker, Admin(broker.address) as admin:
        broker.create_topic("t")
        for number in range(7):
            admin.alter_group_offsets(f"of-{number}", {TopicPartition("t", 0): 1})
        broker.clock.advance(minutes=12)
        assert not [number for number in range(7) if admin.group_offsets(f"of-{number}")]


def test_what_begins_when_a_deadline_has_passed_does_not_begin_much_later() -> None:
    """The offsets of a group expire a week after its last member has gone, not a week and a long step."""
    with Broker(offsets_retention_minutes=7 * 24 * 60) as broker, Admin(broker.address) as admin:
        topic = broker.create_topic("t")
        with Producer(broker.address) as producer:
            producer.send(topic, b"x").result()
        with Consumer(broker.address, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            assert wait_until(lambda: consumer.poll(100))
            consumer.commit()
            broker.clock.advance(days=7, minutes=15)
            assert not admin.group_offsets("g")


def test_the_brokers_time_goes_on_through_a_restart() -> None:
    with Broker() as broker:
        broker.clock.advance(hours=1)
        broker.restart()
        broker.kill()
        broker.clock.advance(hours=1)
        broker.start()
        assert broker.clock.ahead_s == 7200
        topic = broker.create_topic("t", message_timestamp_type="LogAppendTime")
        sent_ms = int(time.time() * 1000)
        with Producer(broker.address) as producer:
            producer.send(topic, b"x").result()
        records = list[Record]()
        with Consumer(broker.address, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert wait_until(lambda: records.extend(consumer.poll(100)) or records)
        assert sent_ms <= records[0].timestamp_ms - 7_200_000 <= time.time() * 1000


def test_time_only_moves_forward() -> None:
    clock = Clock()
    with pytest.raises(ValueError, match="forward"):
        clock.advance(hours=1, minutes=-61)
    assert clock.ahead_s == 0


def test_timers_and_the_work_they_start_are_over_when_advance_returns() -> None:
    """Each step runs what is due; a chain of timers, each set by the one before it, goes on from step to step."""
    clock, ran, links = Clock(), list[int](), 50

    async def chain() -> None:
        for number in range(links):
            await asyncio.sleep(60)
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.001)
            ran.append(number)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ShiftedLoop)
        chained = asyncio.ensure_future(chain())
        await clock._advance(loop, 59)
        assert not ran
        await clock._advance(loop, 3600 * 24)
        assert chained.done() and len(ran) == links

    with asyncio.Runner(loop_factory=lambda: ShiftedLoop(clock)) as runner:
        runner.run(scenario())


def test_a_transaction_times_out_by_the_brokers_clock(broker: Broker) -> None:
    topic = broker.create_topic("transactional")

    async def scenario() -> tuple[int, int]:
        begin = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        producer = await answered(broker, "tx", INIT_PRODUCER_ID, 4, begin, key_type=1)
        me = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        async with dialled(broker) as wire:
            added = await wire.ask(ADD_PARTITIONS_TO_TXN, 3, adding("tx", topic, me))
            await asyncio.to_thread(broker.clock.advance, minutes=2)
            ended = await wire.ask(END_TXN, 3, EndTxnRequest(transactional_id="tx", committed=True, **me))
        return added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, ended.error_code

    assert asyncio.run(scenario()) == (ErrorCode.NONE, ErrorCode.PRODUCER_FENCED)
