"""The clients for asyncio: the same names, settings and methods as in `moldau`, to be awaited.

async with moldau.aio.Producer("localhost:9092") as producer:
    await producer.send("events", b"hello")
"""

from moldau import errors
from moldau.client.administration.admin import AsyncAdmin as Admin
from moldau.client.administration.topics import NewTopic
from moldau.client.consuming.async_consumer import AsyncConsumer as Consumer
from moldau.client.consuming.consumer_metrics import ConsumerMetrics
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.streams.async_streams import AsyncMessageStream as MessageStream
from moldau.client.consuming.streams.topic_filter import TopicFilter
from moldau.client.consuming.tables.table_reading import read_table_async as read_table
from moldau.client.producing.async_producer import AsyncProducer as Producer
from moldau.client.producing.delivery import Delivered, Delivery
from moldau.client.producing.interceptors import ProducerInterceptor
from moldau.client.producing.outgoing import Header, OutgoingRecord
from moldau.client.producing.producer_metrics import ProducerMetrics
from moldau.client.producing.table_delivery import DeliveredRows, TableDelivery
from moldau.errors import DeserializationFailed, LogTruncated, NotDelivered
from moldau.names import OffsetAndMetadata, TopicPartition

__all__ = [
    "Admin",
    "Consumer",
    "ConsumerMetrics",
    "Delivered",
    "DeliveredRows",
    "Delivery",
    "DeserializationFailed",
    "Header",
    "LogTruncated",
    "MessageStream",
    "NewTopic",
    "NotDelivered",
    "OffsetAndMetadata",
    "OutgoingRecord",
    "Producer",
    "ProducerInterceptor",
    "ProducerMetrics",
    "Record",
    "TableDelivery",
    "TopicFilter",
    "TopicPartition",
    "errors",
    "read_table",
]
