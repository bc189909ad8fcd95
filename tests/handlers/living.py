"""A broker in this process, and raw requests to it over real sockets."""

import asyncio
import contextlib
import struct
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from harness.patience import stretched
from moldau.broker import Broker
from moldau.cluster.controlling.controller import NewTopic
from moldau.config import broker_config
from moldau.protocol import apis, codec
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import Row, encode_batch
from moldau.replication.replica import Replica
from moldau.requests.gate import Gate
from moldau.runtime import Runtime

NOW_MS = time.time_ns() // 1_000_000
"""As the brokers' clock has it: segments roll, and records are deleted, by their distance from this."""
SECONDS_MAX = 30


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader = reader
        self.writer = writer
        self._sent = 0

    def send(self, api: apis.Api, version: int, request: Any) -> int:
        """Returns the correlation id."""
        self._sent += 1
        self.writer.write(codec.write_request(api, version, self._sent, "test", request))
        return self._sent

    async def receive(self, api: apis.Api, version: int) -> tuple[int, Any]:
        """The next reply: its correlation id and message."""
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        return int.from_bytes(frame[:4], "big"), codec.read_reply(api, version, frame)

    async def ask(self, api: apis.Api, version: int, request: Any) -> Any:
        sent = self.send(api, version, request)
        correlation_id, response = await self.receive(api, version)
        assert correlation_id == sent
        return response

    async def is_closed(self) -> bool:
        """Whether the broker closes without another byte; waits for either."""
        try:
            return await self._reader.read(1) == b""
        except ConnectionResetError:
            return True


class Living:
    def __init__(self, broker: Broker):
        self.broker = broker
        self._wires: list[Wire] = []

    async def dial(self) -> Wire:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", self.broker.port))
        self._wires.append(wire)
        return wire

    async def make(self, name: str, partitions: int = 1, **settings: object) -> bytes:
        """A topic; its settings by Kafka's names with underscores. Returns its id."""
        overrides = [(key.replace("_", "."), str(value)) for key, value in settings.items()]
        await self.broker.cluster.topics.create([NewTopic(name, partitions, 1, (), overrides)])
        return self.broker.cluster.image.topics[name].id.bytes

    def replica(self, name: str, partition: int = 0) -> Replica:
        found = self.broker.replicas.find(name, None, partition)
        assert found is not None
        return found

    def hang_up(self) -> None:
        for wire in self._wires:
            wire.writer.transport.abort()


@contextlib.asynccontextmanager
async def living(folder: Path, gate: Gate | None = None, **settings: object) -> AsyncIterator[Living]:
    """A broker on that folder; its settings by Kafka's names with underscores."""
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder),
        "node.id": "1",
        **{key.replace("_", "."): str(value) for key, value in settings.items()},
    }
    broker = Broker(broker_config(properties)[0], Runtime(), gate=gate)
    await broker.start()
    alive = Living(broker)
    try:
        yield alive
    finally:
        alive.hang_up()
        await broker.stop()


def run(
    scenario: Callable[[Living], Awaitable[None]], folder: Path, gate: Gate | None = None, **settings: object
) -> None:
    async def live() -> None:
        async with asyncio.timeout(stretched(SECONDS_MAX)), living(folder, gate, **settings) as alive:
            await scenario(alive)

    asyncio.run(live())


def batch(*values: bytes, **options: Any) -> bytes:
    return bytes(encode_batch([Row(None, value, NOW_MS) for value in values], **options))


def produce(
    *parts: tuple[str | bytes, int, bytes | None], acks: int = 1, transactional_id: str | None = None
) -> ProduceRequest:
    """Each part is a topic's name (or id), a partition and its records."""
    topics: dict[str | bytes, list[PartitionProduceData]] = {}
    for topic, index, records in parts:
        topics.setdefault(topic, []).append(PartitionProduceData(index=index, records=records))
    data = []
    for topic, found in topics.items():
        if isinstance(topic, bytes):
            data.append(TopicProduceData(topic_id=uuid.UUID(bytes=topic), partition_data=found))
        else:
            data.append(TopicProduceData(name=topic, partition_data=found))
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=data)


def outcomes(response: Any) -> list[tuple[int, int, int]]:
    """(partition, error, base offset) of everything in a Produce reply, in order."""
    return [
        (part.index, part.error_code, part.base_offset)
        for topic in response.responses
        for part in topic.partition_responses
    ]


async def producer_id(wire: Wire) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    made = await wire.ask(apis.INIT_PRODUCER_ID, 4, request)
    assert made.error_code == 0
    return int(made.producer_id)
