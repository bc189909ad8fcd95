"""Reads the records of `__cluster_metadata`, in which Kafka's controllers keep the topics and their settings.

    value    frame version uvarint 0 or 1 | kind uvarint | version uvarint | fields, flexible
Only these kinds are read: created and removed topics, settings, credentials, quotas, ACLs, and the beginnings and ends
of the controller's transactions. Source: the definitions of the records in Kafka's metadata module.
"""

import uuid
from typing import Any, Final, NamedTuple

from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.primitives import read_uvarint
from moldau.protocol.schema import ARRAY, BOOL, BYTES, FLOAT64, INT8, INT32, INT64, STRING, UUID, message

FRAME_VERSIONS: Final = (0, 1)
TOPIC_RESOURCE, BROKER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 16, 32


@message
class TopicRecord:
    name: str = STRING()
    topic_id: uuid.UUID = UUID()


@message
class RemoveTopicRecord:
    topic_id: uuid.UUID = UUID()


@message
class ConfigRecord:
    """A setting of a resource; without a value, the setting is removed."""

    resource_type: int = INT8()
    resource_name: str = STRING()
    name: str = STRING()
    value: str | None = STRING(nullable=0)


@message
class DelegationTokenRecord:
    owner: str = STRING()
    requester: str = STRING()
    renewers: list[str] = ARRAY(STRING)
    issue_timestamp: int = INT64()
    max_timestamp: int = INT64()
    expiration_timestamp: int = INT64()
    token_id: str = STRING()


@message
class RemoveDelegationTokenRecord:
    token_id: str = STRING()


@message
class UserScramCredentialRecord:
    name: str = STRING()
    mechanism: int = INT8()
    salt: bytes = BYTES()
    stored_key: bytes = BYTES()
    server_key: bytes = BYTES()
    iterations: int = INT32()


@message
class RemoveUserScramCredentialRecord:
    name: str = STRING()
    mechanism: int = INT8()


@message
class QuotaEntityPart:
    """One entity of a quota; without a name, the default entity of its type."""

    entity_type: str = STRING()
    entity_name: str | None = STRING(nullable=0)


@message
class ClientQuotaRecord:
    entity: list[QuotaEntityPart] = ARRAY(QuotaEntityPart)
    key: str = STRING()
    value: float = FLOAT64()
    remove: bool = BOOL()


@message
class AccessControlEntryRecord:
    id: uuid.UUID = UUID()
    resource_type: int = INT8()
    resource_name: str = STRING()
    pattern_type: int = INT8()
    principal: str = STRING()
    host: str = STRING()
    operation: int = INT8()
    permission_type: int = INT8()


@message
class RemoveAccessControlEntryRecord:
    id: uuid.UUID = UUID()


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
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    14: ClientQuotaRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
}


class Change(NamedTuple):
    """The change in one record; `record` is None for a kind or version that is not read here."""

    kind: int
    record: Any


def read_change(value: bytes) -> Change:
    """Read the value of one record. Raises `ProtocolViolation` if the bytes are not a record of the metadata log."""
    frame, at = read_uvarint(value, 0)
    if frame not in FRAME_VERSIONS:
        raise ProtocolViolation(f"a record of the metadata log has the unknown frame version {frame}")
    kind, at = read_uvarint(value, at)
    version, at = read_uvarint(value, at)
    known = KINDS.get(kind)
    if known is None or version:
        return Change(kind, None)
    return Change(kind, schema.read(known, version, True, value, at)[0])
