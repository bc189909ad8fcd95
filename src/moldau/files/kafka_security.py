"""What a Kafka's metadata log says of users and their rights, as our metadata has it: access control lists, SCRAM
credentials, client quotas and delegation tokens. Pure.

An entry that ours could not have (a resource type or a quota of a later Kafka, a name that is none) is left behind.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from moldau.cluster.controlling.quota_changes import QuotaChange
from moldau.cluster.state.acls import OPERATIONS, RESOURCE_TYPES, AclEntry, AclPattern, AclPatternType, AclPermission
from moldau.cluster.state.quotas import DEFAULT, OF_ADDRESSES, OF_CLIENTS, QuotaOwner
from moldau.cluster.users.changes import CredentialChange
from moldau.cluster.users.tokens import DelegationToken, is_id
from moldau.files.kafka_leftovers import MECHANISMS, InForce, Leftover
from moldau.files.metadata_log import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from moldau.transport.sasl.scram import Credential

_ENTITIES = (["user"], ["client-id"], ["client-id", "user"], ["ip"])


class FoundAcl(NamedTuple):
    """One entry of a pattern."""

    pattern: AclPattern
    entry: AclEntry


class KafkaSecurity(NamedTuple):
    """What is adopted, also by its names (`taken`), and the names of what is left behind."""

    acls: list[FoundAcl]
    credentials: list[CredentialChange]
    quotas: list[QuotaChange]
    tokens: list[DelegationToken]
    taken: list[Leftover]
    left: list[Leftover]


def security_of(others: Iterable[InForce]) -> KafkaSecurity:
    """Of the entries that are not topics; settings are left out (`kafka_resources`)."""
    found = KafkaSecurity([], [], [], [], [], [])
    for entry, record in others:
        if isinstance(record, ConfigRecord):
            continue
        match _ours(record):
            case FoundAcl() as acl:
                found.acls.append(acl)
            case CredentialChange() as credential:
                found.credentials.append(credential)
            case QuotaChange() as quota:
                found.quotas.append(quota)
            case DelegationToken() as token:
                found.tokens.append(token)
            case _:
                found.left.append(entry)
                continue
        found.taken.append(entry)
    return found


def _ours(record: Any) -> FoundAcl | CredentialChange | QuotaChange | DelegationToken | None:
    match record:
        case AccessControlEntryRecord():
            return _acl(record)
        case UserScramCredentialRecord(mechanism=number) if number in MECHANISMS and record.name:
            key = Credential(record.salt, record.stored_key, record.server_key, record.iterations)
            return CredentialChange(record.name, MECHANISMS[number], key)
        case ClientQuotaRecord():
            return _quota(record)
        case DelegationTokenRecord(token_id=text) if is_id(text):
            renewers = tuple(record.renewers)
            times = record.issue_timestamp, record.expiration_timestamp, record.max_timestamp
            return DelegationToken(text, record.owner, record.requester or record.owner, renewers, *times)
    return None


def _acl(record: AccessControlEntryRecord) -> FoundAcl | None:
    is_known = record.resource_type in RESOURCE_TYPES and record.operation in OPERATIONS
    if not is_known or not record.resource_name:
        return None
    try:
        pattern = AclPattern(record.resource_type, record.resource_name, AclPatternType(record.pattern_type))
        permission = AclPermission(record.permission_type)
    except ValueError:
        return None
    return FoundAcl(pattern, AclEntry(record.principal, record.host, record.operation, permission))


def _quota(record: ClientQuotaRecord) -> QuotaChange | None:
    parts = {one.entity_type: DEFAULT if one.entity_name is None else one.entity_name for one in record.entity}
    allowed = OF_ADDRESSES if "ip" in parts else OF_CLIENTS
    is_value = math.isfinite(record.value) and record.value >= 0
    if sorted(parts) not in _ENTITIES or record.key not in allowed or not is_value:
        return None
    owner = QuotaOwner(parts.get("user"), parts.get("client-id"), parts.get("ip"))
    return QuotaChange(owner, {record.key: record.value})
