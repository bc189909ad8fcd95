import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine

import pytest

import moldau
from harness.patience import within
from moldau.client.failures import Backoff, RetryLog, check, error_of, tried
from moldau.errors import ErrorCode, KafkaError
from tests.client.producing.test_partitioning import Dice


def test_a_code_that_nobody_knows_yet_is_an_unknown_error() -> None:
    assert error_of(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_failure_says_what_it_is_about_and_prefers_the_brokers_own_words() -> None:
    check(0, "nothing")
    with pytest.raises(KafkaError, match=r"^topic t: unknown topic or partition$"):
        check(3, "topic t")
    with pytest.raises(KafkaError, match=r"^topic t: no such thing$"):
        check(3, "topic t", "no such thing")


def test_waits_double_up_to_a_bound_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(Dice(1), RetryLog("client", lambda: 0.0), first_ms=100, last_ms=1000)
    waits = [backoff.next_ms() for _ in range(6)]
    assert all(full * 0.8 <= wait <= full for wait, full in zip(waits, [100, 200, 400, 800, 1000, 1000], strict=True))
    backoff.reset()
    assert backoff.next_ms() <= 100


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_every_failure_that_is_tried_again_has_a_line_and_those_that_last_have_a_warning_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client")
    clock, refused = Clock(), KafkaError(ErrorCode.NETWORK_EXCEPTION, "cannot connect to there:9092")
    log = RetryLog("client", clock)
    log.reached = True
    one, other = Backoff(Dice(1), log, "asking who leads"), Backoff(Dice(2), log)
    for _ in range(120):
        one.after_ms(refused)
        other.after_ms(refused)
        clock.now_s += 0.1
    loud = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(caplog.records) == 240
    assert 2 <= len(loud) <= 3, "one in five seconds, for both together"
    assert caplog.messages[0].startswith("client: asking who leads: cannot connect to there:9092 (attempt 1 in 0.0 s, ")
    assert caplog.messages[1].startswith("client: cannot connect to there:9092 (attempt 1 in 0.0 s, next in ")
    assert all(record.name == "moldau.client.failures" for record in caplog.records)


def test_failures_that_do_not_last_have_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client")
    clock = Clock()
    backoff = Backoff(Dice(1), RetryLog("client", clock), "fetching")
    for _ in range(50):
        backoff.after_ms(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here"))
        backoff.reset()
        clock.now_s += 1
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def test_a_broker_that_was_never_reached_has_its_warning_soon_and_then_one_in_five_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, refused = Clock(), KafkaError(ErrorCode.NETWORK_EXCEPTION, "cannot connect to there:9092")
    log = RetryLog("client", clock)
    backoff, began_s, warned_s = Backoff(Dice(1), log), clock.now_s, []
    for _ in range(120):
        seen = len(caplog.records)
        backoff.after_ms(refused)
        warned_s += [round(clock.now_s - began_s, 1)] * (len(caplog.records) - seen)
        clock.now_s += 0.1
    assert warned_s == [1.0, 6.0, 11.0]


def test_a_topic_that_does_not_exist_has_its_warning_soon(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = RetryLog("client", clock)
    log.reached = True
    backoff = Backoff(Dice(1), log)
    for _ in range(20):
        backoff.after_ms(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic rivres: unknown topic or partition"))
        clock.now_s += 0.1
    [said] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert said.getMessage().startswith("client: topic rivres: unknown topic or partition (attempt 11 in 1.0 s")


def test_a_call_that_was_retried_says_for_how_long() -> None:
    refused = KafkaError(ErrorCode.NETWORK_EXCEPTION, "cannot connect to there:9092")
    assert str(tried(refused, 0.9)) == "cannot connect to there:9092"
    assert str(tried(refused, 30.2)) == "cannot connect to there:9092 (after 30 s of retries)"


Ask = Callable[[str], object]


def ask_admin(address: str) -> object:
    with moldau.Admin(address, default_api_timeout_ms=150) as admin:
        return admin.list_topics()


def ask_producer(address: str) -> object:
    with moldau.Producer(address, max_block_ms=150) as producer:
        return producer.send("rivers", b"")


def ask_consumer(address: str) -> object:
    with moldau.Consumer(address, group_id="x", default_api_timeout_ms=150) as consumer:
        consumer.subscribe("rivers")
        return consumer.poll(10_000)


def ask_with_asyncio(address: str) -> object:
    async def ask() -> object:
        async with moldau.aio.Admin(address, default_api_timeout_ms=150) as admin:
            return await admin.list_topics()

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [ask_admin, ask_producer, ask_consumer, ask_with_asyncio])
def test_a_call_without_a_broker_fails_with_address_and_reason(ask: Ask) -> None:
    with pytest.raises(KafkaError, match=r"cannot connect to localhost:1: .*refused"):
        ask("localhost:1")


async def list_topics() -> None:
    async with moldau.aio.Admin("localhost:1") as admin:
        await admin.list_topics()


async def send() -> None:
    async with moldau.aio.Producer("localhost:1") as producer:
        await producer.send("rivers", b"")


async def poll() -> None:
    async with moldau.aio.Consumer("localhost:1", group_id="x") as consumer:
        consumer.subscribe("rivers")
        await consumer.poll(60_000)


@pytest.mark.parametrize("call", [list_topics, send, poll])
def test_a_call_without_a_broker_warns_while_it_goes_on(
    call: Callable[[], Coroutine[None, None, None]], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryLog, "UNREACHABLE_S", 0.0)
    monkeypatch.setattr(RetryLog, "no_answer", lambda log, address: None)

    async def begin() -> None:
        calling = asyncio.create_task(call())
        while not any("cannot connect to localhost:1: " in message for message in caplog.messages):
            await asyncio.sleep(0.01)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

    asyncio.run(within(begin()))
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_broker_that_does_not_answer_has_a_warning_while_it_is_dialled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryLog, "UNREACHABLE_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with moldau.Admin(address, default_api_timeout_ms=1, socket_connection_setup_timeout_ms=150) as admin:
            with pytest.raises(KafkaError, match=f"{address} did not answer within 150 ms"):
                admin.list_topics()
    assert f"moldau-admin: {address} does not answer; connecting goes on" in caplog.messages
