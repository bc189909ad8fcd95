"""A broker of a test with certificates, users and access rights, which are made when it starts."""

import dataclasses
from pathlib import Path

import pytest

import moldau
from harness.patience import stretched
from moldau import errors
from moldau.admin import Acl
from moldau.testing import Broker, Cluster

USERS = {"alice": 'alice "secret" \\', "bob": "bob-secret"}


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_each_user_logs_in_by_each_mechanism(tls: bool, mechanism: str) -> None:
    with Broker(tls=tls, users=USERS) as broker:
        for user in USERS:
            with moldau.Producer(broker.client_settings(user, mechanism)) as producer:
                assert producer.send("t", user).result(20).offset >= 0
        wrong = broker.client_settings("alice", mechanism) | {"sasl.password": "another"}
        with moldau.Admin(wrong) as admin, pytest.raises(errors.SaslAuthenticationFailed):
            admin.list_topics()


def test_users_may_do_what_the_acls_say_also_after_a_restart() -> None:
    acls = [Acl("topic", "orders", "User:alice", "all"), Acl("topic", "orders", "User:bob", "describe")]
    with Broker(users=USERS, acls=acls) as broker:
        for end in (broker.restart, broker.kill, None):
            with moldau.Producer(broker.client_settings("alice")) as producer:
                producer.send("orders", b"x").result(20)
            with moldau.Producer(broker.client_settings("bob"), enable_idempotence=False) as producer:
                with pytest.raises(errors.TopicAuthorizationFailed):
                    producer.send("orders", b"x").result(20)
            with moldau.Admin(broker.client_settings("bob")) as admin:
                assert [*admin.list_topics()] == ["orders"]
                with pytest.raises(errors.TopicAuthorizationFailed):
                    admin.create_topic("others")
            if end is not None:
                end()
                if not broker.running:
                    broker.start()


def test_acls_given_as_none_at_all_allow_nothing_and_super_users_everything() -> None:
    with Broker(users=USERS, acls=[], super_users="User:bob") as broker:
        broker.create_topic("t")
        with moldau.Admin(broker.client_settings("alice")) as admin:
            assert not admin.list_topics()
        with moldau.Admin(broker.client_settings("bob")) as admin:
            assert [*admin.list_topics()] == ["t"]
            admin.create_acls([Acl("topic", "t", "User:alice", "read")])
        with moldau.Admin(broker.client_settings("alice")) as admin:
            assert [*admin.list_topics()] == ["t"]


def test_without_users_clients_are_known_by_certificates() -> None:
    with Broker(tls=True, acls=[Acl("topic", "t", "User:CN=carol", "all")]) as broker:
        with moldau.Producer(broker.client_settings("carol")) as producer:
            producer.send("t", b"x").result(20)
        with moldau.Admin(broker.client_settings()) as anonymous:
            assert not anonymous.list_topics()
        for name in ("ca", "a/b"):
            settings = broker.client_settings(name)
            assert (
                Path(settings["ssl.certificate.location"]).read_bytes()
                != Path(settings["ssl.ca.location"]).read_bytes()
            )
        files = {Path(path) for name, path in broker.client_settings("carol").items() if name.endswith("location")}
        assert files and all(path.exists() for path in files)
    assert not any(path.exists() or path.parent.exists() for path in files)


def test_faults_hit_a_broker_with_users_too() -> None:
    with Broker(users=USERS, acls=[Acl("topic", "t", "User:alice", "all")]) as broker:
        with moldau.Producer(broker.client_settings("alice")) as producer:
            with broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1) as fault:
                producer.send("t", b"x").result(20)
            assert fault.hits == 1


def test_an_authorizer_among_the_settings_counts_and_quotas_survive_a_restart() -> None:
    with Broker(authorizer_class_name="kafka.security.authorizer.AclAuthorizer") as broker:
        with moldau.Admin(broker.address) as admin, pytest.raises(errors.TopicAuthorizationFailed):
            admin.create_topic("t")
    with Broker() as broker:
        for _ in range(2):
            with moldau.Admin(broker.address) as admin:
                admin.alter_client_quotas({(("client-id", "slow"),): {"producer_byte_rate": 1e6}})
            broker.restart()


def test_brokers_of_a_cluster_log_in_at_each_other_and_apply_the_same_rights() -> None:
    acls = [Acl("topic", "orders", "User:alice", "all")]
    with Cluster(3, tls=True, users=USERS, acls=acls, default_replication_factor=3) as cluster:
        for is_last in (False, True):
            with moldau.Producer(cluster.client_settings("alice")) as producer:
                producer.send("orders", b"x").result(stretched(30))
            if not is_last:
                cluster.controller.kill()
        with moldau.Admin(cluster.client_settings("bob")) as admin:
            assert not admin.list_topics()


def test_brokers_of_a_cluster_know_each_other_by_certificates() -> None:
    acls = [Acl("topic", "orders", "User:CN=alice", "all")]
    with Cluster(2, tls=True, acls=acls, default_replication_factor=2) as cluster:
        with moldau.Producer(cluster.client_settings("alice")) as producer:
            producer.send("orders", b"x").result(stretched(30))
        with moldau.Admin(cluster.client_settings()) as admin:
            assert not admin.list_topics()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"users": {"a b": "x"}}, "users maps names without spaces"),
        ({"users": {"a": ""}}, "neither is empty"),
        ({"acls": ["alice"]}, "acls takes moldau.admin.Acl objects, not 'alice'"),
    ],
)
def test_what_cannot_be_made_is_refused(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(errors.ConfigError, match=sentence):
        Broker(**given)  # type: ignore[arg-type]


def test_a_user_that_does_not_exist_is_refused() -> None:
    with Broker() as plain:
        assert plain.client_settings() == {"bootstrap.servers": plain.address}
        with pytest.raises(errors.ConfigError, match="this broker has no users"):
            plain.client_settings("alice")
    with Broker(users=USERS) as broker:
        with pytest.raises(errors.ConfigError, match="this broker has no user 'eve', only alice, bob"):
            broker.client_settings("eve")
        with pytest.raises(errors.ConfigError, match="no mechanism 'GSSAPI'"):
            broker.client_settings("bob", "GSSAPI")
    wrong = dataclasses.replace(Acl("topic", "t", "User:alice", "read"), principal="alice")
    with pytest.raises(errors.ConfigError, match="cannot be made: a principal is TYPE:NAME"):
        Broker(acls=[wrong]).start()
