"""Fetch requests of tests, and what their answers have."""

import uuid
from typing import Any

from moldau.protocol.apis import PRODUCE
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.records.rows import iterate
from tests.handlers.living import Living, outcomes, produce

LONG_MS = 60_000


def fetch(*parts: tuple[str | bytes, FetchPartition], **fields: Any) -> FetchRequest:
    """Each part is a topic's name (or id) and what is asked of one partition."""
    topics = [
        FetchTopic(topic_id=uuid.UUID(bytes=topic), partitions=[part])
        if isinstance(topic, bytes)
        else FetchTopic(topic=topic, partitions=[part])
        for topic, part in parts
    ]
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "topics": topics, **fields})


def at(offset: int, partition: int = 0, bytes_max: int = 1 << 20, **fields: Any) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=bytes_max, **fields)


def topic_of(version: int, topic_id: bytes) -> str | bytes:
    return "a" if version < 13 else topic_id


def parts_of(response: Any) -> list[Any]:
    return [part for topic in response.responses for part in topic.partitions]


def values(part: Any) -> list[bytes]:
    return [bytes(record.value) for record in iterate(bytes(part.records or b""))]


async def fill(alive: Living, topic: str, *batches: bytes, partition: int = 0) -> None:
    wire = await alive.dial()
    for each in batches:
        assert outcomes(await wire.ask(PRODUCE, 9, produce((topic, partition, each))))[0][1] == 0
