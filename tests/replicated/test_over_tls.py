"""Three brokers that connect to each other with mutual TLS, and to their clients by it or with logins as well."""

import time
from pathlib import Path

import pytest

import moldau
from harness.certificates import PASSWORD, Authority
from harness.patience import Deadline
from harness.replicated_brokers import ReplicatedBrokers
from moldau.admin import Acl, ScramUpsertion
from moldau.errors import KafkaError, TopicAuthorizationFailed
from moldau.names import TopicPartition
from moldau.protocol.apis import API_VERSIONS
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from tests.end_to_end.raw import Raw

BETWEEN_BROKERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL",
    "inter.broker.listener.name": "BROKERS",
    "ssl.client.auth": "required",
}


def settings(authority: Authority, name: str = "broker") -> dict[str, str]:
    return {
        "ssl.keystore.location": str(authority.signed(name, "127.0.0.1")),
        "ssl.key.password": PASSWORD,
        "ssl.truststore.location": str(authority.trusted),
    }


def test_followers_fetch_over_tls_and_no_broker_is_reached_without(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cluster = ReplicatedBrokers(tmp_path, BETWEEN_BROKERS | settings(authority))
    try:
        cluster.start()
        with moldau.Producer(cluster.address, acks="all") as producer:
            for number in range(300):
                producer.send("replicated", b"%d" % number * 1000)
        cluster.wait_until_whole()
        for broker in cluster.brokers.values():
            assert "is reached without TLS" not in broker.log()
        secure = cluster.brokers[1].addresses[1]
        with Raw(secure) as plain, pytest.raises((EOFError, ConnectionError)):
            plain.ask(API_VERSIONS, 0, ApiVersionsRequest())
    finally:
        cluster.stop()
    assert all("Traceback" not in broker.log() for broker in cluster.brokers.values())


@pytest.mark.check
def test_a_certificate_that_a_broker_cannot_use_is_refused_by_that_broker(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cluster = ReplicatedBrokers(tmp_path, BETWEEN_BROKERS | settings(authority))
    name = "listener.name.brokers.ssl.keystore.location"
    try:
        cluster.start()
        for number, broker in cluster.brokers.items():  # one of them is the controller
            with moldau.Admin(broker.address) as admin:
                newer = authority.signed("broker", "127.0.0.1")
                admin.configs.alter("broker", str(number), {name: str(newer)})
                with pytest.raises(KafkaError, match="the new certificate is for 'CN=another', not for 'CN=broker'"):
                    admin.configs.alter("broker", str(number), {name: str(authority.signed("another", "127.0.0.1"))})
            assert "uses the certificates in its files as they are now" in broker.log()
    finally:
        cluster.stop()


@pytest.mark.check
def test_a_running_cluster_moves_to_tls_one_broker_after_the_other(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    before = {**BETWEEN_BROKERS, "inter.broker.listener.name": "PLAINTEXT"}
    cluster = ReplicatedBrokers(tmp_path, before | settings(authority))
    try:
        cluster.start()
        for number, broker in cluster.brokers.items():
            broker.stop()
            broker.settings["inter.broker.listener.name"] = "BROKERS"
            broker.start()
            with moldau.Producer(cluster.address, acks="all") as producer:
                producer.send("moved", b"%d" % number).result(60)
            cluster.wait_until_whole()
        assert "is reached without TLS: its listener for brokers, PLAINTEXT, has" in cluster.brokers[1].log()
    finally:
        cluster.stop()


EVERYTHING = {
    **BETWEEN_BROKERS,
    "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL,CLIENTS:SASL_SSL",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.clients.connections.max.reauth.ms": "3000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:CN=broker",
}
"""Brokers know each other by certificates; clients log in over TLS, again and again, and have rights and quotas. The
first listener is for the harness."""


@pytest.mark.check
def test_nothing_is_lost_or_doubled_with_everything_on_while_brokers_are_killed(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cluster = ReplicatedBrokers(tmp_path, EVERYTHING | settings(authority))
    alice = {
        "security_protocol": "SASL_SSL",
        "ssl_ca_location": str(authority.trusted),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "alice",
        "sasl_password": "alice-secret",
    }
    sent = [b"%d" % number for number in range(20_000)]
    try:
        cluster.start()
        with moldau.Admin(cluster.address) as admin:
            admin.create_topics(["replicated", "secret"])
            admin.alter_user_scram_credentials([ScramUpsertion("alice", "alice-secret", "SCRAM-SHA-512")])
            admin.create_acls([Acl("topic", "replicated", "User:alice", right) for right in ("read", "write")])
            admin.alter_client_quotas({(("user", "alice"),): {"producer_byte_rate": 10_000_000.0}})

        def secure() -> str:
            return ",".join(broker.addresses[2] for broker in cluster.brokers.values())

        with moldau.Producer(secure(), acks="all", enable_idempotence=True, **alice) as producer:
            with cluster.being_killed():
                for value in sent:
                    producer.send("replicated", value, partition=0)
                    if len(value) == 5:
                        time.sleep(0.0005)
                producer.flush()
        cluster.wait_until_whole()
        found: list[bytes | None] = []
        with moldau.Consumer(secure(), group_id=None, **alice) as consumer:
            consumer.assign([TopicPartition("replicated", 0)])
            consumer.seek_to_beginning()
            deadline = Deadline(60)
            while len(found) < len(sent) and not deadline.passed:
                found += [record.value for record in consumer.poll(500)]
        assert found == sent
        with moldau.Admin(secure(), **alice) as admin, pytest.raises(TopicAuthorizationFailed):
            admin.describe_topics(["secret"])
    finally:
        cluster.stop()
    assert cluster.kills
    assert all("alice-secret" not in broker.log() for broker in cluster.brokers.values())
