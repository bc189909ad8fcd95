"""What became of a record: results, callbacks, and failures that nobody asked for."""

import asyncio
import gc
import threading
from typing import Any

import numpy
import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau.client.administration.admin import Admin
from moldau.client.producing.delivery import Delivered, OnDelivery
from moldau.client.producing.interceptors import ProducerInterceptor
from moldau.client.producing.producer import AsyncProducer, Producer
from moldau.errors import MessageTooLarge, NotDelivered
from tests.client.producing.beside import paused, values

NOON_MS = 1_356_998_400_000


def test_a_callback_is_told_where_the_record_is_or_why_it_failed(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})
    told: list[tuple[object, object]] = []
    with Producer(bootstrap, batch_size=200) as producer:
        for size in (10, 5_000, 20):
            producer.send(topic, b"x" * size, timestamp_ms=NOON_MS, on_delivery=lambda *outcome: told.append(outcome))
    assert [where for _, where in told if where] == [
        Delivered(topic, 0, 0, NOON_MS),
        Delivered(topic, 0, 1, NOON_MS),
    ]
    assert [type(error) for error, where in told if where is None] == [MessageTooLarge]


def test_callbacks_follow_their_records_when_a_batch_is_split(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})
    told: dict[int, object] = {}

    def note(number: int) -> OnDelivery:
        return lambda error, where: told.update({number: error or (where and where.offset)})

    with Producer(bootstrap, linger_ms=60_000) as producer:
        for number in range(100):
            producer.send(topic, b"%0100d" % number, on_delivery=note(number))
    assert told == {number: number for number in range(100)}


def test_what_a_callback_raises_is_logged_and_the_next_one_runs(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[object] = []
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x", on_delivery=lambda error, where: 1 / 0)  # type: ignore[arg-type]
        producer.send(topic, b"x", on_delivery=lambda error, where: told.append(where))
    assert len(told) == 1
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
def test_a_callback_that_exits_ends_neither_the_producer_nor_the_callbacks_behind_it(
    bootstrap: str, topic: str, raised: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[object] = []

    def exits(*_: object) -> None:
        raise raised

    class Exits(ProducerInterceptor):
        def on_acknowledgement(self, *_: object) -> None:
            raise raised

    with Producer(bootstrap, linger_ms=60_000, interceptors=[Exits()]) as producer:
        producer.send(topic, b"x", on_delivery=exits)
        producer.send(topic, b"x", on_delivery=lambda error, where: told.append(where)).add_done_callback(exits)
        producer.flush(stretched(30))
        last = producer.send(topic, b"x")
        producer.flush(stretched(30))
        assert last.result(0).offset == 2
    assert len(told) == 1
    assert caplog.text.count("raised\nTraceback") == 5


def test_a_callback_that_exits_ends_the_loop_of_the_main_thread_after_the_other_callbacks(
    bootstrap: str, topic: str
) -> None:
    told: list[object] = []

    def exits(*_: object) -> None:
        raise SystemExit(3)

    async def main() -> None:
        async with AsyncProducer(bootstrap) as producer:
            await producer.send(topic, b"x", on_delivery=exits)
            await producer.send(topic, b"x", on_delivery=lambda error, where: told.append(where))
            await producer.flush()
            await asyncio.Event().wait()

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert len(told) == 1


async def _awaited(*_: object) -> None: ...


@pytest.mark.parametrize(("callback", "sentence"), [(3, "is int, not a function"), (_awaited, "is not awaited")])
def test_a_callback_that_cannot_be_called_is_refused_by_send(
    bootstrap: str, topic: str, callback: Any, sentence: str
) -> None:
    async def main() -> None:
        async with AsyncProducer(bootstrap) as producer:
            with pytest.raises(TypeError, match=sentence):
                await producer.send(topic, b"x", on_delivery=callback)

    asyncio.run(main())
    with Producer(bootstrap) as producer:
        with pytest.raises(TypeError, match=sentence):
            producer.send(topic, b"x", on_delivery=callback)
        with pytest.raises(TypeError, match=sentence):
            producer.send(topic, b"x").add_done_callback(callback)


def test_a_result_that_is_not_there_in_time_is_told_in_a_sentence(broker: Broker, topic: str) -> None:
    with Producer(broker.address) as producer:
        producer.send(topic, b"x").result()
        with paused(broker):
            with pytest.raises(TimeoutError, match=r"the record was not acknowledged within 0\.01 s"):
                producer.send(topic, b"x").result(timeout_ms=10)


def test_a_delivery_has_the_brokers_time_if_the_topic_says_so(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    with Producer(bootstrap) as producer:
        assert producer.send(topic, b"x", timestamp_ms=NOON_MS).result(stretched(10)).timestamp_ms > NOON_MS


def test_a_with_statement_raises_a_failure_that_nobody_asked_for(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})

    def run() -> None:
        with Producer(bootstrap, batch_size=200) as producer:
            for size in (10, 5_000, 5_000, 20):
                producer.send(topic, b"x" * size)

    with pytest.raises(NotDelivered, match=r"2 records were not delivered: ") as raised:
        run()
    assert isinstance(raised.value.first, MessageTooLarge)
    assert len(values(bootstrap, topic)) == 2


@pytest.mark.parametrize("look", ["result", "exception", "add_done_callback", "on_delivery"])
def test_a_failure_that_somebody_has_seen_is_not_raised_again(bootstrap: str, topic: str, look: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})
    seen: list[object] = []
    with Producer(bootstrap) as producer:
        on_delivery = (lambda error, where: seen.append(error)) if look == "on_delivery" else None
        delivery = producer.send(topic, b"x" * 5_000, on_delivery=on_delivery)
        if look == "result":
            with pytest.raises(MessageTooLarge):
                delivery.result(stretched(10))
        elif look == "exception":
            assert isinstance(delivery.exception(stretched(10)), MessageTooLarge)
        elif look == "add_done_callback":
            delivery.add_done_callback(lambda done: seen.append(done.exception(0)))
    if look in ("on_delivery", "add_done_callback"):
        assert [type(one) for one in seen] == [MessageTooLarge]


def test_an_async_with_statement_raises_a_failure_that_nobody_asked_for(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})

    async def run(looked: bool) -> None:
        async with AsyncProducer(bootstrap) as producer:
            delivery = await producer.send(topic, b"x" * 5_000)
            if looked:
                with pytest.raises(MessageTooLarge):
                    await delivery

    asyncio.run(run(looked=True))
    with pytest.raises(NotDelivered, match="1 record was not delivered"):
        asyncio.run(run(looked=False))


def test_an_exception_in_a_with_statement_is_not_replaced_and_what_was_sent_arrives(bootstrap: str, topic: str) -> None:
    def run() -> None:
        with Producer(bootstrap, linger_ms=60_000) as producer:
            producer.send(topic, b"sent before")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert values(bootstrap, topic) == [b"sent before"]


def test_a_flush_that_takes_too_long_says_how_many_records_are_left(broker: Broker, topic: str) -> None:
    with Producer(broker.address) as producer:
        producer.send(topic, b"before").result(stretched(10))
        with paused(broker):
            late = producer.send(topic, b"late")
            with pytest.raises(TimeoutError, match=r"after 0\.1 s 1 records were not acknowledged"):
                producer.flush(0.1)
        assert late.result(stretched()).offset == 1


@pytest.mark.parametrize("way", ["close", "flush", "await"])
def test_a_failure_after_a_wait_that_was_given_up_is_not_reported_as_never_retrieved(
    broker: Broker, topic: str, way: str
) -> None:
    """asyncio would log "Future exception was never retrieved" for each batch."""

    async def give_up() -> None:
        producer = AsyncProducer(broker.address)
        await producer.start()
        await (await producer.send(topic, b"before"))
        with paused(broker):
            late = await producer.send(topic, b"late", on_delivery=lambda *_: None)  # a log would keep the failure
            if way != "close":
                with pytest.raises(TimeoutError):
                    await (producer.flush(0.01) if way == "flush" else asyncio.wait_for(late, 0.01))
            await producer.close(0)
        assert late.exception(0)

    async def run() -> list[str]:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
        await give_up()
        for _ in range(3):  # futures of asyncio hear of it in the loop's next turns
            await asyncio.sleep(0)
        gc.collect()
        return reported

    assert asyncio.run(run()) == []


def test_representations_say_what_a_delivery_and_a_producer_are(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap, linger_ms=60_000, client_id="shop") as producer:
        delivery = producer.send(topic, b"x", timestamp_ms=NOON_MS)
        assert repr(delivery) == f"<Delivery topic='{topic}', partition=0, waiting>"
        assert repr(producer) == f"<moldau.Producer 'shop' at {bootstrap}, 1 record waiting>"
    assert repr(delivery) == f"<Delivery topic='{topic}', partition=0, offset=0, timestamp_ms={NOON_MS}>"
    assert repr(producer) == f"<moldau.Producer 'shop' at {bootstrap}, closed>"


def test_a_result_is_refused_at_once_in_the_thread_that_delivers(bootstrap: str, topic: str) -> None:
    refused: list[str] = []

    def wait_for(delivery: Any) -> None:
        for timeout_s in (None, stretched()):
            with pytest.raises(RuntimeError, match="this thread delivers the record") as told:
                delivery.result(timeout_s)
            refused.append(str(told.value))

    async def use() -> None:
        async with AsyncProducer(bootstrap, linger_ms=60_000) as producer:
            sent: list[Any] = [await producer.send(topic, b"x"), await producer.send_many(topic, [b"x", b"x"])]
            for delivery in sent:
                wait_for(delivery)
                with pytest.raises(TimeoutError):
                    delivery.result(0)

    asyncio.run(use())
    called_back = threading.Event()
    with Producer(bootstrap) as producer:

        def call_back(*_: object) -> None:
            wait_for(producer.send(topic, b"y"))
            called_back.set()

        producer.send(topic, b"x", on_delivery=call_back)
        assert called_back.wait(stretched())
    assert (len(refused), len(values(bootstrap, topic))) == (6, 5)


def test_a_number_of_numpy_s_is_refused_by_its_type(bootstrap: str, topic: str) -> None:
    number = numpy.int64(0)
    with Producer(bootstrap) as producer:
        with pytest.raises(TypeError, match=r"^partition=np.int64\(0\) is int64, not int$"):
            producer.send(topic, b"x", partition=number)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^timestamp_ms=np.int64\(0\) is int64, not int: ms since 1970$"):
            producer.send(topic, b"x", timestamp_ms=number)  # type: ignore[arg-type]


def test_a_coroutine_may_wait_for_the_result_of_a_synchronous_producer(bootstrap: str, topic: str) -> None:
    async def use() -> int:
        with Producer(bootstrap) as producer:
            return producer.send(topic, b"x").result().offset

    assert asyncio.run(use()) == 0
