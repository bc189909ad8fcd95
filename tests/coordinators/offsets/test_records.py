"""What reads and keeps offsets by hand agrees with the schema's reader, for whatever stands in the topic."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.offsets.committed import CommittedOffsets
from moldau.coordinators.offsets.messages import OffsetSettings
from moldau.coordinators.offsets.records import (
    OffsetRecord,
    Stamps,
    is_offset,
    is_value,
    offset_record,
    partition_at,
    place_of,
    read_offset,
    read_value,
    split_key,
    stamps,
)
from moldau.errors import ProtocolViolation
from moldau.names import TopicPartition
from moldau.protocol import schema
from moldau.protocol.internal import OffsetCommitKey, OffsetCommitValue

TEXTS = st.text(max_size=4) | st.integers(120, 135).map("m".__mul__)
INT32S, INT64S = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
VERSIONS = st.integers(0, 6) | st.sampled_from([-1, 2**15 - 1])
KNOWN_VERSIONS = range(5)


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """A value of any version, newer ones laid out as the newest we know, some with tagged fields nobody knows."""
    version = draw(VERSIONS)
    value = OffsetCommitValue(
        offset=draw(INT64S),
        leader_epoch=draw(INT32S),
        metadata=draw(TEXTS),
        commit_timestamp=draw(INT64S),
        expire_timestamp=draw(INT64S),
        topic_id=draw(st.uuids() | st.just(uuid.UUID(int=0))),
    )
    known = version if version in KNOWN_VERSIONS else 4
    data = bytearray(schema.write(value, known, known == 4))
    if known == 4 and value.topic_id.int == 0 and draw(st.booleans()):
        data[-1:] = b"\x01\x05\x02hi"
    return version.to_bytes(2, signed=True) + bytes(data)


@st.composite
def damaged(draw: st.DrawFn, of: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that are whole, cut short, too long, or have one byte changed."""
    data = bytearray(draw(of))
    match draw(st.integers(0, 3)):
        case 1:
            del data[draw(st.integers(0, len(data))) :]
        case 2:
            data += draw(st.binary(max_size=3))
        case 3 if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


VALUES = damaged(written()) | st.binary(max_size=60) | st.binary(min_size=40, max_size=40).map(b"\0\4".__add__)


def by_schema(data: bytes) -> OffsetCommitValue | None:
    """The reference: None for a version we do not know. Raises `ProtocolViolation`."""
    if len(data) < 2:
        raise ProtocolViolation("short")
    version = int.from_bytes(data[:2], signed=True)
    return schema.read(OffsetCommitValue, version, version == 4, data, 2)[0] if version in KNOWN_VERSIONS else None


def key_by_schema(key: bytes) -> OffsetCommitKey:
    return schema.read(OffsetCommitKey, 0, False, key, 2)[0]


def outcome(what: Any, *arguments: Any) -> Any:
    try:
        return what(*arguments)
    except ProtocolViolation:
        return ProtocolViolation


@given(VALUES)
def test_a_value_is_read_as_the_schema_reads_it(data: bytes) -> None:
    expected = outcome(by_schema, data)
    assert outcome(read_value, data) == expected
    assert outcome(is_value, data) == (expected if expected is ProtocolViolation else expected is not None)
    if isinstance(expected, OffsetCommitValue):
        assert stamps(data) == Stamps(expected.commit_timestamp, expected.expire_timestamp)


def test_a_usual_value_with_any_byte_changed_is_read_as_the_schema_reads_it() -> None:
    for metadata in ("", "m", "m" * 126, "m" * 127):
        value = OffsetCommitValue(offset=5, metadata=metadata, commit_timestamp=7, topic_id=uuid.UUID(int=3))
        usual = offset_record("g", TopicPartition("t", 0), value).value
        assert usual is not None
        assert stamps(usual) == Stamps(7, -1)
        for at in range(len(usual)):
            for byte in range(0, 256, 1 if at in (0, 1, 14) else 5 + 40 * (at > 50)):
                data = usual[:at] + bytes((byte,)) + usual[at + 1 :]
                expected = outcome(by_schema, data)
                assert outcome(read_value, data) == expected
                assert outcome(is_value, data) == (expected if expected is ProtocolViolation else expected is not None)


@st.composite
def keys(draw: st.DrawFn) -> bytes:
    group, topic = draw(TEXTS).encode(), draw(TEXTS).encode()
    kind, number = draw(st.sampled_from([b"\0\0", b"\0\1"])), draw(INT32S).to_bytes(4, signed=True)
    return kind + len(group).to_bytes(2) + group + len(topic).to_bytes(2) + topic + number


@given(damaged(keys()).filter(is_offset) | st.binary(max_size=20).map(b"\0\1".__add__))
def test_a_key_is_read_as_the_schema_reads_it(key: bytes) -> None:
    expected, split = outcome(key_by_schema, key), outcome(split_key, key)
    if expected is ProtocolViolation:
        assert split is ProtocolViolation
        return
    group, place = split
    partition = TopicPartition(expected.topic, expected.partition)
    assert (str(group, "utf-8"), partition_at(place)) == (expected.group, partition)
    assert place_of(partition) == place
    assert read_offset(InternalRecord(key, None)) == OffsetRecord(expected.group, partition, None)


@pytest.mark.parametrize("key", [b"\x80\0" + b"g" * 0x8000 + b"\0\1t\0\0\0\0", b"\0\1g\x80\0" + b"t" * 0x8004])
def test_a_key_without_a_name_is_no_key_however_long_it_is(key: bytes) -> None:
    assert outcome(key_by_schema, b"\0\1" + key) is ProtocolViolation
    assert outcome(split_key, b"\0\1" + key) is ProtocolViolation


FEW_KEYS = st.sampled_from(
    [
        b"\0%c" % kind + offset_record(group, TopicPartition(topic, number), None).key[2:]
        for kind in (0, 1)
        for group, topic, number in (("g", "t", 0), ("g", "t", 200), ("g", "ü", 0), ("h", "t", 0))
    ]
)


@given(st.lists(st.tuples(damaged(FEW_KEYS).filter(is_offset) | FEW_KEYS, st.none() | VALUES), max_size=12))
def test_offsets_are_whatever_the_records_say_one_after_the_other(records: list[tuple[bytes, bytes | None]]) -> None:
    offsets = CommittedOffsets(OffsetSettings())
    expected: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}
    for key, data in records:
        outcome(offsets.apply, InternalRecord(key, data))
        where, value = outcome(key_by_schema, key), None if data is None else outcome(by_schema, data)
        if where is ProtocolViolation or value is ProtocolViolation or (data is not None and value is None):
            continue
        group, partition = expected.setdefault(where.group, {}), TopicPartition(where.topic, where.partition)
        if value is None:
            group.pop(partition, None)
        else:
            group[partition] = value
    expected = {group_id: group for group_id, group in expected.items() if group}
    assert sorted(offsets.groups()) == sorted(expected)
    for group_id, group in expected.items():
        kept = offsets.of(group_id)
        assert (list(kept), len(kept), kept) == (list(group), len(group), group)
        assert list(kept.items()) == list(group.items())
        assert all(kept[partition] == value for partition, value in group.items())


def test_an_offset_that_was_not_committed_is_not_there() -> None:
    kept = CommittedOffsets(OffsetSettings()).of("g")
    for partition in (TopicPartition("t", 0), TopicPartition("t" * 40_000, 0)):
        assert partition not in kept
        assert kept.get(partition) is None
        with pytest.raises(KeyError):
            kept[partition]
