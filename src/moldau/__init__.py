"""Moldau: a distributed commit log that speaks the Apache Kafka protocol, and its clients.

    from moldau import Consumer, Producer

The names below are imported when they are first used. `moldau.aio` has the same clients for asyncio.
"""

import importlib
from typing import TYPE_CHECKING, Any

from moldau.version import VERSION

if TYPE_CHECKING:
    from moldau import admin, aio, errors, serializers
    from moldau.client.administration.admin import Admin, NewTopic
    from moldau.client.consuming.consumer import Consumer
    from moldau.client.consuming.consumer_metrics import ConsumerMetrics
    from moldau.client.consuming.fetched.record import Record
    from moldau.client.consuming.streams.message_streams import MessageStream
    from moldau.client.consuming.streams.topic_filter import TopicFilter
    from moldau.client.consuming.tables.table_reading import read_table
    from moldau.client.producing.delivery import Delivered, Delivery
    from moldau.client.producing.interceptors import ProducerInterceptor
    from moldau.client.producing.outgoing import Header, OutgoingRecord
    from moldau.client.producing.producer import Producer
    from moldau.client.producing.producer_metrics import ProducerMetrics
    from moldau.client.producing.table_delivery import DeliveredRows, TableDelivery
    from moldau.errors import DeserializationFailed, LogTruncated, NotDelivered
    from moldau.names import OffsetAndMetadata, TopicPartition

__version__ = VERSION
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
    "__version__",
    "admin",
    "aio",
    "errors",
    "read_table",
    "serializers",
]

_HOMES = {
    "Admin": "moldau.client.administration.admin",
    "Consumer": "moldau.client.consuming.consumer",
    "ConsumerMetrics": "moldau.client.consuming.consumer_metrics",
    "Delivered": "moldau.client.producing.delivery",
    "DeliveredRows": "moldau.client.producing.table_delivery",
    "Delivery": "moldau.client.producing.delivery",
    "DeserializationFailed": "moldau.errors",
    "Header": "moldau.client.producing.outgoing",
    "LogTruncated": "moldau.errors",
    "MessageStream": "moldau.client.consuming.streams.message_streams",
    "NewTopic": "moldau.client.administration.admin",
    "NotDelivered": "moldau.errors",
    "OffsetAndMetadata": "moldau.names",
    "OutgoingRecord": "moldau.client.producing.outgoing",
    "Producer": "moldau.client.producing.producer",
    "ProducerInterceptor": "moldau.client.producing.interceptors",
    "ProducerMetrics": "moldau.client.producing.producer_metrics",
    "Record": "moldau.client.consuming.fetched.record",
    "TableDelivery": "moldau.client.producing.table_delivery",
    "TopicFilter": "moldau.client.consuming.streams.topic_filter",
    "TopicPartition": "moldau.names",
    "read_table": "moldau.client.consuming.tables.table_reading",
}
_MODULES = {name: f"moldau.{name}" for name in ("admin", "aio", "errors", "serializers")}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'moldau' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
