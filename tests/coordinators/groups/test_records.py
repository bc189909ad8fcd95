"""Records of the offsets topic are Kafka's: the bytes here were written by Apache Kafka 4.3.1, or by hand after its
definitions.
"""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.classic.records import ClassicGroupRecord, classic_group_record
from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.groups.records import read_record
from moldau.coordinators.offsets.records import OffsetRecord, offset_record
from moldau.errors import ProtocolViolation
from moldau.names import TopicPartition
from moldau.protocol import schema
from moldau.protocol.internal import GroupMetadataValue, MemberMetadata, OffsetCommitKey, OffsetCommitValue

TP = TopicPartition("t", 0)


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    topic_id = uuid.UUID("9bcb8805-a5d1-4e09-a01d-acb9b657aa1c")
    record = offset_record(
        "of", TP, OffsetCommitValue(offset=5, metadata="m", commit_timestamp=1795251325376, topic_id=topic_id)
    )
    assert record.key == b"\0\1" + b"\0\2of" + b"\0\1t" + b"\0\0\0\0"
    assert record.value is not None
    assert record.value[:2] == b"\0\4"
    assert len(record.value) == 43, "as long as Kafka's"
    assert record.value.endswith(b"\1\0\x10" + topic_id.bytes), "one tagged field, number 0, of 16 bytes"


def test_an_offset_with_an_expiry_of_its_own_is_written_in_the_version_that_has_one() -> None:
    record = offset_record("ret", TP, OffsetCommitValue(offset=5, metadata="m", commit_timestamp=1, expire_timestamp=2))
    assert record.value is not None
    assert record.value[:2] == b"\0\1"
    assert len(record.value) == 29, "as long as Kafka's"


def test_a_group_without_members_is_written_as_kafka_writes_it() -> None:
    record = classic_group_record(
        "g", GroupMetadataValue(protocol_type="", protocol=None, leader=None, current_state_timestamp=7)
    )
    assert record.key == b"\0\2\0\1g"
    assert record.value == b"\0\3" + b"\0\0" + b"\0\0\0\0" + b"\xff\xff" + b"\xff\xff" + (7).to_bytes(8) + b"\0\0\0\0"


def test_what_is_written_is_read_back() -> None:
    member = MemberMetadata(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=2,
        subscription=b"s",
        assignment=b"a",
    )
    group = GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m",
        current_state_timestamp=4,
        members=[member],
    )
    assert read_record(classic_group_record("g", group)) == ClassicGroupRecord("g", group)
    offset = OffsetCommitValue(offset=-5, leader_epoch=9, metadata="", commit_timestamp=1, topic_id=uuid.UUID(int=1))
    assert read_record(offset_record("g", TP, offset)) == OffsetRecord("g", TP, offset)
    assert read_record(classic_group_record("g", None)) == ClassicGroupRecord("g", None)
    assert read_record(offset_record("g", TP, None)) == OffsetRecord("g", TP, None)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_a_committed_offset_is_read(version: int) -> None:
    value = version.to_bytes(2) + (5).to_bytes(8) + ((8).to_bytes(4) if version >= 3 else b"")
    value += b"\2m" if version >= 4 else b"\0\1m"
    value += (1).to_bytes(8) + ((2).to_bytes(8) if version == 1 else b"") + (b"\0" if version >= 4 else b"")
    record = read_record(InternalRecord(offset_record("g", TP, None).key, value))
    assert isinstance(record, OffsetRecord)
    assert record.value is not None
    assert (record.value.offset, record.value.metadata, record.value.commit_timestamp) == (5, "m", 1)
    assert record.value.leader_epoch == (8 if version >= 3 else -1)
    assert record.value.expire_timestamp == (2 if version == 1 else -1)


def test_the_oldest_kind_of_key_is_an_offset_too() -> None:
    key = offset_record("g", TP, None).key
    assert read_record(InternalRecord(b"\0\0" + key[2:], None)) == OffsetRecord("g", TP, None)


def test_kinds_and_versions_nobody_knows_are_passed_over() -> None:
    assert read_record(InternalRecord(b"\0\x0a\0\1g", b"\0\0")) is None
    assert read_record(InternalRecord(b"\0\3\0\1g", b"\0\x09rest")) is None
    assert read_record(InternalRecord(classic_group_record("g", None).key, b"\0\x63rest")) is None
    assert read_record(InternalRecord(offset_record("g", TP, None).key, b"\xff\xff")) is None


def test_a_record_that_is_cut_short_is_a_violation() -> None:
    whole = classic_group_record("g", GroupMetadataValue(protocol_type="consumer"))
    assert whole.value is not None
    for end in range(len(whole.value)):
        with pytest.raises(ProtocolViolation):
            read_record(InternalRecord(whole.key, whole.value[:end]))
    for end in range(len(whole.key)):
        with pytest.raises(ProtocolViolation):
            read_record(InternalRecord(whole.key[:end], whole.value))


@given(
    group=st.text(max_size=5),
    topic=st.text(max_size=5),
    offset=st.integers(-(2**63), 2**63 - 1),
    epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=4) | st.integers(120, 130).map("m".__mul__),
    topic_id=st.uuids() | st.just(uuid.UUID(int=0)),
    expiry=st.just(-1) | st.integers(0, 2**40),
)
def test_what_is_packed_by_hand_is_what_the_table_says(
    group: str, topic: str, offset: int, epoch: int, metadata: str, topic_id: uuid.UUID, expiry: int
) -> None:
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=7,
        expire_timestamp=expiry,
        topic_id=topic_id,
    )
    version = 4 if expiry < 0 else 1
    record = offset_record(group, TopicPartition(topic, 3), value)
    key = OffsetCommitKey(group=group, topic=topic, partition=3)
    assert record.key == b"\0\1" + schema.write(key, 0, False)
    assert record.value == version.to_bytes(2) + schema.write(value, version, version == 4)
    if version == 1:
        value.leader_epoch, value.topic_id = -1, uuid.UUID(int=0)
    assert read_record(record) == OffsetRecord(group, TopicPartition(topic, 3), value)


@given(st.binary(max_size=60))
def test_a_value_of_any_bytes_is_read_as_the_table_reads_it_or_refused(rest: bytes) -> None:
    record = InternalRecord(offset_record("g", TP, None).key, b"\0\4" + rest)
    try:
        expected, _ = schema.read(OffsetCommitValue, 4, True, rest)
    except ProtocolViolation:
        with pytest.raises(ProtocolViolation):
            read_record(record)
        return
    read = read_record(record)
    assert isinstance(read, OffsetRecord)
    assert read.value == expected


@given(st.binary(max_size=20))
def test_a_key_of_any_bytes_is_read_as_the_table_reads_it_or_refused(rest: bytes) -> None:
    record = InternalRecord(b"\0\1" + rest, None)
    try:
        expected, _ = schema.read(OffsetCommitKey, 0, False, rest)
    except ProtocolViolation:
        with pytest.raises(ProtocolViolation):
            read_record(record)
        return
    assert read_record(record) == OffsetRecord(expected.group, TopicPartition(expected.topic, expected.partition), None)
