"""The topic of the schemas on a real broker: created, written, read again, and refused where it would lose schemas."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from harness.patience import stretched, wait_until
from moldau import Admin, Producer
from moldau.errors import ConfigError
from moldau.registry.decisions import Writes
from moldau.registry.refusals import Refused
from moldau.registry.server import RegistryServer, RegistrySettings
from moldau.registry.state import RegistryState
from moldau.registry.topic import SchemasTopic, SchemasTopicSettings
from moldau.registry.topic_records import RecordKey
from moldau.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


def served(broker: Broker, topic: str, work: Callable[[str], Any]) -> Any:
    """Run a registry, and the work in a thread beside it, with its address."""

    async def run() -> Any:
        server = RegistryServer(broker.address, RegistrySettings("127.0.0.1", 0, SchemasTopicSettings(topic)))
        await server.start()
        try:
            return await asyncio.to_thread(work, server.addresses[0])
        finally:
            await server.stop()

    return asyncio.run(run())


def ask(url: str, method: str = "GET", body: Any = None) -> Any:
    request = Request(url, None if body is None else json.dumps(body).encode(), method=method)
    with urlopen(request, timeout=stretched(20)) as answer:
        return json.loads(answer.read())


def opened(broker: Broker, topic: str, work: Callable[[SchemasTopic, RegistryState], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        state = RegistryState()
        schemas = SchemasTopic(state, broker.address, SchemasTopicSettings(topic))
        try:
            await schemas.start()
            return await work(schemas, state)
        finally:
            await schemas.close()

    return asyncio.run(run())


def test_schemas_outlive_the_registry(broker: Broker) -> None:
    def first(url: str) -> None:
        assert ask(f"{url}/subjects/s/versions", "POST", {"schema": '"int"'}) == {"id": 1}
        assert ask(f"{url}/config", "PUT", {"compatibility": "FULL"}) == {"compatibility": "FULL"}

    def second(url: str) -> None:
        assert ask(f"{url}/schemas/ids/1") == {"schema": '"int"'}
        assert ask(f"{url}/config") == {"compatibilityLevel": "FULL"}
        assert ask(f"{url}/subjects/t/versions", "POST", {"schema": '"long"'}) == {"id": 2}

    served(broker, "outlives", first)
    served(broker, "outlives", second)
    with Admin(broker.address) as admin:
        settings = {one.name: one.value for one in admin.topic_configs("outlives")}
        assert settings["cleanup.policy"] == "compact"


def test_a_bad_record_is_skipped_and_reported(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.create_topic("poisoned", 1, cleanup_policy="compact")
    with Producer(broker.address) as producer:
        producer.send("poisoned", b"\xff", b"not a key")
        producer.send("poisoned", b"{", b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}')

    def work(url: str) -> None:
        assert ask(f"{url}/subjects") == []
        assert ask(f"{url}/subjects/s/versions", "POST", {"schema": '"int"'}) == {"id": 1}

    served(broker, "poisoned", work)
    assert sum("is skipped" in record.message for record in caplog.records) == 2


@pytest.mark.parametrize(("settings", "word"), [((2, "compact"), "partitions"), ((1, "delete"), "cleanup.policy")])
def test_a_topic_that_would_lose_schemas_is_refused(broker: Broker, settings: tuple[int, str], word: str) -> None:
    partitions, policy = settings
    broker.create_topic(f"refused-{word}", partitions, cleanup_policy=policy)

    async def nothing(schemas: SchemasTopic, state: RegistryState) -> None:
        pass

    with pytest.raises(ConfigError, match=word):
        opened(broker, f"refused-{word}", nothing)


def test_a_writer_that_was_replaced_is_fenced_and_can_come_back(broker: Broker) -> None:
    key = RecordKey("CONFIG", "s")

    async def work(old: SchemasTopic, state: RegistryState) -> None:
        other = RegistryState()
        new = SchemasTopic(other, broker.address, SchemasTopicSettings("fenced"))
        await new.start()
        try:
            await old.write(lambda: Writes(None, [(key, {"compatibilityLevel": "FULL"})]))
            await new.write(lambda: Writes(None, [(key, {"compatibilityLevel": "NONE"})]))
            with pytest.raises(Refused) as refused:
                await old.write(lambda: Writes(None, [(key, {"compatibilityLevel": "BACKWARD"})]))
            assert refused.value.code == 50001
            assert other.configs["s"]["compatibilityLevel"] == "NONE"
            # It takes over again, and has read what the other wrote before it decides.
            seen = []
            await old.write(lambda: seen.append(state.configs["s"]["compatibilityLevel"]) or Writes(None))  # type: ignore[func-returns-value]
            assert seen == ["NONE"]
        finally:
            await new.close()

    opened(broker, "fenced", work)


def test_a_new_writer_decides_only_when_it_has_read_all_that_the_one_before_wrote(broker: Broker) -> None:
    async def work(late: SchemasTopic, state: RegistryState) -> None:
        before = SchemasTopic(RegistryState(), broker.address, SchemasTopicSettings("late"))
        await before.start()
        try:
            assert late._reader is not None
            late._reader.cancel()
            await before.write(lambda: Writes(None, [(RecordKey("CONFIG", "s"), {"compatibilityLevel": "NONE"})]))
            seen: list[object] = []

            def decide() -> Writes:
                seen.append(state.configs.get("s"))
                return Writes(None)

            writing, end = asyncio.ensure_future(late.write(decide)), before._next_offset
            async with asyncio.timeout(stretched(20)):
                while before._next_offset == end:  # until it has written its NOOP
                    await asyncio.sleep(0.01)
            assert not seen
            late._reader = asyncio.ensure_future(late._read())
            await writing
            assert seen == [{"compatibilityLevel": "NONE"}]
        finally:
            await before.close()

    opened(broker, "late", work)


def test_a_schema_that_the_topic_cannot_hold_is_refused_and_the_next_one_is_not(broker: Broker) -> None:
    broker.create_topic("small", 1, cleanup_policy="compact", max_message_bytes=2_000)
    key = RecordKey("CONFIG", "s")

    async def work(schemas: SchemasTopic, state: RegistryState) -> None:
        with pytest.raises(Refused) as refused:
            await schemas.write(lambda: Writes(None, [(key, {"compatibilityGroup": "x" * 3_000})]))
        assert refused.value.code == 42209
        await schemas.write(lambda: Writes(None, [(key, {"compatibilityGroup": "x"})]))
        assert state.configs["s"] == {"compatibilityGroup": "x"}

    opened(broker, "small", work)


def test_a_change_that_takes_too_long_is_given_up(broker: Broker) -> None:
    async def run() -> None:
        schemas = SchemasTopic(RegistryState(), broker.address, SchemasTopicSettings("slow", timeout_ms=300))
        await schemas.start()
        try:
            with broker.fault("Produce", topic="slow", delay_ms=60_000):
                with pytest.raises(Refused) as refused:
                    await schemas.write(lambda: Writes(None, [(RecordKey("CONFIG", "s"), {})]))
                assert refused.value.code == 50002
        finally:
            await schemas.close()

    asyncio.run(run())


def test_a_start_does_not_wait_for_what_a_dead_writer_has_left_open(broker: Broker) -> None:
    key, value = b'{"keytype":"CONFIG","subject":"s","magic":0}', b'{"compatibilityLevel":"NONE"}'
    broker.create_topic("left-open", 1, cleanup_policy="compact")
    with Producer(broker.address, transactional_id="dead") as producer:
        producer.begin_transaction()
        producer.send("left-open", value, key).result()

        async def work(schemas: SchemasTopic, state: RegistryState) -> None:
            assert "s" not in state.configs

        opened(broker, "left-open", work)
        producer.abort_transaction()


def test_a_topic_that_is_deleted_is_made_anew_by_the_next_change_and_nothing_of_the_old_one_stays(
    broker: Broker,
) -> None:
    def work(url: str) -> Any:
        for number in (1, 2):
            schema = {"schema": json.dumps({"type": "fixed", "name": "F", "size": number})}
            assert ask(f"{url}/subjects/s{number}/versions", "POST", schema) == {"id": number}
        with Admin(broker.address) as admin:
            admin.delete_topic("anew")
        assert wait_until(lambda: registered(url))
        assert ask(f"{url}/subjects") == ["t"]
        with Admin(broker.address) as admin:
            settings = {one.name: one.value for one in admin.topic_configs("anew")}
        assert settings["cleanup.policy"] == "compact"
        return registered(url)

    def registered(url: str) -> Any:
        """A producer may make the topic, or an offset show that it is another one: then the change is refused."""
        try:
            return ask(f"{url}/subjects/t/versions", "POST", {"schema": '"int"'})
        except HTTPError as refused:
            refused.close()
            return None

    given = served(broker, "anew", work)
    assert served(broker, "anew", registered) == given


def test_a_record_that_no_program_of_ours_expects_stops_nothing(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(state: RegistryState, key: RecordKey, *_: Any) -> None:
        if key.subject == "odd":
            raise ZeroDivisionError
        apply(state, key, *_)

    apply = RegistryState.apply
    monkeypatch.setattr(RegistryState, "apply", fault)
    broker.create_topic("odd", 1, cleanup_policy="compact")
    with Producer(broker.address) as producer:
        producer.send("odd", b"{}", b'{"keytype":"CONFIG","subject":"odd","magic":0}')

    def work(url: str) -> None:
        assert ask(f"{url}/subjects/s/versions", "POST", {"schema": '"int"'}) == {"id": 1}

    served(broker, "odd", work)
    assert any("is skipped: ZeroDivisionError()" in record.message for record in caplog.records)
