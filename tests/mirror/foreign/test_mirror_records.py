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

SYNC = bytes.fromhex("00066f726465727300000002"), bytes.fromhex("00000000000000070000000000000005")
CHECKPOINT = (
    bytes.fromhex("000762696c6c696e6700084 12e6f726465727300000001".replace(" ", "")),
    bytes.fromhex("00000000000000000009000000000000000400026f6b"),
)
HEARTBEAT = bytes.fromhex("000141000142"), bytes.fromhex("0000000001900000c350")


def test_an_offset_sync_is_topic_and_partition_and_two_offsets() -> None:
    sync = OffsetSync(TopicPartition("orders", 2), 7, 5)
    assert sync_record(sync) == SYNC and read_sync(*SYNC) == sync


def test_a_checkpoint_has_a_version_before_its_offsets() -> None:
    told = GroupCheckpoint("billing", TopicPartition("A.orders", 1), 9, 4, "ok")
    assert checkpoint_record(told) == CHECKPOINT and read_checkpoint(*CHECKPOINT) == told


def test_a_heartbeat_names_both_clusters_and_the_time() -> None:
    when_ms = int.from_bytes(HEARTBEAT[1][2:], "big")
    assert heartbeat_record("A", "B", when_ms)[0] == HEARTBEAT[0]
    assert read_heartbeat(*heartbeat_record("A", "B", when_ms)) == ("A", "B", when_ms)


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
