"""Moldau: a distributed commit log that speaks the Apache Kafka protocol, and its clients.

    from moldau import Consumer, Producer

The names below are imported when they are first used. `moldau.aio` has the same clients for asyncio.
"""

import importlib
from typing import TYPE_CHECKING, Any

from moldau.version import VERSION

if TYPE_CHECKING:
    from moldau import aio, errors
    from moldau.client import serializers
    from moldau.client.admin import Admin, NewTopic
    from moldau.client.consumer import Consumer
    from moldau.client.delivery import Delivered, Delivery, NotDelivered
    from moldau.client.deserializing import DeserializationFailed
    from moldau.client.interceptors import ProducerInterceptor
    from moldau.client.outgoing import Header, OutgoingRecord
    from moldau.client.producer import Producer
    from moldau.client.record import Record
    from moldau.client.streams import TopicFilter
    from moldau.client.table_delivery import DeliveredRows, TableDelivery
    from moldau.client.table_reading import read_table
    from moldau.client.truncation import LogTruncated
    from moldau.names import OffsetAndMetadata, TopicPartition

__version__ = VERSION
__all__ = [
    "Admin",
    "Consumer",
    "Delivered",
    "DeliveredRows",
    "Delivery",
    "DeserializationFailed",
    "Header",
    "LogTruncated",
    "NewTopic",
    "NotDelivered",
    "OffsetAndMetadata",
    "OutgoingRecord",
    "Producer",
    "ProducerInterceptor",
    "Record",
    "TableDelivery",
    "TopicFilter",
    "TopicPartition",
    "__version__",
    "aio",
    "errors",
    "read_table",
    "serializers",
]

_HOMES = {
    "Admin": "moldau.client.admin",
    "Consumer": "moldau.client.consumer",
    "Delivered": "moldau.client.delivery",
    "DeliveredRows": "moldau.client.table_delivery",
    "Delivery": "moldau.client.delivery",
    "DeserializationFailed": "moldau.client.deserializing",
    "Header": "moldau.client.outgoing",
    "LogTruncated": "moldau.client.truncation",
    "NewTopic": "moldau.client.admin",
    "NotDelivered": "moldau.client.delivery",
    "OffsetAndMetadata": "moldau.names",
    "OutgoingRecord": "moldau.client.outgoing",
    "Producer": "moldau.client.producer",
    "ProducerInterceptor": "moldau.client.interceptors",
    "Record": "moldau.client.record",
    "TableDelivery": "moldau.client.table_delivery",
    "TopicFilter": "moldau.client.streams",
    "TopicPartition": "moldau.names",
    "read_table": "moldau.client.table_reading",
}
_MODULES = {"aio": "moldau.aio", "errors": "moldau.errors", "serializers": "moldau.client.serializers"}


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
