"""The transaction coordinator on its host: markers until they are written, producer ids in blocks, partitions that come
and go; in virtual time."""

import asyncio
import itertools
import tracemalloc
from collections.abc import Awaitable

import pytest

from moldau.coordinators.decision import Decision, Now
from moldau.coordinators.transactions.messages import (
    AddPartitions,
    DescribedTransaction,
    Ended,
    EndTransaction,
    Initialized,
    InitProducer,
    ListedTransaction,
    TransactionSettings,
)
from moldau.coordinators.transactions.records import transaction_record
from moldau.coordinators.transactions.shard import TransactionShard
from moldau.coordinators.transactions.transaction import TransactionMetadata, TransactionState
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.names import TopicPartition
from moldau.records.batch import encode_batch
from tests.coordinators.consumer.scene import with_topic
from tests.coordinators.fake_log import in_virtual_time
from tests.coordinators.held_log import YEAR_2013_MS
from tests.coordinators.transactions.scene import TransactionActor, TransactionStage
from tests.coordinators.transactions.world import T0, T1, PointedLog, Producer, World, answered

U0 = TopicPartition("u", 0)


async def committing(world: World, *partitions: TopicPartition) -> Producer:
    """A producer whose transaction is decided, and whose markers are about to be written."""
    producer = Producer(await world.leading())
    await producer.start()
    assert await producer.add(*partitions) is ErrorCode.NONE
    assert await producer.end(commits=True) is ErrorCode.NONE
    return producer


def state_of(producer: Producer) -> str:
    return producer.coordinator.describe("x").state


def test_a_partition_answers_once_it_is_loaded() -> None:
    async def play() -> None:
        world = World()
        coordinator = world.coordinator()
        ask = InitProducer("x", 60_000)
        assert coordinator.init_producer_id(ask) == Initialized(ErrorCode.NOT_COORDINATOR)
        world.log.reading.clear()
        coordinator.lead(coordinator.partition_of("x"), 1)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert coordinator.init_producer_id(ask) == Initialized(loading)
        assert coordinator.add_partitions(AddPartitions("x", 1, 0, (T0,))) is loading
        assert coordinator.verify_partitions(AddPartitions("x", 1, 0, (T0, T1))) == {T0: loading, T1: loading}
        assert coordinator.end(EndTransaction("x", 1, 0, True, 2)) == Ended(loading)
        for read in (lambda: coordinator.describe("x"), coordinator.listed):
            with pytest.raises(KafkaError, match="LOAD_IN_PROGRESS"):
                read()
        world.log.reading.set()
        await coordinator.loaded("x")
        with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_NOT_FOUND"):
            coordinator.describe("x")
        assert list(coordinator.listed()) == []
        await coordinator.stop()

    in_virtual_time(play())


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
def test_a_timeout_that_is_never_allowed_is_refused_by_any_broker_at_once(timeout_ms: int) -> None:
    async def play() -> None:
        coordinator = World().coordinator()
        ask = InitProducer("x", timeout_ms)
        assert coordinator.init_producer_id(ask) == Initialized(ErrorCode.INVALID_TRANSACTION_TIMEOUT)

    in_virtual_time(play())


def test_ids_are_listed_one_by_one_as_they_are_at_that_moment() -> None:
    async def play() -> None:
        world = World()
        coordinator = await world.leading("x", "y")
        x, y = Producer(coordinator), Producer(coordinator, "y")
        await x.start()
        await y.start()
        listed = iter(coordinator.listed())
        first = next(listed)
        assert first.state == "Empty"
        await (y if first.transactional_id == "x" else x).add(T0)
        assert [one.state for one in listed] == ["Ongoing"]
        await coordinator.stop()

    in_virtual_time(play())


@pytest.mark.parametrize("transactional_id", ["", "x" * 40_000])
def test_an_id_that_cannot_be_is_refused(transactional_id: str) -> None:
    async def play() -> None:
        coordinator = await World().leading()
        bad = ErrorCode.INVALID_REQUEST
        assert coordinator.init_producer_id(InitProducer(transactional_id, 60_000)) == Initialized(bad)
        assert coordinator.add_partitions(AddPartitions(transactional_id, 1, 0, (T0,))) is bad
        assert coordinator.verify_partitions(AddPartitions(transactional_id, 1, 0, (T0,))) == {T0: bad}
        assert coordinator.end(EndTransaction(transactional_id, 1, 0, True)) == Ended(bad)
        with pytest.raises(KafkaError, match="INVALID_REQUEST"):
            coordinator.describe(transactional_id)
        await coordinator.stop()

    in_virtual_time(play())


def test_a_transaction_is_described_and_listed() -> None:
    async def play() -> None:
        world = World()
        coordinator = await world.leading("x", "y")
        producer = Producer(coordinator)
        await producer.start()
        await Producer(coordinator, "y").start()
        began_ms = YEAR_2013_MS + int(asyncio.get_running_loop().time() * 1000)
        await producer.add(T0, T1)
        assert coordinator.describe("x") == DescribedTransaction("x", "Ongoing", 1000, 0, 60_000, began_ms, (T0, T1))
        assert sorted(coordinator.listed()) == [
            ListedTransaction("x", 1000, "Ongoing", began_ms),
            ListedTransaction("y", 1001, "Empty", -1),
        ]
        await coordinator.stop()

    in_virtual_time(play())


def test_a_marker_is_tried_until_the_partition_takes_it() -> None:
    async def play() -> None:
        world = World()
        world.errors[T0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 5 + [ErrorCode.NOT_ENOUGH_REPLICAS]
        producer = await committing(world, T0, T1)
        assert state_of(producer) == "PrepareCommit"
        await asyncio.sleep(10)
        assert state_of(producer) == "CompleteCommit"
        times = [at for at, tp in world.tries if tp == T0]
        pauses = [round(1000 * (after - before)) for before, after in itertools.pairwise(times)]
        assert pauses == [20, 40, 80, 160, 320, 640]
        assert len(world.markers[T0]) == len(world.markers[T1]) == 1, "who has it is left alone"
        await producer.coordinator.stop()

    in_virtual_time(play())


def test_a_change_of_the_cluster_ends_the_pause_of_a_marker() -> None:
    async def play() -> None:
        world = World()
        world.errors[T0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 7
        producer = await committing(world, T0)
        await asyncio.sleep(1.5)
        assert state_of(producer) == "PrepareCommit"
        before = asyncio.get_running_loop().time()
        producer.coordinator.partitions_changed()
        while state_of(producer) == "PrepareCommit":
            await asyncio.sleep(0)
        assert asyncio.get_running_loop().time() == before
        await producer.coordinator.stop()

    in_virtual_time(play())


def test_a_topic_that_is_gone_needs_no_marker() -> None:
    async def play() -> None:
        world = World()
        world.errors[U0] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 1000
        producer = await committing(world, T0, U0)
        await asyncio.sleep(20)
        assert state_of(producer) == "PrepareCommit", "the topic is there: the broker may not know it yet"
        world.image = with_topic(world.image, "u", 0)
        await asyncio.sleep(2)
        assert state_of(producer) == "CompleteCommit"
        await producer.coordinator.stop()

    in_virtual_time(play())


@pytest.mark.parametrize("error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT])
def test_a_partition_in_which_the_transaction_is_over_needs_no_marker(error: ErrorCode) -> None:
    async def play() -> None:
        world = World()
        world.errors[T0] = [error] * 1000
        producer = await committing(world, T0, T1)
        await asyncio.sleep(0.01)
        assert state_of(producer) == "CompleteCommit"
        await producer.coordinator.stop()

    in_virtual_time(play())


def test_a_marker_writer_that_fails_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        world = World()
        producer = Producer(await world.leading())
        await producer.start()
        await producer.add(T0)
        world.markers = None  # type: ignore[assignment]
        await producer.end(commits=True)
        await asyncio.sleep(0.01)
        world.markers = {}
        await asyncio.sleep(1)
        assert state_of(producer) == "CompleteCommit"
        await producer.coordinator.stop()

    in_virtual_time(play())
    assert "markers of transactional id x cannot be written" in caplog.text


def test_a_partition_that_keeps_refusing_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        world = World()
        world.errors[T0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1000
        producer = await committing(world, T0)
        await asyncio.sleep(60)
        await producer.coordinator.stop()

    in_virtual_time(play())
    assert caplog.text.count("the commit marker of transactional id x cannot be written to t-0") == 1


def test_completing_is_tried_until_the_log_takes_it() -> None:
    async def play() -> None:
        world = World()
        producer = Producer(await world.leading())
        await producer.start()
        await producer.add(T0)
        world.gate.clear()
        await producer.end(commits=True)
        world.log.refusals = [ErrorCode.NOT_ENOUGH_REPLICAS] * 3
        world.gate.set()
        await asyncio.sleep(1)
        assert world.log.refusals == []
        assert state_of(producer) == "CompleteCommit"
        assert len(world.markers[T0]) == 1
        await producer.coordinator.stop()

    in_virtual_time(play())


def test_nobody_knows_whether_the_log_took_the_decision_so_the_log_is_asked() -> None:
    async def play() -> None:
        world = World()
        producer = Producer(await world.leading())
        await producer.start()
        await producer.add(T0)
        world.log.refusals = [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
        assert await producer.end(commits=True) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await producer.coordinator.loaded("x")
        assert state_of(producer) == "Ongoing"
        assert await producer.end(commits=True) is ErrorCode.NONE
        await producer.coordinator.stop()

    in_virtual_time(play())


def test_markers_are_written_once_more_where_the_partition_is_loaded_anew() -> None:
    async def play() -> None:
        world = World()
        world.errors[T0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
        producer = await committing(world, T0, T1)
        coordinator, partition = producer.coordinator, producer.coordinator.partition_of("x")
        coordinator.lead(partition, 8)
        await coordinator.loaded("x")
        await asyncio.sleep(5)
        assert state_of(producer) == "CompleteCommit"
        assert [one.coordinator_epoch for one in world.markers[T0]] == [8]
        coordinator.lead(partition, 8)
        loads = world.log.loads
        coordinator.lead_only({partition: 8, 3: 1})
        await asyncio.sleep(1)
        assert world.log.loads == loads + 1, "what is led already stays loaded"
        coordinator.lead_only({3: 1})
        assert coordinator.init_producer_id(InitProducer("x", 60_000)) == Initialized(ErrorCode.NOT_COORDINATOR)
        await coordinator.stop()

    in_virtual_time(play())


def test_who_resigns_writes_nothing_more() -> None:
    async def play() -> None:
        world = World()
        world.gate.clear()
        producer = await committing(world, T0)
        producer.coordinator.resign(producer.coordinator.partition_of("x"))
        batches = sum(map(len, world.log.batches.values()))
        world.gate.set()
        await asyncio.sleep(60)
        assert sum(map(len, world.log.batches.values())) == batches, "it is no longer its to complete"
        await producer.coordinator.stop()

    in_virtual_time(play())


def test_who_resigns_tries_no_marker_again() -> None:
    async def play() -> None:
        world = World()
        world.errors[T0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1000
        producer = await committing(world, T0)
        await asyncio.sleep(1)
        producer.coordinator.resign(producer.coordinator.partition_of("x"))
        tries = len(world.tries)
        producer.coordinator.partitions_changed()
        await asyncio.sleep(60)
        assert len(world.tries) == tries > 1
        await producer.coordinator.stop()

    in_virtual_time(play())


def test_transactions_are_completed_side_by_side_and_so_many_at_a_time() -> None:
    async def play() -> None:
        log = PointedLog()
        ids = [f"id-{number}" for number in range(500)]
        world = World()
        world.log = log
        coordinator = world.coordinator()
        prepared = TransactionMetadata(
            1, 0, 60_000, TransactionState.PREPARE_ABORT, YEAR_2013_MS, {T0: None, T1: None}, YEAR_2013_MS
        )
        for number, one in enumerate(ids):
            key, value = transaction_record(one, prepared._replace(producer_id=number), 2)
            log.batches.setdefault(coordinator.partition_of(one), []).append(
                bytes(encode_batch([(key, value, YEAR_2013_MS, [])]))
            )
        world.gate.clear()
        coordinator.lead_only(dict.fromkeys(range(50), 1))
        for one in ids:
            await coordinator.loaded(one)
        await asyncio.sleep(1)
        assert sum(task.get_coro().__qualname__ == "MarkerRounds._run" for task in asyncio.all_tasks()) == 64
        world.gate.set()
        await asyncio.sleep(1)
        assert {one.state for one in coordinator.listed()} == {"CompleteAbort"}
        assert len(world.markers[T0]) == len(ids)
        await coordinator.stop()

    in_virtual_time(play())


def test_producer_ids_that_have_to_be_awaited_are_awaited() -> None:
    async def play() -> None:
        taken = 0

        def next_producer_id() -> Awaitable[int]:
            nonlocal taken
            taken += 1
            return later(taken)

        async def later(producer_id: int) -> int:
            await asyncio.sleep(0.1)
            return producer_id

        world = World()
        coordinator = world.coordinator(next_producer_id)
        coordinator.lead_only(dict.fromkeys(range(50), 1))
        for one in range(20):
            await coordinator.loaded(f"id-{one}")
        asked = [answered(coordinator.init_producer_id(InitProducer(f"id-{one}", 60_000))) for one in range(20)]
        answers: list[Initialized] = await asyncio.gather(*asked)
        assert {answer.error for answer in answers} == {ErrorCode.NONE}
        assert sorted(answer.producer_id for answer in answers) == list(range(1, 21)), "each is given out once"
        await coordinator.stop()

    in_virtual_time(play())


def test_without_producer_ids_a_client_is_asked_to_try_again() -> None:
    async def play() -> None:
        async def none() -> int:
            raise StorageError("the store is gone")

        coordinator = World().coordinator(none)
        coordinator.lead(coordinator.partition_of("x"), 1)
        await coordinator.loaded("x")
        for _ in range(2):
            answer = await answered(coordinator.init_producer_id(InitProducer("x", 60_000)))
            assert answer == Initialized(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await coordinator.stop()

    in_virtual_time(play())


def test_only_who_wrote_its_own_markers_completes_a_transaction() -> None:
    stage = TransactionStage(TransactionSettings())
    actor = TransactionActor(stage)
    for line in ("init a", "add a t-0", "commit a"):
        actor.play(line)
    before = stage.marking["x"]
    for line in ("marked", "add a t-0", "commit a"):
        actor.play(line)
    now = stage.marking["x"]
    for stale in (before, now._replace(coordinator_epoch=4), now._replace(commits=False), now._replace(producer_id=7)):
        decided = stage.shard.complete("x", stale, ticket := stage.ticket(), stage.now)
        assert (decided.records, decided.replies) == ([], [(ticket, ErrorCode.INVALID_TXN_STATE)])
    assert stage.shard.complete("x", now, stage.ticket(), stage.now).records


def test_a_million_idle_ids_would_fit_into_memory() -> None:
    now = Now(0, YEAR_2013_MS)
    shard = TransactionShard(TransactionSettings(), 1, lambda: None, lambda _, __: None)
    idle = TransactionMetadata(10**6, 7, 60_000, TransactionState.COMPLETE_COMMIT, YEAR_2013_MS, {}, YEAR_2013_MS, 2, 6)
    records = [transaction_record(f"transactional-id-{number}", idle, 2) for number in range(20_000)]
    tracemalloc.start()
    for record in records:
        shard.apply(record, now)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    list(shard.start(now, Decision()))
    assert shard.describe("transactional-id-77") is not None
    assert size / len(records) < 300
