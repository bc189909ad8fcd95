"""Records of internal topics, as Apache Kafka 4.3.1 wrote them, and as nobody should."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.errors import ProtocolViolation
from moldau.protocol import internal, schema, stored
from moldau.protocol.stored import OFFSETS, TRANSACTIONS, read_stored

MEMBER = bytes.fromhex(
    "0000 00 00 11636f6e736f6c652d636f6e73756d6572 0b2f3132372e302e302e31 02 037474 01 000493e0 00 01 00 01 00"
)
"""Of a member of a consumer group; its last field is tagged and null."""
PREPARE_ABORT = bytes.fromhex(
    "0001 0000000000000009 0001 000dbba0 03 02 0d7472616e73616374696f6e73 02 00000000 00"
    "000001a1fe073348 000001a1fe07332b 02 00 08 0000000000000009 02 02 0002"
)


def key(number: int, *texts: str) -> bytes:
    return number.to_bytes(2) + b"".join(len(text).to_bytes(2) + text.encode() for text in texts)


def test_a_transaction_in_the_middle_of_its_abort() -> None:
    found = read_stored(TRANSACTIONS, key(0, "writer-0"), PREPARE_ABORT)
    assert found is not None and (found.kind, found.version) == ("transaction", 1)
    assert found.key.transactional_id == "writer-0"
    value = found.value
    assert (value.producer_id, value.previous_producer_id, value.next_producer_id) == (9, 9, -1)
    assert (value.producer_epoch, value.transaction_timeout_ms, value.client_transaction_version) == (1, 900_000, 2)
    assert stored.TRANSACTION_STATES[value.transaction_status] == "PrepareAbort"
    assert [(one.topic, one.partition_ids) for one in value.transaction_partitions] == [("transactions", [0])]
    assert bytes(schema.write(value, 1, True)) == PREPARE_ABORT[2:]


def test_a_member_whose_tagged_struct_is_null() -> None:
    found = read_stored(OFFSETS, key(5, "newg", "a-member"), MEMBER)
    assert found is not None and found.kind == "consumer group member"
    assert (found.key.group, found.key.member_id) == ("newg", "a-member")
    assert found.value.subscribed_topic_names == ["tt"] and found.value.classic_member_metadata is None
    classic = internal.ClassicMemberMetadata(session_timeout_ms=7)
    there = internal.ConsumerGroupMemberMetadataValue(classic_member_metadata=classic)
    written = bytes(schema.write(there, 0, True))
    assert schema.read(internal.ConsumerGroupMemberMetadataValue, 0, True, written)[0] == there


def test_what_is_gone_unknown_or_newer_is_told_apart() -> None:
    gone = read_stored(TRANSACTIONS, key(0, "writer-0"), None)
    assert gone is not None and gone.value is None and gone.version == -1
    assert read_stored(TRANSACTIONS, key(9, "x"), None) is None
    assert read_stored(TRANSACTIONS, key(0, "x"), b"\x00\x63" + PREPARE_ABORT[2:]) is None


@pytest.mark.parametrize("kinds", [OFFSETS, TRANSACTIONS])
@given(key=st.binary(max_size=40), value=st.none() | st.binary(max_size=60), number=st.integers(0, 17))
def test_any_bytes_are_read_or_refused(kinds: Any, key: bytes, value: bytes | None, number: int) -> None:
    try:
        read_stored(kinds, number.to_bytes(2) + key, value)
    except ProtocolViolation:
        return


def test_every_cut_and_bend_of_a_real_record_is_read_or_refused() -> None:
    chance = random.Random(3)
    for record, kinds, name in ((PREPARE_ABORT, TRANSACTIONS, key(0, "w")), (MEMBER, OFFSETS, key(5, "g", "m"))):
        for length in range(len(record)):
            with pytest.raises(ProtocolViolation):
                read_stored(kinds, name, record[:length])
        for _ in range(300):
            bent = bytearray(record)
            bent[chance.randrange(2, len(bent))] ^= 1 << chance.randrange(8)
            try:
                read_stored(kinds, name, bytes(bent))
            except ProtocolViolation:
                continue
