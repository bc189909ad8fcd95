"""Both faces of our clients under one: a test written once runs with the synchronous and with the asyncio clients."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import moldau
from harness.patience import stretched
from moldau import TopicPartition, aio

SECONDS = 30.0


class Client:
    """A client whose methods are awaited, whichever face it is of: synchronous ones run in a thread."""

    def __init__(self, client: Any, threaded: bool):
        self.client = client
        self._threaded = threaded

    async def __aenter__(self) -> "Client":
        await (asyncio.to_thread(self.client.__enter__) if self._threaded else self.client.__aenter__())
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await (asyncio.to_thread(self.client.__exit__, *failure) if self._threaded else self.client.__aexit__(*failure))

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.client, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            if self._threaded:
                return await asyncio.to_thread(method, *arguments, **named)
            result = method(*arguments, **named)
            return await result if inspect.iscoroutine(result) else result

        return call


class Face:
    """Makes clients of one face. `name` is "sync" or "asyncio"."""

    def __init__(self, name: str, address: str):
        self.name = name
        self.address = address
        self._threaded = name == "sync"
        self._home: Any = moldau if self._threaded else aio

    def producer(self, **settings: Any) -> Client:
        return Client(self._home.Producer(self.address, **settings), self._threaded)

    def consumer(self, **settings: Any) -> Client:
        return Client(self._home.Consumer(self.address, **settings), self._threaded)

    def admin(self, **settings: Any) -> Client:
        return Client(self._home.Admin(self.address, **settings), self._threaded)

    async def outcome(self, delivery: Any) -> Any:
        """What became of a delivery. Raises its failure."""
        return await (asyncio.to_thread(delivery.result, stretched(SECONDS)) if self._threaded else delivery)


async def taken(consumer: Client, count: int) -> list[moldau.Record]:
    """The next `count` records at least; fewer when the patience is over."""
    loop = asyncio.get_running_loop()
    records: list[moldau.Record] = []
    deadline_s = loop.time() + stretched(SECONDS)
    while len(records) < count and loop.time() < deadline_s:
        records += await consumer.poll(200)
    return records


async def soon(holds: Callable[[], Awaitable[bool]]) -> bool:
    """Whether it holds before the patience is over."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + stretched(SECONDS)
    while not await holds():
        if loop.time() > deadline_s:
            return False
        await asyncio.sleep(0.05)
    return True


async def made(face: Face, topic: str, partitions: int = 1, **configs: object) -> list[TopicPartition]:
    """A topic, with these settings; returns its partitions."""
    async with face.admin() as admin:
        await admin.create_topic(
            topic, partitions=partitions, configs={n.replace("_", "."): v for n, v in configs.items()}
        )
    return [TopicPartition(topic, number) for number in range(partitions)]


async def filled(face: Face, topic: str, values: Iterable[bytes | None], **settings: Any) -> list[Any]:
    """Send these values to partition 0; returns what became of them."""
    async with face.producer(**settings) as producer:
        return [await producer.send(topic, value, partition=0) for value in values]
