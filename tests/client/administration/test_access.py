"""ACLs, quotas, SCRAM credentials and reassignments: what a Moldau broker says, and what is sent."""

import base64
import hashlib
import hmac

import pytest

from moldau import Admin, TopicPartition
from moldau.admin import Acl, AclFilter, ScramDeletion, ScramUpsertion, TokenDescription
from moldau.client.administration.scram import salted_password
from moldau.errors import (
    ConfigError,
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    NoReassignmentInProgress,
    ResourceNotFound,
    SecurityDisabled,
    UnacceptableCredential,
    UnknownTopicOrPartition,
)

READS = Acl("topic", "orders", "User:ann", "read")


def test_a_broker_without_acls_says_so(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        with pytest.raises(SecurityDisabled, match="describing ACLs: this broker has no access rights"):
            admin.describe_acls()
        [(acl, refused)] = admin.create_acls([READS]).items()
        assert acl == READS and isinstance(refused, SecurityDisabled)
        wanted = AclFilter("topic", principal="User:ann")
        assert isinstance(admin.delete_acls([wanted])[wanted], SecurityDisabled)


def test_wrong_acls_are_refused_before_they_are_sent(bootstrap: str) -> None:
    with pytest.raises(ConfigError, match="AclFilter"):
        Acl("any", "orders", "User:ann", "read")
    with Admin(bootstrap) as admin:
        with pytest.raises(ConfigError, match="'topics' is not one of any, topic, group"):
            admin.create_acls([Acl("topics", "orders", "User:ann", "read")])  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="'reads' is not one of"):
            admin.describe_acls(AclFilter(operation="reads"))  # type: ignore[arg-type]


def test_quotas_are_set_described_and_removed(bootstrap: str) -> None:
    ann, every_client = (("user", "ann"),), (("user", "ann"), ("client-id", None))
    with Admin(bootstrap) as admin:
        changes = {ann: {"producer_byte_rate": 1e6}, every_client: {"request_percentage": 500.0}}
        assert admin.alter_client_quotas(changes) == {ann: None, every_client: None}
        assert admin.describe_client_quotas({"user": "ann"}) == changes
        assert admin.describe_client_quotas({"user": "ann"}, strict=True) == {ann: changes[ann]}
        refused = admin.alter_client_quotas({ann: {"producer_byte_rate": -1.0}})[ann]
        assert isinstance(refused, InvalidRequest)
        assert str(refused) == "quotas of user ann: producer_byte_rate must be above 0, not -1"
        admin.alter_client_quotas({ann: {"producer_byte_rate": None}, every_client: {"request_percentage": None}})
        assert admin.describe_client_quotas() == {}


def test_users_get_passwords_which_are_not_shown(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        outcome = admin.alter_user_scram_credentials([ScramUpsertion("ann", "secret"), ScramDeletion("bob")])
        assert outcome["ann"] is None and isinstance(outcome["bob"], ResourceNotFound)
        [weak] = admin.alter_user_scram_credentials([ScramUpsertion("ann", "secret", iterations=10)]).values()
        assert isinstance(weak, UnacceptableCredential)
        [(user, mechanisms)] = admin.describe_user_scram_credentials().items()
        assert user == "ann" and "secret" not in repr(mechanisms)
        assert admin.alter_user_scram_credentials([ScramDeletion("ann")]) == {"ann": None}
        assert admin.describe_user_scram_credentials() == {}
    assert "secret" not in repr(ScramUpsertion("ann", "secret"))
    with pytest.raises(ConfigError, match="SCRAM-SHA-1"):
        ScramUpsertion("ann", "secret", "SCRAM-SHA-1")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="iterations"):
        ScramUpsertion("ann", "secret", iterations=0)


def test_a_client_that_has_not_logged_in_gets_no_token(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        for ask in (admin.create_delegation_token, admin.describe_delegation_tokens):
            with pytest.raises(KafkaError, match="delegation token request not allowed"):
                ask()
        for change in (admin.renew_delegation_token, admin.expire_delegation_token):
            with pytest.raises(KafkaError, match="delegation token request not allowed"):
                change(b"secret")
    assert "secret" not in repr(TokenDescription("id", b"secret", "a", "a", (), 1, 2, 3))


def test_a_password_is_salted_so_that_its_owner_can_log_in() -> None:
    """The example of RFC 7677, section 3: the client's proof follows from the salted password."""
    nonce, salt = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", "W22ZaJ0SNY7soEsUEjb6gQ=="
    said = f"n=user,r={nonce[:20]},r={nonce},s={salt},i=4096,c=biws,r={nonce}"
    salted = salted_password("SCRAM-SHA-256", "pencil", base64.b64decode(salt), 4_096)
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), said.encode(), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


def test_partitions_move_to_brokers_that_exist(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
        [broker_id] = admin.describe_cluster().brokers
        one, two, none = (TopicPartition(topic, number) for number in range(3))
        outcome = admin.alter_reassignments({one: [broker_id], two: [broker_id, 99], none: [broker_id]})
        assert outcome[one] is None
        assert isinstance(outcome[two], InvalidReplicaAssignment)
        assert isinstance(outcome[none], UnknownTopicOrPartition)
        assert isinstance(admin.alter_reassignments({one: None})[one], NoReassignmentInProgress)
