"""The records of `__cluster_metadata`, where Kafka's controllers keep what topics there are and how they are set.

    value    frame version uvarint 0 or 1 | kind uvarint | version uvarint | fields, flexible
Only what tells the settings of topics is read: their making and removal, settings, and transactions of the controller,
of which an aborted one never was.
"""

import uuid
from typing import Any, Final, NamedTuple

from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.primitives import read_uvarint
from moldau.protocol.schema import INT8, STRING, UUID, message

FRAME_VERSIONS: Final = (0, 1)
TOPIC_RESOURCE: Final = 2


@message
class TopicRecord:
    name: str = STRING()
    topic_id: uuid.UUID = UUID()


@message
class RemoveTopicRecord:
    topic_id: uuid.UUID = UUID()


@message
class ConfigRecord:
    """Without a value the setting is gone."""

    resource_type: int = INT8()
    resource_name: str = STRING()
    name: str = STRING()
    value: str | None = STRING(nullable=0)


@message
class BeginTransactionRecord:
    name: str | None = STRING(tag=0, nullable=0, default=None)


@message
class EndTransactionRecord:
    pass


@message
class AbortTransactionRecord:
    reason: str | None = STRING(tag=0, nullable=0, default=None)


KINDS: Final[dict[int, type]] = {
    2: TopicRecord,
    4: ConfigRecord,
    9: RemoveTopicRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
}


class Change(NamedTuple):
    """What one record says; `record` is None for a kind or version that is not read here."""

    kind: int
    record: Any


def read_change(value: bytes) -> Change:
    """Raises `ProtocolViolation` for bytes that are no such record."""
    frame, at = read_uvarint(value, 0)
    if frame not in FRAME_VERSIONS:
        raise ProtocolViolation(f"a record of the metadata log in frame {frame}")
    kind, at = read_uvarint(value, at)
    version, at = read_uvarint(value, at)
    known = KINDS.get(kind)
    if known is None or version:
        return Change(kind, None)
    return Change(kind, schema.read(known, version, True, value, at)[0])
