"""Lists the entries of Kafka's metadata log that are not topics, by their names, without secrets and values.

These are SCRAM credentials, client quotas, ACLs and delegation tokens (`kafka_security` says which can be adopted), and
the settings of brokers, groups and client metrics (`kafka_resources`).
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from moldau.files.metadata_log import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    METRICS_RESOURCE,
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
PATTERNS: Final = {3: "", 4: " (prefix)"}
RESOURCES: Final = {2: "topic", 3: "group", 4: "cluster", 5: "transactional id", 6: "delegation token", 7: "user"}
SETTINGS: Final = {
    BROKER_RESOURCE: "setting of brokers",
    GROUP_RESOURCE: "setting of groups",
    METRICS_RESOURCE: "setting of client metrics",
}
CREDENTIAL, QUOTA, RULE, TOKEN = "SCRAM credential", "client quota", "access rule", "delegation token"
ALL_BROKERS: Final = "all brokers"


class Leftover(NamedTuple):
    """One entry that is not a topic: its kind and its name."""

    kind: str
    name: str


class InForce(NamedTuple):
    """An entry, and the record that set it last."""

    entry: Leftover
    record: Any


def in_force(records: Iterable[object]) -> list[InForce]:
    """The entries in force after these records of the metadata log, which come in log order. Sorted by their names."""
    found: dict[object, InForce] = {}
    for record in records:
        key, leftover = _seen(record)
        if leftover is not None:
            found[key] = InForce(leftover, record)
        elif key is not None:
            found.pop(key, None)
    return sorted(found.values(), key=lambda one: one.entry)


def _seen(record: Any) -> tuple[object, Leftover | None]:
    """The key of the entry that the record sets, and the leftover; None instead of the leftover if the record removes
    the entry. (None, None) for all other records."""
    match record:
        case ConfigRecord(resource_type=kind) if kind in SETTINGS:
            of = record.resource_name or ALL_BROKERS
            setting = Leftover(SETTINGS[kind], f"{of}: {record.name}")
            return (kind, of, record.name), None if record.value is None else setting
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            mechanism = MECHANISMS.get(record.mechanism, str(record.mechanism))
            removed = isinstance(record, RemoveUserScramCredentialRecord)
            credential = Leftover(CREDENTIAL, f"{record.name} ({mechanism})")
            return (CREDENTIAL, record.name, record.mechanism), None if removed else credential
        case ClientQuotaRecord():
            of = ", ".join(sorted(f"{one.entity_type} {one.entity_name or 'default'}" for one in record.entity))
            return (QUOTA, of, record.key), None if record.remove else Leftover(QUOTA, f"{of}: {record.key}")
        case AccessControlEntryRecord():
            what = RESOURCES.get(record.resource_type, str(record.resource_type))
            pattern = PATTERNS.get(record.pattern_type, "")
            return record.id, Leftover(RULE, f"{record.principal} on {what} {record.resource_name}{pattern}")
        case RemoveAccessControlEntryRecord():
            return record.id, None
        case DelegationTokenRecord():
            return (TOKEN, record.token_id), Leftover(TOKEN, f"{record.token_id} of {record.owner}")
        case RemoveDelegationTokenRecord():
            return (TOKEN, record.token_id), None
    return None, None
