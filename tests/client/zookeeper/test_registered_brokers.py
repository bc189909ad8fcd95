"""Addresses of brokers in the texts that they register, of every version; nonsense is no broker."""

import pytest

from moldau.client.zookeeper.registered_brokers import address_in
from moldau.client.zookeeper.registered_topics import first_replicas
from moldau.peers.address import Address

NEWEST = (
    b'{"features":{},"listener_security_protocol_map":{"INSIDE":"PLAINTEXT","OUTSIDE":"SASL_SSL"},'
    b'"endpoints":["OUTSIDE://far:9093","INSIDE://[::1]:9092"],"jmx_port":-1,"port":-1,"host":null,"version":5}'
)


@pytest.mark.parametrize(
    ("text", "protocol", "address"),
    [
        (b'{"jmx_port":-1,"timestamp":"17","host":"a","version":1,"port":9092}', "PLAINTEXT", Address("a", 9092)),
        (b'{"host":"a","version":1,"port":9092}', "SSL", None),
        (b'{"endpoints":["PLAINTEXT://a:9092","SSL://a:9093"],"host":"a","port":9092}', "SSL", Address("a", 9093)),
        (NEWEST, "PLAINTEXT", Address("::1", 9092)),
        (NEWEST, "SASL_SSL", Address("far", 9093)),
        (NEWEST, "SSL", None),
    ],
)
def test_a_broker_is_found_at_the_listener_of_the_clients_protocol(
    text: bytes, protocol: str, address: Address | None
) -> None:
    assert address_in(text, protocol) == address


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"creator-17:host:9092",
        b"[]",
        b"{}",
        b'{"host":"a"}',
        b'{"host":"a","port":"x"}',
        b'{"host":"a","port":99999}',
        b'{"host":"a","port":1e999}',
        b'{"host":7,"port":1}',
        b'{"endpoints":[7]}',
        b'{"endpoints":["PLAINTEXT://a"]}',
        b'{"endpoints":["PLAINTEXT://a:9"],"listener_security_protocol_map":7}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_text_without_an_address_is_no_broker(text: bytes) -> None:
    assert address_in(text, "PLAINTEXT") is None


def test_the_first_replica_of_each_partition_is_in_the_node_of_a_topic() -> None:
    assert first_replicas(b'{"version":3,"partitions":{"0":[2,1],"1":[1,2]},"topic_id":"x"}') == {0: 2, 1: 1}
    malformed = [b"", b"{}", b"[]", b'{"partitions":{"0":[]}}', b'{"partitions":{"x":[1]}}', b'{"partitions":7}']
    for text in (*malformed, b'{"partitions":{"0":[1e999]}}'):
        assert first_replicas(text) is None
