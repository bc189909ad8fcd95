"""The clients for asyncio: the same names, settings and methods as in `moldau`, to be awaited.

async with moldau.aio.Producer("localhost:9092") as producer:
    await producer.send("events", b"hello")
"""

from moldau.client.admin import AsyncAdmin as Admin
from moldau.client.async_consumer import AsyncConsumer as Consumer
from moldau.client.async_producer import AsyncProducer as Producer
from moldau.client.deserializing import DeserializationFailed
from moldau.client.record import Record
from moldau.client.truncation import LogTruncated
from moldau.names import OffsetAndMetadata, TopicPartition

__all__ = [
    "Admin",
    "Consumer",
    "DeserializationFailed",
    "LogTruncated",
    "OffsetAndMetadata",
    "Producer",
    "Record",
    "TopicPartition",
]
