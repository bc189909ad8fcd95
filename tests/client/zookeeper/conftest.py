"""A broker whose metadata are in a file that takes ZooKeeper's place, and what is in its nodes."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.brokers import Broker
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.metadata_store.opening import session_in
from moldau.metadata_store.store import MetadataStore, NodeOperation, children_of, node_at
from moldau.runtime import Runtime

T = TypeVar("T")


class Registry:
    """The nodes of one `zookeeper.connect`, as text."""

    def __init__(self, connect: str):
        self.connect = connect

    def _in_session(self, work: Callable[[MetadataStore], Coroutine[Any, Any, T]]) -> T:
        async def whole() -> T:
            session = await session_in(self.connect, 6, Runtime())
            try:
                return await work(session)
            finally:
                await session.close()

        return asyncio.run(whole())

    def text(self, path: str) -> str | None:
        async def read(session: MetadataStore) -> str | None:
            node = await session.read(node_at(path))
            return None if node is None else node.data.decode()

        return self._in_session(read)

    def children(self, path: str) -> dict[str, str | None]:
        async def read(session: MetadataStore) -> list[str]:
            return await session.read(children_of(path))

        return {name: self.text(f"{path}/{name}") for name in self._in_session(read)}

    def write(self, operations: Sequence[NodeOperation]) -> None:
        async def multi(session: MetadataStore) -> None:
            await session.multi(operations)

        self._in_session(multi)


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("registry")
    return f"file:{folder / 'metadata'}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, connect: str) -> Iterator[Broker]:
    settings = {"broker.id": "1", "zookeeper.connect": connect, "num.partitions": "1"}
    ours = Broker(tmp_path_factory.mktemp("broker"), settings)
    ours.start()
    yield ours
    ours.stop()


@pytest.fixture
def registry(connect: str, broker: Broker) -> Registry:
    return Registry(connect)


@pytest.fixture
def filled(broker: Broker, topic: str) -> str:
    """A topic of four partitions with ten records each."""
    fill(broker.address, topic, 4)
    return topic


def fill(bootstrap: str, topic: str, partitions: int, first: int = 0) -> None:
    if not first:
        with Admin(bootstrap) as admin:
            admin.create_topic(topic, partitions=partitions)
    with Producer(bootstrap) as producer:
        for number in range(first * partitions, (first + 10) * partitions):
            producer.send(topic, b"%d" % number, partition=number % partitions)
