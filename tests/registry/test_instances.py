"""Several instances on one topic: one writes, the others forward, and whoever is killed in the middle of a change takes
nothing along: one id for one schema, none lost, none doubled."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from harness.patience import stretched
from harness.tiers import sized
from moldau import Consumer, TopicPartition
from moldau.client.administration.admin import AsyncAdmin
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.errors import ErrorCode, KafkaError
from moldau.registry.api import RegistryApi
from moldau.registry.asgi import RegistryApp
from moldau.registry.forwarding import WriterRoute, _ask
from moldau.registry.http_messages import RestRequest
from moldau.registry.server import RegistryServer, RegistrySettings
from moldau.registry.state import RegistryState
from moldau.registry.topic import SchemasTopic, SchemasTopicSettings
from moldau.registry.topic_records import StoredVersion, read_key, read_value
from moldau.testing import Broker
from tests.registry.asking import asked

KILLS = sized(5, 20, 200)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(group_initial_rebalance_delay_ms=0) as made:
        yield made


def ask(url: str, method: str = "GET", body: Any = None) -> Any:
    request = Request(url, None if body is None else json.dumps(body).encode(), method=method)
    try:
        with urlopen(request, timeout=stretched(20)) as answer:
            return json.loads(answer.read())
    except HTTPError as refused:
        with refused:
            return json.loads(refused.read())


async def until(url: str, body: Any, path: str) -> Any:
    """Ask until the instance knows its writer."""
    async with asyncio.timeout(stretched(30)):
        while "id" not in (answer := await asyncio.to_thread(ask, f"{url}{path}", "POST", body)):
            await asyncio.sleep(0.05)
        return answer


@asynccontextmanager
async def serving(broker: Broker, topic: str) -> AsyncIterator[RegistryServer]:
    server = RegistryServer(broker.address, RegistrySettings("127.0.0.1", 0, SchemasTopicSettings(topic)))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def test_a_change_is_forwarded_to_the_writer_and_the_next_one_takes_over(broker: Broker) -> None:
    async def run() -> None:
        async with serving(broker, "two") as second:
            async with serving(broker, "two") as first:
                urls = [server.addresses[0] for server in (first, second)]
                for number, url in enumerate(urls * 2, 1):
                    body = {"schema": json.dumps({"type": "fixed", "name": "F", "size": number})}
                    assert await until(url, body, f"/subjects/s{number}/versions") == {"id": number}
                async with asyncio.timeout(stretched(30)):  # until one is the writer, and the other knows it
                    while [await server._election.writer() for server in (first, second)].count("") != 1:
                        await asyncio.sleep(0.05)
            body = {"schema": '"string"'}
            assert await until(second.addresses[0], body, "/subjects/after/versions") == {"id": 5}
            assert len(await asyncio.to_thread(ask, f"{second.addresses[0]}/subjects")) == 5

    asyncio.run(run())


def test_what_one_instance_has_answered_every_other_one_finds(broker: Broker) -> None:
    """Also if its reader has not come so far: what is not found is looked for in the topic before that is said."""

    async def run() -> None:
        async with serving(broker, "found") as one, serving(broker, "found") as other:
            urls = [server.addresses[0] for server in (one, other)]
            for number in range(10):
                url, elsewhere = urls[number % 2], urls[1 - number % 2]
                body = {"schema": json.dumps({"type": "fixed", "name": "F", "size": number + 1})}
                given = (await until(url, body, f"/subjects/s{number}/versions"))["id"]
                found = await asyncio.to_thread(ask, f"{elsewhere}/schemas/ids/{given}")
                assert found == {"schema": found.get("schema")}, found
                assert "id" in await asyncio.to_thread(ask, f"{url}/subjects/s{number}", "POST", body)

    asyncio.run(run())


def test_a_path_with_bytes_that_are_not_ascii_is_forwarded(broker: Broker) -> None:
    """As curl sends it."""
    path = "/subjects/größe/versions".encode().decode("latin-1")
    request = RestRequest("POST", (), {}, {}, b'{"schema":"\\"int\\""}', path)

    async def run() -> None:
        async with serving(broker, "bytes") as server:
            [url] = server.addresses
            assert (await asyncio.to_thread(_ask, url, request, stretched(20), None)).status == 200
            assert await asyncio.to_thread(ask, f"{url}/subjects") == ["größe"]

    asyncio.run(run())


def test_a_miss_costs_one_question_however_many_ask(broker: Broker) -> None:
    async def run() -> None:
        instance = Instance(broker, "missed")
        await instance.topic.start()
        asked_ends = 0
        end = instance.topic._end

        async def counted(consumer: Any) -> int:
            nonlocal asked_ends
            asked_ends += 1
            return await end(consumer)

        instance.topic._end = counted  # type: ignore[method-assign]
        try:
            answers = await asyncio.gather(*(asked(instance.app, "GET", "/schemas/ids/9", b"", {}) for _ in range(50)))
            assert {one.tree["error_code"] for one in answers} == {40403}
            assert asked_ends <= 3, "one that is under way, and one for all who came meanwhile"
        finally:
            await instance.topic.close()

    asyncio.run(run())


@pytest.mark.parametrize("writer", ["http://127.0.0.1:1", "http://127.0.0.1:port"])
def test_a_request_is_forwarded_once_and_refused_if_the_writer_cannot_be_asked(writer: str) -> None:
    class Elsewhere:
        async def writer(self) -> str:
            return writer

        def doubt(self) -> None:
            pass

    state = RegistryState()
    route = WriterRoute(SchemasTopic(state, "127.0.0.1:1", SchemasTopicSettings()), Elsewhere(), 5)
    app = RegistryApp(RegistryApi(state), route)
    body = b'{"schema": "\\"int\\""}'
    codes = [
        asyncio.run(asked(app, "POST", "/subjects/s/versions", body, headers)).tree["error_code"]
        for headers in ({}, {"X_Forward": "true"})
    ]
    assert codes == [50003, 50004]


def test_a_start_that_fails_leaves_no_client_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []

    async def done(one: object) -> None: ...

    async def refused_start(_: object) -> None:
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    async def close(one: object) -> None:
        closed.append(type(one))

    monkeypatch.setattr(SchemasTopic, "start", done)
    for client, start in ((AsyncAdmin, done), (AsyncConsumer, refused_start)):
        monkeypatch.setattr(client, "start", start)
        monkeypatch.setattr(client, "close", close)
    server = RegistryServer("127.0.0.1:1", RegistrySettings(port=0))
    with pytest.raises(KafkaError):
        asyncio.run(server.start())
    assert closed == [AsyncConsumer, AsyncAdmin]


class NobodyElected:
    """Each instance believes that it should write: the broker alone keeps them apart."""

    async def writer(self) -> str:
        return ""

    def doubt(self) -> None:
        pass


class Instance:
    """An instance without a socket."""

    def __init__(self, broker: Broker, topic: str):
        self.state = RegistryState()
        self.topic = SchemasTopic(self.state, broker.address, SchemasTopicSettings(topic, timeout_ms=5_000))
        self.app = RegistryApp(RegistryApi(self.state), WriterRoute(self.topic, NobodyElected(), 5))

    async def register(self, subject: str, schema: dict[str, Any]) -> int | None:
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        answer = await asked(self.app, "POST", f"/subjects/{subject}/versions", body, {})
        return answer.tree.get("id")


def test_whoever_is_killed_while_it_writes_one_schema_has_one_id(broker: Broker) -> None:
    chance = random.Random(7)
    answered: list[tuple[str, int, int]] = []

    async def run() -> None:
        instances = [Instance(broker, "killed"), Instance(broker, "killed")]
        for one in instances:
            await one.topic.start()
        for number in range(KILLS):
            # The same new schema is asked of both; one of them is killed in the middle.
            schema = {"type": "fixed", "name": "F", "size": chance.randrange(number + 1) if number % 3 == 0 else number}
            api = chance.choice(["Produce", "EndTxn", "AddPartitionsToTxn", "InitProducerId"])
            with broker.fault(api, drop=chance.choice(["before", "after"]), times=1) if number % 2 else nullcontext():
                tasks = [asyncio.ensure_future(one.register(f"s{number}", schema)) for one in instances]
                await asyncio.sleep(chance.random() * 0.03)
                victim = chance.randrange(2)
                tasks[victim].cancel()
                found = await asyncio.gather(*tasks, return_exceptions=True)
            answered.extend((f"s{number}", schema["size"], one) for one in found if isinstance(one, int))
            # A process that was killed closes nothing: its producer is simply gone.
            await instances[victim].topic.close()
            instances[victim] = Instance(broker, "killed")
            await instances[victim].topic.start()
            while (last := await instances[1 - victim].register(f"s{number}", schema)) is None:
                pass
            answered.append((f"s{number}", schema["size"], last))
        for one in instances:
            await one.topic.close()

    asyncio.run(run())
    assert len(answered) >= KILLS
    check_one_id(broker, "killed", answered)


def check_one_id(broker: Broker, topic: str, answered: list[tuple[str, int, int]]) -> None:
    """Each answer (subject, size, id) is in the topic, once; one schema has one id, and one id one schema."""
    versions = read_all(broker, topic)
    ids: dict[int, int] = {}
    for subject, size, given in answered:
        assert ids.setdefault(size, given) == given, "one schema has two ids"
        stored = [one for one in versions if one.subject == subject and one.id == given]
        assert len({one.version for one in stored}) == 1, "an answered schema is lost, or has two versions"
        assert json.loads(stored[0].content.schema.text)["size"] == size
    texts = {(one.id, one.content.schema.text) for one in versions}
    assert len({number for number, _ in texts}) == len({text for _, text in texts}) == len(texts)


def read_all(broker: Broker, topic: str) -> list[StoredVersion]:
    """What committed records say."""
    found: list[StoredVersion] = []
    with Consumer(broker.address, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        while records := consumer.poll(timeout_ms=1_000):
            for record in records:
                key = read_key(record.key)
                value = read_value(key, record.value, 0)
                if isinstance(value, StoredVersion):
                    found.append(value)
    return found
