"""The clients for asyncio: the same names, settings and methods as in `moldau`, to be awaited.

async with moldau.aio.Producer("localhost:9092") as producer:
    await producer.send("events", b"hello")
"""

from moldau.client.administration.admin import AsyncAdmin as Admin
from moldau.client.consuming.async_consumer import AsyncConsumer as Consumer
from moldau.client.consuming.deserializing import DeserializationFailed
from moldau.client.consuming.record import Record
from moldau.client.consuming.table_reading import read_table_async as read_table
from moldau.client.consuming.truncation import LogTruncated
from moldau.client.producing.async_producer import AsyncProducer as Producer
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
    "read_table",
]
