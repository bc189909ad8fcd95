"""Users and rights of an adopted Kafka come into our metadata; nothing that is here already is changed."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cluster.state import layout
from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission, read_acls
from moldau.cluster.state.quotas import QuotaOwner, read_quotas
from moldau.cluster.users.credentials import read_credential
from moldau.cluster.users.tokens import read_tokens
from moldau.files.kafka_leftovers import in_force
from moldau.files.kafka_security import KafkaSecurity, security_of
from moldau.files.metadata_log import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntityPart,
    UserScramCredentialRecord,
)
from moldau.files.security_registration import register_security
from moldau.metadata_store.embedded import EmbeddedStore

READ, ALLOW = 3, AclPermission.ALLOW
ANN, BOB = (AclEntry(f"User:{name}", "*", READ, ALLOW) for name in ("ann", "bob"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    made = EmbeddedStore(tmp_path)
    made.multi(layout.new_cluster("c"))
    yield made
    made.close()


def acl(
    number: int, name: str, principal: str = "User:ann", kind: int = 2, pattern: int = 3, permission: int = 3
) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=uuid.UUID(int=number),
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host="*",
        operation=READ,
        permission_type=permission,
    )


def scram(user: str, mechanism: int = 1, key: bytes = b"k" * 32) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=user, mechanism=mechanism, salt=b"salt", stored_key=key, server_key=key, iterations=4096
    )


def quota(key: str, value: float, **of: str | None) -> ClientQuotaRecord:
    entity = [QuotaEntityPart(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in of.items()]
    return ClientQuotaRecord(entity=entity, key=key, value=value)


def token(token_id: str) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner="User:ann",
        requester="User:bob",
        renewers=["User:carol"],
        issue_timestamp=1,
        max_timestamp=9,
        expiration_timestamp=5,
        token_id=token_id,
    )


def found(*records: object) -> KafkaSecurity:
    return security_of(in_force(records))


def test_what_kafka_knew_of_users_is_here_afterwards(store: EmbeddedStore) -> None:
    security = found(
        acl(1, "t"),
        acl(2, "t", "User:bob"),
        acl(3, "pre/", pattern=4),
        acl(4, "kafka-cluster", kind=4),
        scram("ann"),
        scram("ann", 2, b"x" * 64),
        quota("producer_byte_rate", 1024, user="ann"),
        quota("request_percentage", 12.5, user="ann"),
        quota("consumer_byte_rate", 7, user=None, client_id="app"),
        quota("connection_creation_rate", 3, ip="10.0.0.7"),
        token("abc"),
    )
    assert len(security.taken) == 11 and not security.left
    for _ in range(2):  # the command is given again after it was interrupted
        register_security(store, security)
        assert store.read(read_acls()) == {
            AclPattern(2, "pre/", AclPatternType.PREFIXED): (ANN,),
            AclPattern(2, "t"): (ANN, BOB),
            AclPattern(4, "kafka-cluster"): (ANN,),
        }
        for mechanism, key in (("SCRAM-SHA-256", b"k" * 32), ("SCRAM-SHA-512", b"x" * 64)):
            assert store.read(read_credential("ann", mechanism)) == (b"salt", key, key, 4096)
        assert store.read(read_quotas()) == {
            QuotaOwner("ann"): {"producer_byte_rate": 1024, "request_percentage": 12.5},
            QuotaOwner("", "app"): {"consumer_byte_rate": 7},
            QuotaOwner(ip="10.0.0.7"): {"connection_creation_rate": 3},
        }
        ((one, _),) = store.read(read_tokens())
        assert one == ("abc", "User:ann", "User:bob", ("User:carol",), 1, 5, 9)


def test_what_is_here_already_stays(store: EmbeddedStore) -> None:
    register_security(
        store, found(acl(1, "t"), scram("ann", key=b"o" * 32), quota("producer_byte_rate", 5, user="ann"))
    )
    register_security(
        store,
        found(
            acl(2, "t", "User:bob"),
            scram("ann"),
            scram("ann", 2),
            quota("producer_byte_rate", 9, user="ann"),
            quota("consumer_byte_rate", 9, user="ann"),
        ),
    )
    ours, more = (store.read(read_credential("ann", name)) for name in ("SCRAM-SHA-256", "SCRAM-SHA-512"))
    assert ours is not None and ours.stored_key == b"o" * 32 and more is not None
    assert store.read(read_acls()) == {AclPattern(2, "t"): (ANN, BOB)}
    assert store.read(read_quotas()) == {QuotaOwner("ann"): {"producer_byte_rate": 5, "consumer_byte_rate": 9}}


def test_what_ours_could_not_have_is_left_behind(store: EmbeddedStore) -> None:
    strange = (
        acl(1, "t", kind=99),
        acl(2, "t", pattern=9),
        acl(3, "t", permission=7),
        acl(4, ""),
        scram("ann", 9),
        scram(""),
        quota("another_rate", 1, user="ann"),
        quota("producer_byte_rate", -1, user="bob"),
        quota("producer_byte_rate", float("nan"), user="carol"),
        quota("producer_byte_rate", 1, ip="10.0.0.7"),
        quota("producer_byte_rate", 1, group="g"),
        token("../config"),
    )
    security = found(*strange)
    assert len(security.left) == len(strange) and not security.taken
    register_security(store, security)
    assert not store.read(read_acls()) and not store.read(read_quotas()) and not store.read(read_tokens())
