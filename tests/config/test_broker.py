"""A broker's settings: what a properties file says, what is warned about, what is refused."""

import pytest

from moldau.config import SETTINGS, BrokerConfig, ClientListener, Listener, broker_config, parse_properties
from moldau.config.kafka_names import NAMES
from moldau.errors import ConfigError

KRAFT_4 = """
process.roles=broker,controller
node.id=3
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://example.org:19092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/var/lib/logs
num.partitions=2
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=48
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
ZOOKEEPER_3 = """
broker.id=4
listeners=PLAINTEXT://0.0.0.0:9092
advertised.listeners=PLAINTEXT://example.org:9092
num.network.threads=3
log.dirs=/tmp/logs
log.retention.hours=168
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
inter.broker.protocol.version=3.9
group.initial.rebalance.delay.ms=0
"""


def test_nothing_said_is_every_default() -> None:
    config, warnings = broker_config({})
    assert (config, warnings) == (BrokerConfig(broker_id=1), [])
    default = Listener("PLAINTEXT", "", 9092)
    assert config.client_listeners == (ClientListener("PLAINTEXT", "PLAINTEXT", "", 9092, default),)


def test_a_broker_of_a_cluster_is_given_an_id() -> None:
    among = {"zookeeper.connect": "zk:2181"}
    with pytest.raises(ConfigError, match="needs an id"):
        broker_config(among)
    with pytest.raises(ConfigError, match="needs an id"):
        broker_config({**among, "broker.id": "-1"})
    with pytest.raises(ConfigError, match=r"broker\.id"):
        broker_config({**among, "broker.id": "-7"})
    assert broker_config({**among, "broker.id": "0"})[0].node_id == 0
    assert broker_config({**among, "node.id": "4"})[0].broker_id == 4


def test_the_first_member_of_a_group_need_not_wait_for_others() -> None:
    assert broker_config({})[0].group_initial_rebalance_delay_ms == 0


def test_a_properties_file_of_kafka_4_starts_and_what_is_not_here_is_named_once() -> None:
    config, warnings = broker_config(parse_properties(KRAFT_4))
    assert (config.node_id, config.broker_id, config.num_partitions, config.log_retention_hours) == (3, 3, 2, 48)
    advertised = Listener("PLAINTEXT", "example.org", 19092)
    assert config.client_listeners == (ClientListener("PLAINTEXT", "PLAINTEXT", "", 9092, advertised),)
    assert config.data_folders == ("/var/lib/logs",)
    absent, listeners = warnings
    assert "process.roles" in absent
    assert "share.coordinator.state.topic.replication.factor" in absent
    assert config.transaction_state_log_min_isr == 1
    assert "num.partitions" not in absent
    assert "CONTROLLER" in listeners


def test_a_properties_file_of_kafka_3_is_understood() -> None:
    config, warnings = broker_config(parse_properties(ZOOKEEPER_3))
    assert (config.node_id, config.group_initial_rebalance_delay_ms) == (4, 0)
    assert config.client_listeners[0].advertised == Listener("PLAINTEXT", "example.org", 9092)
    assert (config.zookeeper_connect, config.zookeeper_connection_timeout_ms) == ("localhost:2181", 18000)
    assert len(warnings) == 1


def test_a_migration_from_zookeeper_is_refused_unless_it_is_off() -> None:
    with pytest.raises(ConfigError, match="cannot migrate metadata"):
        broker_config({"zookeeper.metadata.migration.enable": "true"})
    assert len(broker_config({"zookeeper.metadata.migration.enable": "false"})[1]) == 1


@pytest.mark.parametrize("what", ["crl", "ocsp"])
def test_a_revocation_of_certificates_that_nobody_looks_at_is_refused(what: str) -> None:
    with pytest.raises(ConfigError, match=rf"remove zookeeper\.ssl\.{what}\.enable"):
        broker_config({f"zookeeper.ssl.{what}.enable": "true"})
    assert len(broker_config({f"zookeeper.ssl.{what}.enable": "false"})[1]) == 1


def test_a_password_is_not_in_what_is_printed_of_the_settings() -> None:
    config, _ = broker_config({"zookeeper.ssl.keystore.password": "hunter2"})
    assert config.zookeeper_ssl_keystore_password == "hunter2"
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("log.retention.hous", "log.retention.hours"),
        ("num.partition", "num.partitions"),
        ("zookeper.connect", "zookeeper.connect"),
        ("zookeeper.conect", "zookeeper.connect"),
    ],
)
def test_a_name_that_nobody_knows_is_refused_with_the_closest_one(name: str, closest: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean {closest}"):
        broker_config({name: "1"})


def test_a_name_like_no_other_is_refused_without_advice() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'qqqqqqqq'$"):
        broker_config({"qqqqqqqq": "1"})


@pytest.mark.parametrize("name", ["config.providers.file.class"])
def test_names_that_go_on_after_a_prefix_of_kafkas_are_kafkas(name: str) -> None:
    assert name in broker_config({name: "x"})[1][0]


STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def test_authorizers_of_kafka_are_understood_and_another_one_is_refused_with_what_to_do() -> None:
    for name in (STANDARD, "kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer", ""):
        config, warnings = broker_config({"authorizer.class.name": name})
        assert config.authorizer_class_name == name and not warnings
    with pytest.raises(ConfigError, match=r"'org.acme.Mine' is not known here: use org.apache"):
        broker_config({"authorizer.class.name": "org.acme.Mine"})


def test_super_users_are_principals_and_need_an_authorizer() -> None:
    config, _ = broker_config({"authorizer.class.name": STANDARD, "super.users": " User:ann ;User:CN=b,O=c; "})
    assert config.privileged == {"User:ann", "User:CN=b,O=c"}
    with pytest.raises(ConfigError, match=r"User:NAME, separated by semicolons: 'ann'"):
        broker_config({"authorizer.class.name": STANDARD, "super.users": "ann"})
    for name, value in (("super.users", "User:ann"), ("allow.everyone.if.no.acl.found", "true")):
        with pytest.raises(ConfigError, match=rf"{name} is set but authorizer.class.name is not"):
            broker_config({name: value})


def test_no_setting_is_both_ours_and_absent() -> None:
    assert not NAMES & SETTINGS.keys()


@pytest.mark.parametrize(
    "properties",
    [
        {"num.partitions": "x"},
        {"num.partitions": "0"},
        {"log.segment.bytes": "10"},
        {"node.id": "1", "broker.id": "2"},
        {"node.id": "-1"},
        {"log.retention.ms": "0"},
        {"log.retention.hours": "-2"},
        {"log.roll.ms": "0"},
        {"log.dir": ""},
        {"log.dirs": "/a,"},
        {"group.min.session.timeout.ms": "10", "group.max.session.timeout.ms": "9"},
        {"group.consumer.session.timeout.ms": "10000"},
        {"group.consumer.heartbeat.interval.ms": "20000"},
        {"group.consumer.assignors": ""},
        {"group.consumer.assignors": "mine"},
        {"group.coordinator.rebalance.protocols": "consumer"},
        {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "9"},
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        broker_config(properties)
    assert "\n" not in str(refused.value)


def test_several_data_folders_are_used_and_none_twice() -> None:
    config, warnings = broker_config({"log.dirs": "/a, /b"})
    assert (config.data_folders, warnings) == (("/a", "/b"), [])
    with pytest.raises(ConfigError, match="twice"):
        broker_config({"log.dirs": "/a,/b,/a"})


def test_what_was_said_is_known_even_if_it_is_the_default() -> None:
    assert broker_config({"num.partitions": "1", "broker.id": "1"})[0].given == {
        "num.partitions",
        "broker.id",
        "node.id",
    }


def test_consumers_read_from_the_leader_unless_the_selector_goes_by_rack() -> None:
    classes = "org.apache.kafka.common.replica."
    for given in ({}, {"replica.selector.class": ""}, {"replica.selector.class": f"{classes}LeaderSelector"}):
        assert not broker_config(given)[0].reads_near
    assert broker_config({"replica.selector.class": f"{classes}RackAwareReplicaSelector"})[0].reads_near


def test_a_selector_of_ones_own_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"no class of your own .* set org\.apache\.\S+RackAwareReplicaSelector"):
        broker_config({"replica.selector.class": "com.example.Nearest"})
