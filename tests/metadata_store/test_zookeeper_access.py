"""How a session in ZooKeeper is opened, by the settings: times, user, TLS, and who may read and change what."""

import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.certificates import PASSWORD, Authority
from moldau.config import broker_config
from moldau.errors import ConfigError
from moldau.metadata_store.zookeeper_access import Access, ZooKeeperAccess, access_of
from moldau.transport.jaas import Login

TLS = {"zookeeper.ssl.client.enable": "true"}
JAAS = 'Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="p"; };'


def access(settings: Mapping[str, str] = {}, environment: Mapping[str, str] = {}) -> ZooKeeperAccess:
    config, _ = broker_config({f"zookeeper.{name.removeprefix('zookeeper.')}": text for name, text in settings.items()})
    return access_of(replace(config, zookeeper_connect="zk1:2181,zk2:2181/kafka"), environment)


def jaas(folder: Path) -> str:
    (folder / "jaas.conf").write_text(JAAS)
    return f"-Xmx1g -Djava.security.auth.login.config={folder / 'jaas.conf'}"


def test_the_defaults_are_kafkas() -> None:
    assert access() == ZooKeeperAccess("zk1:2181,zk2:2181/kafka", 18.0, None, 1000)


def test_times_and_questions_in_flight_are_as_they_were_set() -> None:
    settings = {"session.timeout.ms": "6000", "connection.timeout.ms": "500", "max.in.flight.requests": "10"}
    assert access(settings)[1:4] == (6.0, 0.5, 10)


def test_the_user_is_that_of_the_jaas_file_which_kafka_opts_names(tmp_path: Path) -> None:
    opts = jaas(tmp_path)
    assert access(environment={"KAFKA_OPTS": opts}).login == Login("kafka", "p")
    assert access(environment={"KAFKA_OPTS": f"{opts} -Dzookeeper.sasl.client=false"}).login is None
    assert access(environment={"KAFKA_OPTS": f"{opts} -Dzookeeper.sasl.clientconfig=Other"}).login is None
    assert access(environment={"KAFKA_OPTS": "-Xmx1g"}).login is None
    with pytest.raises(ConfigError, match="KAFKA_OPTS in the environment cannot be split"):
        access(environment={"KAFKA_OPTS": "'"})


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/brokers/ids/1", Access.READABLE),
        ("/config/topics/t", Access.READABLE),
        ("/moldau", Access.READABLE),
        ("/consumers", Access.OPEN),
        ("/config/users", Access.PRIVATE),
        ("/config/users/u", Access.PRIVATE),
        ("/config/brokers/1", Access.PRIVATE),
        ("/delegation_token/tokens/t", Access.PRIVATE),
        ("/moldau/secret", Access.PRIVATE),
    ],
)
def test_nodes_are_protected_as_kafka_protects_them(tmp_path: Path, path: str, who: Access) -> None:
    assert access({"set.acl": "true"}, {"KAFKA_OPTS": jaas(tmp_path)}).access_to(path) is who
    assert access(environment={"KAFKA_OPTS": jaas(tmp_path)}).access_to(path) is Access.OPEN


def test_nodes_are_not_protected_for_nobody(tmp_path: Path) -> None:
    for settings in ({}, TLS):
        with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl is true, but ZooKeeper does not know this broker"):
            access({"set.acl": "true", **settings})
    pem = str(Authority(tmp_path).signed("broker"))
    mine = {"ssl.keystore.location": pem, "ssl.keystore.password": PASSWORD, **TLS}
    assert access({"set.acl": "true", **mine}).protects


def context_of(settings: dict[str, str]) -> ssl.SSLContext:
    tls = access(settings).tls
    assert tls is not None
    return tls.context()


def test_tls_is_version_1_2_with_the_name_of_the_host_unless_the_settings_say_otherwise() -> None:
    assert access().tls is None
    context = context_of(TLS)
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    context = context_of(
        {"ssl.enabled.protocols": "TLSv1.3,TLSv1.2", "ssl.endpoint.identification.algorithm": "", **TLS}
    )
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)


def test_cipher_suites_may_have_the_names_that_java_gives_them() -> None:
    suites = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA,ECDHE-ECDSA-CHACHA20-POLY1305"
    context = context_of({"ssl.cipher.suites": suites, **TLS})
    names = {suite["name"] for suite in context.get_ciphers() if suite["protocol"] != "TLSv1.3"}
    assert names == {"ECDHE-RSA-AES128-GCM-SHA256", "AES256-SHA", "ECDHE-ECDSA-CHACHA20-POLY1305"}


def test_keys_and_certificates_are_read_from_pem_and_from_pkcs12(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = authority.signed("broker")
    for key, trusted in ((pem, authority.trusted), (pem.with_suffix(".p12"), authority.trusted_in_pkcs12())):
        settings = {"keystore.location": str(key), "keystore.password": PASSWORD, "truststore.location": str(trusted)}
        context = context_of({**{f"ssl.{name}": text for name, text in settings.items()}, **TLS})
        assert [dict(item[0] for item in one["subject"])["commonName"] for one in context.get_ca_certs()] == [
            "authority"
        ]


def test_what_cannot_be_a_connection_with_tls_is_refused_in_one_sentence(tmp_path: Path) -> None:
    pem = Authority(tmp_path).signed("broker")
    (tmp_path / "text.pem").write_text("text")
    (tmp_path / "text.p12").write_text("text")
    key, trusted = "ssl.keystore.location", "ssl.truststore.location"
    for settings, sentence in (
        ({"clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO"}, "ClientCnxnSocketNIO, which has no TLS"),
        ({"ssl.protocol": "SSLv3"}, "'SSLv3' is no version of TLS that zookeeper.ssl takes"),
        ({"ssl.endpoint.identification.algorithm": "LDAP"}, "algorithm must be HTTPS or empty, not 'LDAP'"),
        ({"ssl.cipher.suites": "NONE"}, "names no cipher suite that Python has: NONE"),
        ({key: str(pem)}, "keystore.location names: "),
        ({key: str(pem), "ssl.keystore.password": "wrong"}, "keystore.location names: "),
        ({key: str(pem.with_suffix(".p12")), "ssl.keystore.password": "wrong"}, "nvalid password"),
        ({key: "/absent.pem"}, "cannot use /absent.pem, which zookeeper.ssl.keystore.location names: No such file"),
        ({key: str(tmp_path / "text.p12")}, "keystore.location names: "),
        ({trusted: str(tmp_path / "text.pem")}, "truststore.location names: "),
        ({trusted: "/absent.p12"}, "truststore.location names: No such file"),
        ({trusted: "/kafka.jks"}, "only Java reads: convert it with `keytool -importkeystore -srckeystore /kafka.jks"),
        ({trusted: "/kafka"}, "cannot use /kafka, which zookeeper.ssl.truststore.location names: No such file"),
    ):
        with pytest.raises(ConfigError) as refused:
            access({**settings, **TLS})
        assert sentence in str(refused.value)
        assert "\n" not in str(refused.value)
