"""A properties file of Kafka 0.7, and the addresses that Kafka had before 3.0, stand for today's settings."""

import pytest

from moldau.config import Listener, broker_config, parse_properties
from moldau.config.older_names import current, listener
from moldau.errors import ConfigError

KAFKA_0_7 = """
brokerid=7
hostname=example.org
port=9093
num.threads=8
socket.send.buffer=1048576
socket.receive.buffer=1048577
max.socket.request.bytes=104857601
log.dir=/tmp/kafka-logs
num.partitions=2
log.flush.interval=10000
log.default.flush.interval.ms=1000
log.default.flush.scheduler.interval.ms=1001
log.retention.hours=168
log.retention.size=1073741824
log.file.size=536870912
log.cleanup.interval.mins=2
enable.zookeeper=true
zk.connect=localhost:2181/kafka
zk.connectiontimeout.ms=1000000
zk.sessiontimeout.ms=7000
"""


def test_a_properties_file_of_kafka_0_7_has_todays_names() -> None:
    properties, notices = current(parse_properties(KAFKA_0_7))
    assert properties == {
        "advertised.listeners": "PLAINTEXT://example.org:9093",
        "broker.id": "7",
        "listeners": "PLAINTEXT://:9093",
        "log.dir": "/tmp/kafka-logs",
        "log.flush.interval.messages": "10000",
        "log.flush.interval.ms": "1000",
        "log.flush.scheduler.interval.ms": "1001",
        "log.retention.bytes": "1073741824",
        "log.retention.check.interval.ms": "120000",
        "log.retention.hours": "168",
        "log.segment.bytes": "536870912",
        "num.io.threads": "8",
        "num.partitions": "2",
        "socket.receive.buffer.bytes": "1048577",
        "socket.request.max.bytes": "104857601",
        "socket.send.buffer.bytes": "1048576",
        "zookeeper.connect": "localhost:2181/kafka",
        "zookeeper.connection.timeout.ms": "1000000",
        "zookeeper.session.timeout.ms": "7000",
    }
    [notice] = notices
    assert "brokerid is broker.id" in notice
    assert "zk.connect is zookeeper.connect" in notice


def test_it_starts_alone_if_it_has_no_zookeeper() -> None:
    config, warnings = broker_config(parse_properties(KAFKA_0_7.replace("zookeeper=true", "zookeeper=false")))
    assert (config.node_id, config.log_segment_bytes, config.zookeeper_connect) == (7, 536870912, None)
    assert config.zookeeper_session_timeout_ms == 7000
    [opened] = config.client_listeners
    assert (opened.host, opened.port, opened.advertised) == ("", 9093, Listener("PLAINTEXT", "example.org", 9093))
    assert "enable.zookeeper=false is no zookeeper.connect" in warnings[0]


@pytest.mark.parametrize(
    ("properties", "listeners", "advertised"),
    [
        ({"port": "1"}, "PLAINTEXT://:1", None),
        ({"hostname": "a"}, "PLAINTEXT://:9092", "PLAINTEXT://a:9092"),
        ({"hostname": "::1", "port": "1"}, "PLAINTEXT://:1", "PLAINTEXT://[::1]:1"),
        ({"host.name": "a", "port": "1"}, "PLAINTEXT://a:1", None),
        ({"host.name": "a", "advertised.port": "2"}, "PLAINTEXT://a:9092", "PLAINTEXT://a:2"),
        ({"advertised.host.name": "b"}, None, "PLAINTEXT://b:9092"),
        ({"listeners": "PLAINTEXT://c:3", "port": "1", "hostname": "a"}, "PLAINTEXT://c:3", "PLAINTEXT://a:0"),
        (
            {"port": "1", "hostname": "a", "advertised.listeners": "PLAINTEXT://d:4"},
            "PLAINTEXT://:1",
            "PLAINTEXT://d:4",
        ),
    ],
)
def test_an_address_becomes_a_listener_unless_there_is_one(
    properties: dict[str, str], listeners: str | None, advertised: str | None
) -> None:
    found, _ = current(properties)
    assert found.get("listeners") == listeners
    assert found.get("advertised.listeners") == advertised
    if "listeners" not in properties:
        assert listener(properties) == listeners


def test_a_setting_may_have_both_names_if_they_agree() -> None:
    assert current({"brokerid": "3", "broker.id": "3"})[0] == {"broker.id": "3"}
    assert current({"broker.id": "3"}) == ({"broker.id": "3"}, [])


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"brokerid": "1", "broker.id": "2"}, "brokerid is an older name of broker.id, and they differ"),
        ({"enable.zookeeper": "maybe"}, "enable.zookeeper must be true or false, not 'maybe'"),
        ({"enable.zookeeper": "true"}, "enable.zookeeper is true, but zookeeper.connect names no server"),
        ({"log.cleanup.interval.mins": "x"}, "log.cleanup.interval.mins must be a whole number, not 'x'"),
        ({"port": "x"}, "listeners must be a list of NAME://HOST:PORT, not 'PLAINTEXT://:x'"),
        ({"brokeridd": "1"}, "unknown setting 'brokeridd'; did you mean broker"),
        ({"brokerid": "x"}, "broker.id must be a whole number, not 'x'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        broker_config(properties)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
