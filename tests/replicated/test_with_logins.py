"""Three brokers that log in at each other, again and again, and users that log in at any of them."""

import time
from pathlib import Path

import moldau
from harness.replicated_brokers import ReplicatedBrokers
from moldau.admin import ScramUpsertion, TokenDescription
from moldau.transport.sasl.exchange import to_base64

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
AGAIN_S = 3
"""How long a login of a broker lasts."""
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "delegation.token.secret.key": "secret key of tokens",
    "listener.name.brokers.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.brokers.connections.max.reauth.ms": str(AGAIN_S * 1000),
    "listener.name.brokers.plain.sasl.jaas.config": (
        f'{MODULE} required username="broker" password="secret of brokers" user_broker="secret of brokers";'
    ),
}


def test_brokers_replicate_over_logins_that_end_and_users_are_those_of_the_cluster(tmp_path: Path) -> None:
    cluster = ReplicatedBrokers(tmp_path, SETTINGS)
    tokens: list[TokenDescription] = []
    try:
        cluster.start()
        for number, broker in cluster.brokers.items():  # two of them pass it on to the controller
            with moldau.Admin(broker.addresses[0]) as admin:
                made = ScramUpsertion(f"user-{number}", f"secret of {number}")
                assert list(admin.alter_user_scram_credentials([made]).values()) == [None]
        began, sent = time.monotonic(), 0
        with moldau.Producer(cluster.address, acks="all") as producer:
            while time.monotonic() < began + 2 * AGAIN_S + 1 or sent < 100:
                producer.send("replicated", b"%d" % sent).result(30)
                sent += 1
                time.sleep(0.02)
        cluster.wait_until_whole()
        for broker in cluster.brokers.values():
            for number in cluster.brokers:
                login = {"sasl_username": f"user-{number}", "sasl_password": f"secret of {number}"}
                settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512", **login}
                with moldau.Admin(broker.addresses[2], **settings) as admin:
                    assert len(admin.describe_cluster().brokers) == 3
            with moldau.Admin(broker.addresses[2], **settings) as admin:
                tokens.append(admin.create_delegation_token())
        for broker in cluster.brokers.values():
            for token in tokens:
                module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
                login = {
                    "security_protocol": "SASL_PLAINTEXT",
                    "sasl_mechanism": "SCRAM-SHA-512",
                    "sasl_jaas_config": f'{module} tokenauth="true" username="{token.token_id}" '
                    f'password="{to_base64(token.hmac)}";',
                }
                with moldau.Admin(broker.addresses[2], **login) as admin:
                    assert len(admin.describe_cluster().brokers) == 3
    finally:
        cluster.stop()
    for broker in cluster.brokers.values():
        log = broker.log()
        assert "Traceback" not in log and "has not authenticated" not in log and "its session has expired" not in log
        assert "secret" not in log
