"""Records of MirrorMaker's internal topics: bytes that Kafka 4.3.1 wrote are read and written."""

import pytest

from moldau.mirror.foreign.mirror_records import (
    GroupCheckpoint,
    OffsetSync,
    checkpoint_record,
    heartbeat_record,
    read_checkpoint,
    read_heartbeat,
    read_sync,
    sync_record,
)
from moldau.names import TopicPartition

SYNC = bytes.fromhex("00066f726465727300000001"), bytes.fromhex("00000000000000650000000000000065")
CHECKPOINT = (
    bytes.fromhex("000762696c6c696e670008412e6f726465727300000000"),
    bytes.fromhex("0000000000000000003c000000000000000100026f6b"),
)
HEARTBEAT = bytes.fromhex("000141000142"), bytes.fromhex("0000000001a223661d6f")


def test_an_offset_sync_is_topic_and_partition_and_two_offsets() -> None:
    sync = OffsetSync(TopicPartition("orders", 1), 101, 101)
    assert sync_record(sync) == SYNC and read_sync(*SYNC) == sync


def test_a_checkpoint_has_a_version_before_its_offsets() -> None:
    told = GroupCheckpoint("billing", TopicPartition("A.orders", 0), 60, 1, "ok")
    assert checkpoint_record(told) == CHECKPOINT and read_checkpoint(*CHECKPOINT) == told


def test_a_heartbeat_names_both_clusters_and_the_time() -> None:
    assert read_heartbeat(*HEARTBEAT) == ("A", "B", 1_795_890_224_495)
    assert heartbeat_record("A", "B", 1_795_890_224_495) == HEARTBEAT


@pytest.mark.parametrize("read", [read_sync, read_checkpoint, read_heartbeat])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"", b""),
        (b"\x7f\xff", b"\x00" * 30),
        (b"\xff\xff", b"\x00" * 30),
        (SYNC[0][:-1], SYNC[1]),
        (SYNC[0], SYNC[1] + b"x"),
        (CHECKPOINT[0], CHECKPOINT[1][:-1]),
        (CHECKPOINT[0], b"\x00\x01" + CHECKPOINT[1][2:]),
        (HEARTBEAT[0], b"\x00\x01" + HEARTBEAT[1][2:]),
        (b"\x00\x02\xff\xfe" + SYNC[0][-4:], SYNC[1]),
    ],
)
def test_what_is_no_such_record_is_left_out(read: object, key: bytes | None, value: bytes | None) -> None:
    assert callable(read) and read(key, value) is None
