"""What members of a group tell each other is, byte for byte and in every version, what kio reads and writes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.static.constants import EntityType

from harness.tiers import examples
from moldau.errors import ProtocolViolation
from moldau.protocol import consumer, schema
from moldau.protocol.consumer import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.protocol import drawn
from tests.protocol.kio_reference import kio_bytes, kio_read, our_plain, plain, to_kio
from tests.protocol.test_messages_against_kio import differences

EVERY = [
    pytest.param(message, name, version, id=f"{message.__name__}-v{version}")
    for message, name in (
        (ConsumerProtocolSubscription, "consumer_protocol_subscription"),
        (ConsumerProtocolAssignment, "consumer_protocol_assignment"),
    )
    for version in range(4)
]


@pytest.mark.parametrize(("message", "name", "version"), EVERY)
@settings(max_examples=examples(10, 15))
@given(data=st.data())
def test_kio_reads_and_writes_the_same(message: type[Any], name: str, version: int, data: st.DataObject) -> None:
    kio_class = load_entity_schema(name, version, EntityType.data)
    assert differences(message, kio_class, version, flexible=False) == []
    meant = data.draw(drawn.messages(message, kio_class, version))
    written = bytes(schema.write(meant, version, False))
    read, size = kio_read(kio_class, written)
    assert size == len(written)
    assert plain(read) == our_plain(meant, version)
    assert kio_bytes(to_kio(meant, kio_class, version)) == written
    assert our_plain(schema.read(message, version, False, written)[0], version) == our_plain(meant, version)


def test_subscriptions_and_assignments_of_any_version_are_read() -> None:
    assert consumer.read_subscription(bytes.fromhex("0000 00000001 0002 7474 ffffffff")).topics == ["tt"]
    assert consumer.read_subscription(bytes.fromhex("0009 00000000 ffffffff 00000000 00000003 ffff")).generation_id == 3
    assert consumer.read_assignment(bytes.fromhex("0001 00000000 ffffffff")).assigned_partitions == []
    for data in (b"", b"\x00", b"\xff\xff\x00\x00", b"\x00\x00\x00\x00\x00\x09"):
        with pytest.raises(ProtocolViolation):
            consumer.read_subscription(data)


def test_the_user_data_of_sticky_members_is_read_with_and_without_a_generation() -> None:
    without = bytes.fromhex("00000001 0001 74 00000002 00000000 00000001")
    previous = consumer.read_sticky_user_data(without)
    assert [(t.topic, t.partitions) for t in previous.previous_assignment] == [("t", [0, 1])]
    assert previous.generation == -1
    with_it = without + bytes.fromhex("00000005")
    assert consumer.read_sticky_user_data(with_it).generation == 5
    assert consumer.sticky_user_data(consumer.read_sticky_user_data(with_it)) == with_it
    for data in (b"", b"\x00\x00\x00\x01", without[:-1]):
        with pytest.raises(ProtocolViolation):
            consumer.read_sticky_user_data(data)
