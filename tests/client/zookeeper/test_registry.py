"""What a client knows of the registry, in virtual time: brokers and partitions that come, and a ZooKeeper that goes."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.client.zookeeper.registry import Registry
from moldau.client.zookeeper.sessions import Sessions
from moldau.errors import ClientClosed, ConfigError, KafkaError, StorageError
from moldau.metadata_store import opening
from moldau.metadata_store.store import Create, MetadataStore, Set
from moldau.peers.address import Address
from moldau.simulation.world import World
from moldau.simulation.zookeeper import ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession

NO_ANSWER = StorageError("ZooKeeper at zk:2181 did not answer within 6 s")


def broker(port: int) -> bytes:
    return json.dumps({"endpoints": [f"PLAINTEXT://host:{port}"]}).encode()


def topic(partitions: int) -> bytes:
    return json.dumps({"version": 1, "partitions": {str(number): [1] for number in range(partitions)}}).encode()


class Story:
    """A ZooKeeper with one broker and a topic of one partition, and a client that follows it."""

    def __init__(self) -> None:
        self.zookeeper = ModelZooKeeper()
        self.other = ModelSession(self.zookeeper)
        self.opened: list[ModelSession] = []
        self.refusal: Exception | None = None
        self.sessions = Sessions(self._open, "zk:2181")
        self.registry = Registry(self.sessions, "PLAINTEXT")

    async def _open(self) -> MetadataStore:
        await asyncio.sleep(0.1)
        if self.refusal is not None:
            raise self.refusal
        self.opened.append(ModelSession(self.zookeeper, 6.0))
        return self.opened[-1]

    async def begin(self) -> None:
        paths = ["/brokers", "/brokers/ids", "/brokers/topics"]
        await self.other.multi([*map(Create, paths), Create("/brokers/topics/t", topic(1))])
        await self.other.multi([Create("/brokers/ids/1", broker(1))])


def play(scenario: Callable[[Story], Awaitable[None]]) -> None:
    async def whole(_: World) -> None:
        story = Story()
        await story.begin()
        await scenario(story)
        await story.registry.close()
        assert all(session.link.is_over for session in story.opened), "sessions are left behind"

    World(0).run(whole)


def test_brokers_and_partitions_are_known_as_soon_as_they_are_registered() -> None:
    async def scenario(story: Story) -> None:
        changes: list[int] = []
        assert await story.registry.addresses() == [Address("host", 1)]
        story.registry.follow("t", 1, lambda: changes.append(story.registry.partitions("t")))
        await asyncio.sleep(1)
        assert changes == [], "it has the number of partitions that the client knows"
        await story.other.multi([Create("/brokers/ids/2", broker(2)), Set("/brokers/topics/t", topic(3))])
        await asyncio.sleep(1)
        assert await story.registry.addresses() == [Address("host", 1), Address("host", 2)]
        assert changes == [3]
        assert len(story.opened) == 1

    play(scenario)


@pytest.mark.parametrize("refusal", [NO_ANSWER, ConfigError("the certificate cannot be read")])
def test_what_is_known_stays_known_while_there_is_no_session_and_is_looked_at_again(refusal: Exception) -> None:
    async def scenario(story: Story) -> None:
        changes: list[int] = []
        await story.registry.addresses()
        story.registry.follow("t", 1, lambda: changes.append(story.registry.partitions("t")))
        await asyncio.sleep(1)
        story.zookeeper.cut(story.opened[0].link)
        story.refusal = refusal
        await story.other.multi([Create("/brokers/ids/2", broker(2)), Set("/brokers/topics/t", topic(2))])
        await asyncio.sleep(30)
        assert await story.registry.addresses() == [Address("host", 1)]
        story.refusal = None
        await asyncio.sleep(3)
        assert await story.registry.addresses() == [Address("host", 1), Address("host", 2)]
        assert changes == [2]
        assert len(story.opened) == 2

    play(scenario)


def test_without_an_answer_or_a_broker_there_is_an_error_that_may_be_tried_again() -> None:
    async def scenario(story: Story) -> None:
        story.refusal = NO_ANSWER
        with pytest.raises(KafkaError, match="did not answer within 6 s") as silent:
            await story.registry.addresses()
        story.refusal = None
        other = Registry(story.sessions, "SSL")
        with pytest.raises(KafkaError, match="no broker with a listener for SSL is registered") as missing:
            await other.addresses()
        assert silent.value.retriable and missing.value.retriable
        await other.close()

    play(scenario)


def test_callers_share_a_session_until_it_is_dropped() -> None:
    async def scenario(story: Story) -> None:
        first, same = await asyncio.gather(story.sessions.current(), story.sessions.current())
        assert first is same and len(story.opened) == 1
        story.sessions.drop(story.other)  # type: ignore[arg-type]
        assert await story.sessions.current() is first
        story.sessions.drop(first)
        assert await story.sessions.current() is not first
        await story.sessions.close()
        with pytest.raises(ClientClosed):
            await story.sessions.current()

    play(scenario)


def test_without_kazoo_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    assert opening.access_in("file:/tmp/metadata") is None
    with pytest.raises(ConfigError, match=r"needs kazoo: install it with `pip install 'moldau\[cluster\]'`"):
        opening.access_in("localhost:2181")


def test_what_would_protect_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="given without zookeeper_ssl_client_enable, and would protect nothing"):
        Consumer(zookeeper_connect="localhost:2181", zookeeper_ssl_truststore_location="ca.pem")
    with pytest.raises(ConfigError, match="a file has neither"):
        Consumer(zookeeper_connect="file:/tmp/metadata", zookeeper_ssl_client_enable=True)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        Producer(
            zookeeper_connect="localhost:2181",
            zookeeper_ssl_client_enable=True,
            zookeeper_ssl_truststore_location="/nowhere/ca.pem",
        )
