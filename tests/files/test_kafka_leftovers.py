"""Everything in Kafka's metadata log except topics is named, as it was at the end of the log."""

import uuid

from moldau.files.kafka_leftovers import Leftover, in_force
from moldau.files.metadata_log import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    QuotaEntityPart,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)


def leftovers(records: list[object]) -> list[Leftover]:
    return [entry for entry, _ in in_force(records)]


def setting(kind: int, of: str, name: str, value: str | None = "1") -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=of, name=name, value=value)


def quota(user: str | None, key: str, remove: bool = False) -> ClientQuotaRecord:
    entity = [
        QuotaEntityPart(entity_type="user", entity_name=user),
        QuotaEntityPart(entity_type="client-id", entity_name="c"),
    ]
    return ClientQuotaRecord(entity=entity, key=key, value=1.0, remove=remove)


def rule(number: int, name: str) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=uuid.UUID(int=number), resource_type=2, resource_name=name, pattern_type=3, principal="User:ann"
    )


def test_everything_that_is_left_behind_is_named() -> None:
    records = [
        TopicRecord(name="t"),
        setting(2, "t", "retention.ms"),
        setting(4, "", "message.max.bytes"),
        setting(4, "1", "log.cleaner.threads"),
        setting(16, "subscription", "metrics"),
        setting(32, "readers", "consumer.session.timeout.ms"),
        UserScramCredentialRecord(name="ann", mechanism=1),
        UserScramCredentialRecord(name="ann", mechanism=2),
        quota(None, "producer_byte_rate"),
        rule(1, "flights"),
        DelegationTokenRecord(owner="User:ann", token_id="token"),
    ]
    assert leftovers(records) == [
        Leftover("SCRAM credential", "ann (SCRAM-SHA-256)"),
        Leftover("SCRAM credential", "ann (SCRAM-SHA-512)"),
        Leftover("access rule", "User:ann on topic flights"),
        Leftover("client quota", "client-id c, user default: producer_byte_rate"),
        Leftover("delegation token", "token of User:ann"),
        Leftover("setting of brokers", "1: log.cleaner.threads"),
        Leftover("setting of brokers", "all brokers: message.max.bytes"),
        Leftover("setting of client metrics", "subscription: metrics"),
        Leftover("setting of groups", "readers: consumer.session.timeout.ms"),
    ]


def test_what_was_taken_away_again_is_not_left_behind() -> None:
    records = [
        setting(4, "1", "log.cleaner.threads"),
        UserScramCredentialRecord(name="ann", mechanism=1),
        quota("ann", "request_percentage"),
        rule(1, "flights"),
        DelegationTokenRecord(owner="User:ann", token_id="token"),
        setting(4, "1", "log.cleaner.threads", None),
        RemoveUserScramCredentialRecord(name="ann", mechanism=1),
        quota("ann", "request_percentage", remove=True),
        RemoveAccessControlEntryRecord(id=uuid.UUID(int=1)),
        RemoveDelegationTokenRecord(token_id="token"),
    ]
    assert leftovers(records) == []
