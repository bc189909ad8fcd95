"""A client of several threads: producer and admin serve all of them, a consumer refuses the second one that asks it for
records, and `close` ends the calls that wait."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

import moldau
from harness.patience import SECONDS, stretched, wait_until, within
from moldau import Consumer, TopicPartition, aio
from moldau.errors import ClientClosed, ConcurrentUse, KafkaError

LONG_MS = 3_600_000


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.fixture
def idle(bootstrap: str, topic: str) -> Iterator[Consumer]:
    """A consumer of a partition without records."""
    with moldau.Admin(bootstrap) as admin:
        admin.create_topic(topic)
    with Consumer(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.position(TopicPartition(topic, 0))
        yield consumer


def ended(future: "Future[Any]") -> Any:
    return future.result(stretched())


def refused(future: "Future[Any]") -> BaseException | None:
    return future.exception(stretched())


@contextmanager
def waiting(consumer: Consumer, work: Callable[[], object], pool: ThreadPoolExecutor) -> "Iterator[Future[Any]]":
    """A thread that waits in this call of the consumer."""
    call = pool.submit(work)
    assert wait_until(lambda: consumer._thread._wakes)
    yield call
    consumer.close()


def records(consumer: Consumer) -> Callable[[], object]:
    return lambda: next(iter(consumer))


ASKING: dict[str, Callable[[Consumer], Callable[[], object]]] = {
    "poll": lambda one: lambda: one.poll(LONG_MS),
    "poll_table": lambda one: lambda: one.poll_table(LONG_MS),
    "iteration": records,
    "tables": lambda one: lambda: next(one.tables(LONG_MS)),
    "process": lambda one: lambda: one.process(print, idle_ms=LONG_MS),
}


@pytest.mark.parametrize("first", ASKING)
@pytest.mark.parametrize("second", [*ASKING, "unsubscribe"])
def test_a_second_thread_that_asks_for_records_is_refused_at_once(
    idle: Consumer, pool: ThreadPoolExecutor, first: str, second: str
) -> None:
    with waiting(idle, ASKING[first](idle), pool) as call:
        asks = ASKING[second](idle) if second in ASKING else idle.unsubscribe
        with pytest.raises(ConcurrentUse, match="one thread at a time asks for records") as failed:
            asks()
        assert "ThreadPoolExecutor" in str(failed.value)  # the name of the thread that is inside
    assert isinstance(refused(call), ClientClosed)


@pytest.mark.parametrize("first", ASKING)
def test_close_ends_a_call_that_another_thread_waits_in(idle: Consumer, pool: ThreadPoolExecutor, first: str) -> None:
    with waiting(idle, ASKING[first](idle), pool) as call:
        ended(pool.submit(idle.close))
        assert isinstance(refused(call), ClientClosed)
    with pytest.raises(ClientClosed):
        idle.poll(0)


def test_while_one_thread_polls_all_other_calls_serve(
    idle: Consumer, bootstrap: str, topic: str, pool: ThreadPoolExecutor
) -> None:
    tp = TopicPartition(topic, 0)
    with waiting(idle, lambda: idle.poll(LONG_MS), pool) as call:
        assert (idle.position(tp), idle.end_offsets([tp]), idle.beginning_offsets([tp])) == (0, {tp: 0}, {tp: 0})
        assert idle.lag().total == 0 and idle.offsets_for_times({tp: 0}) == {tp: None}
        idle.pause([tp])
        assert idle.paused() == [tp]
        idle.resume([tp])
        idle.seek_to_beginning()
        idle.seek_to_end()
        assert idle.assignment() == [tp] and idle.metrics().assigned_partitions == 1
        assert len(idle.log(topic)) == 0
        with moldau.Producer(bootstrap) as producer:
            producer.send(topic, b"one")
        assert [record.value for record in ended(call)] == [b"one"]


def test_threads_take_turns_without_a_refusal(bootstrap: str, topic: str, pool: ThreadPoolExecutor) -> None:
    with moldau.Producer(bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        loop = iter(consumer)
        seen = [ended(pool.submit(next, loop)).offset for _ in range(10)]
        seen += [record.offset for record in ended(pool.submit(consumer.poll, LONG_MS))]
        assert seen == [*range(20)]


def test_a_listener_may_use_the_consumer_that_calls_it(bootstrap: str, topic: str, group: str) -> None:
    found: list[object] = []
    with moldau.Producer(bootstrap) as producer:
        producer.send(topic, b"x")
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic, on_assigned=lambda those: found.append(consumer.poll(0)))
        assert consumer.poll(LONG_MS)
    assert found == [[]]


def test_a_listener_may_close_the_consumer_that_calls_it(bootstrap: str, topic: str, group: str) -> None:
    with moldau.Admin(bootstrap) as admin:
        admin.create_topic(topic)
    with Consumer(bootstrap, group_id=group) as consumer:
        consumer.subscribe(topic, on_assigned=lambda those: consumer.close(), on_revoked=lambda those: consumer.close())
        with pytest.raises(ClientClosed):
            consumer.poll(LONG_MS)


def test_of_several_threads_that_close_each_returns_when_the_client_is_closed(
    bootstrap: str, topic: str, group: str, pool: ThreadPoolExecutor
) -> None:
    consumer = Consumer(bootstrap, group_id=group)
    revoked: list[int] = []
    consumer.subscribe(topic, on_revoked=lambda those: revoked.append(threading.get_ident()))
    with moldau.Admin(bootstrap) as admin, moldau.Producer(bootstrap) as producer:
        admin.create_topic(topic)
        assert wait_until(lambda: consumer.poll(50) or consumer.assignment())
        for client in (consumer, admin, producer):
            for closing in [pool.submit(client.close) for _ in range(4)]:
                ended(closing)
            assert not client._thread.running
    assert len(revoked) == 1


def test_calls_of_an_admin_end_with_a_sentence_when_another_thread_closes_it(pool: ThreadPoolExecutor) -> None:
    admin = moldau.Admin("localhost:1", default_api_timeout_ms=LONG_MS)
    calls = [pool.submit(admin.list_topics) for _ in range(3)]
    assert wait_until(lambda: len(admin._thread._pending) == 3)
    admin.close()
    assert {type(refused(call)) for call in calls} == {ClientClosed}


def test_calls_of_a_producer_end_with_a_sentence_when_another_thread_closes_it(pool: ThreadPoolExecutor) -> None:
    producer = moldau.Producer("localhost:1", max_block_ms=LONG_MS, delivery_timeout_ms=LONG_MS)
    calls = [pool.submit(producer.send, f"topic-{number}", b"x") for number in range(3)]
    assert wait_until(lambda: len(producer._thread._pending) == 3)
    producer.close(timeout=0)
    assert {type(refused(call)) for call in calls} == {ClientClosed}


def test_a_producer_and_an_admin_serve_several_threads(bootstrap: str, topic: str, pool: ThreadPoolExecutor) -> None:
    with moldau.Producer(bootstrap) as producer, moldau.Admin(bootstrap) as admin:
        sends = [pool.submit(lambda n=n: producer.send(topic, b"%d" % n).result(SECONDS)) for n in range(8)]
        assert {ended(send).offset for send in sends} == {*range(8)}
        asks = [pool.submit(admin.watermarks, topic) for _ in range(8)]
        assert {ended(ask)[TopicPartition(topic, 0)] for ask in asks} == {(0, 8)}


def test_the_listener_of_a_close_runs_in_the_thread_that_closes(bootstrap: str, topic: str, group: str) -> None:
    where: list[int] = []
    with moldau.Admin(bootstrap) as admin:
        admin.create_topic(topic)
    with Consumer(bootstrap, group_id=group) as consumer, ThreadPoolExecutor(1) as aside:
        consumer.subscribe(topic, on_revoked=lambda those: where.append(threading.get_ident()))
        assert wait_until(lambda: consumer.poll(50) or consumer.assignment())
        poll = aside.submit(consumer.poll, LONG_MS)
        assert wait_until(lambda: consumer._thread._wakes)
        consumer.close()
        assert isinstance(refused(poll), ClientClosed)
    assert where == [threading.get_ident()]


def test_close_ends_a_poll_of_another_task(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        consumer = aio.Consumer(bootstrap)
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        poll = asyncio.create_task(consumer.poll(LONG_MS))
        await asyncio.sleep(0)
        await consumer.close()
        with pytest.raises(ClientClosed):
            await within(poll)

    asyncio.run(scenario())


def test_an_error_of_a_call_is_the_same_in_every_thread(bootstrap: str, pool: ThreadPoolExecutor) -> None:
    with moldau.Admin(bootstrap) as admin:
        calls = [pool.submit(admin.delete_topic, "missing") for _ in range(4)]
        assert all(isinstance(refused(call), KafkaError) for call in calls)
