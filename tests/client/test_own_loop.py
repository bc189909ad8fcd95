"""A client of `moldau.aio` belongs to one event loop: elsewhere, or after that loop has closed, calls are refused."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from harness.patience import SECONDS, stretched, within
from moldau import TopicPartition, aio
from moldau.client.consuming.polling import Poller
from moldau.client.producing.sending import Sender
from moldau.errors import KafkaError, UnknownServerError, WrongLoop
from tests.client.test_faces import FACES, FOR_THE_SYNC_FACE
from tests.replacing import Instead, replaced

TP = TopicPartition("any", 0)
ARGUMENTS: dict[str, Any] = {
    **dict.fromkeys(("topic", "name", "group_id", "group"), "any"),
    **{name: {TP: 0} for name in ("offsets", "where", "times")},
    **dict.fromkeys(("offset", "index"), 0),
    "partitions": [TP],
    "tp": TP,
    "topics": ["any"],
    "value": b"x",
    "values": [b"x"],
    "table": [],
    "kind": "topic",
    "handler": print,
    "streams": {"any": 1},
    "part": slice(0, 1),
    "end": 1,
}
"""What a method is called with, by the names of its arguments; None for others."""
WITHOUT_WAITING = {"subscribe", "assign", "create_message_streams", "seek", "pause", "resume", "commit_async"}


def calls(face: type) -> list[str]:
    """The public methods that use the loop."""
    hidden = {name for names in FOR_THE_SYNC_FACE.values() for name in names}

    def uses(name: str) -> bool:
        method = getattr(face, name)
        return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(inspect.unwrap(method))

    public = [name for name in dir(face) if not name.startswith("_") and name not in hidden]
    return [name for name in public if uses(name) or name in WITHOUT_WAITING]


def arguments(method: Any) -> list[Any]:
    needed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [p for p in inspect.signature(method).parameters.values() if p.kind in needed and p.default is p.empty]
    return [ARGUMENTS.get(one.name) for one in given]


async def made(name: str, bootstrap: str) -> tuple[Any, Callable[[], Coroutine[Any, Any, None]]]:
    """An object of this class, started here, and what closes it."""
    kind, _, part = name.partition(".")
    client = getattr(aio, kind)(bootstrap, **({"group_id": "g"} if kind == "Consumer" else {}))
    await client.start()
    if part == "create_message_streams":
        return client.create_message_streams({"any": 1})["any"][0], client.close
    if part == "log":
        return client.log("any"), client.close
    if part == "transaction":
        return client.transaction(), client.close
    return (getattr(client, part) if part else client), client.close


async def used(one: Any, call: str) -> None:
    outcome = getattr(one, call)(*arguments(getattr(one, call)))
    if inspect.isawaitable(outcome):
        await outcome
    elif isinstance(outcome, AsyncIterator):
        await anext(outcome)


CASES = [(name, call) for name, (_, face) in FACES.items() for call in calls(face)]
CASES += [(name, "__aiter__") for name, (_, face) in FACES.items() if hasattr(face, "__aiter__")]


def test_each_class_of_the_asyncio_face_has_calls_to_be_refused() -> None:
    assert {name for name, _ in CASES} == FACES.keys()
    assert len(CASES) > 80


@pytest.mark.parametrize("name", FACES)
def test_every_call_on_another_loop_is_refused_at_once(name: str, bootstrap: str) -> None:
    async def scenario() -> None:
        one, close = await made(name, bootstrap)
        try:
            for call in [call for of, call in CASES if of == name]:
                failed = await within(asyncio.to_thread(failure_of, one, call))
                assert isinstance(failed, WrongLoop), f"{name}.{call}: {failed!r}"
                assert "another event loop runs here" in str(failed)
        finally:
            await within(close())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


@pytest.mark.parametrize("name", FACES)
def test_every_call_after_the_loop_has_closed_is_refused_at_once(name: str, bootstrap: str) -> None:
    one, close = asyncio.run(made_and_left(name, bootstrap))
    for call in [call for of, call in CASES if of == name]:
        failed = failure_of(one, call)
        assert isinstance(failed, WrongLoop), f"{name}.{call}: {failed!r}"
        assert "belongs to an event loop that is closed" in str(failed)
    with pytest.raises(WrongLoop):
        asyncio.run(close())


async def made_and_left(name: str, bootstrap: str) -> tuple[Any, Callable[[], Coroutine[Any, Any, None]]]:
    return await made(name, bootstrap)


def failure_of(one: Any, call: str) -> BaseException | None:
    try:
        asyncio.run(asyncio.wait_for(used(one, call), stretched()))
    except Exception as failed:
        return failed
    return None


def test_a_producer_goes_on_after_a_call_from_another_loop_was_refused(bootstrap: str, topic: str) -> None:
    async def scenario() -> int:
        async with aio.Producer(bootstrap) as producer:
            await producer.send(topic, b"before")
            with pytest.raises(WrongLoop):
                await asyncio.to_thread(lambda: asyncio.run(producer.send(topic, b"elsewhere")))
            return (await (await producer.send(topic, b"after"))).offset

    assert asyncio.run(within(scenario())) == 1


def test_a_delivery_may_be_awaited_on_any_loop(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        async with aio.Producer(bootstrap) as producer:
            delivery = await producer.send(topic, b"x")

            async def elsewhere() -> int:
                return (await delivery).offset

            assert await asyncio.to_thread(lambda: asyncio.run(elsewhere())) == 0

    asyncio.run(within(scenario()))


def test_a_delivery_fails_when_the_loop_of_its_producer_ends(bootstrap: str, topic: str) -> None:
    async def leave() -> Any:
        producer = aio.Producer(bootstrap, linger_ms=3_600_000)
        await producer.start()
        return await producer.send(topic, b"x")

    async def awaited(delivery: Any) -> None:
        await delivery

    delivery = asyncio.run(leave())
    with pytest.raises(KafkaError, match="the event loop of the producer ended"):
        asyncio.run(within(awaited(delivery)))


def test_after_a_fault_of_its_own_a_producer_pauses(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[None] = []

    def broken(pump: Any, sender: Sender, now_s: float) -> Any:
        if not sender._accumulator.records:
            return pump(sender, now_s)
        rounds.append(None)
        raise LookupError("broken")

    async def scenario() -> None:
        async with aio.Producer(bootstrap) as producer:
            delivery = await producer.send(topic, b"x")
            with pytest.raises(UnknownServerError, match="a fault of its own"):
                await delivery
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(rounds) == 1

    monkeypatch.setattr("moldau.client.producing.sending.AFTER_FAULT_S", 3600.0)
    with replaced([Instead("moldau.client.producing.sending:Sender._pump", broken)]):
        asyncio.run(within(scenario()))


@pytest.mark.parametrize("broken", ["connecting", "requesting a producer id"])
def test_a_fault_in_the_background_of_a_producer_fails_its_records(bootstrap: str, topic: str, broken: str) -> None:
    async def fails(_: Any, *__: Any) -> None:
        raise LookupError("broken")

    name = {"connecting": "_connect", "requesting a producer id": "_introduce"}[broken]

    async def scenario() -> None:
        async with aio.Producer(bootstrap) as producer:
            delivery = await producer.send(topic, b"x")
            with pytest.raises(UnknownServerError, match=f"{broken}.*a fault of its own"):
                await delivery

    with replaced([Instead(f"moldau.client.producing.sending:Sender.{name}", lambda _, *given: fails(*given))]):
        asyncio.run(within(scenario()))


@pytest.mark.parametrize("broken", ["_request", "_received"])
def test_a_poll_raises_a_fault_of_the_consumer_s_own(bootstrap: str, topic: str, broken: str) -> None:
    met: list[None] = []

    def fails(_: Any, poller: Poller, *__: Any) -> None:
        met.append(None)
        raise LookupError("broken")

    async def scenario() -> None:
        async with aio.Producer(bootstrap) as producer:
            await producer.send(topic, b"x")
        async with aio.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            with pytest.raises(UnknownServerError, match="the consumer met a fault of its own"):
                await consumer.poll(int(SECONDS * 1000))
            assert len(met) == 1

    with replaced([Instead(f"moldau.client.consuming.polling:Poller.{broken}", fails)]):
        asyncio.run(within(scenario()))


@pytest.mark.parametrize(
    ("settings", "broken"),
    [
        ({"group_protocol": "consumer"}, "consumer_membership:ConsumerMembership._heartbeat"),
        ({"heartbeat_interval_ms": 1}, "classic_membership:HeartbeatRequest"),
    ],
)
def test_a_poll_raises_a_fault_of_the_member_s_own(
    bootstrap: str, topic: str, group: str, settings: dict[str, Any], broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise LookupError("broken")

    async def scenario() -> None:
        async with aio.Admin(bootstrap) as admin:
            await admin.create_topic(topic)
        async with aio.Consumer(bootstrap, group_id=group, **settings) as consumer:
            consumer.subscribe(topic)
            with pytest.raises(UnknownServerError, match="the member met a fault of its own"):
                await anext(aiter(consumer))

    with caplog.at_level(logging.CRITICAL), replaced([Instead(f"moldau.client.consuming.groups.{broken}", fails)]):
        asyncio.run(within(scenario()))
