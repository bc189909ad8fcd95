"""What a follower appends of its leader's batches, and what it refuses."""

from pathlib import Path

import pytest

from harness.logs import NOW_MS, append, config, open_log, read_all, rows
from moldau.errors import ErrorCode, KafkaError
from moldau.log import replicated
from moldau.records.batch import encode_batch, read_header, write_batch
from moldau.records.validation import assign_offsets


def batch(base: int, count: int = 1, epoch: int = 0) -> bytes:
    """A batch as a leader has it in its log."""
    data = encode_batch(rows(count))
    assign_offsets(data, base, epoch, None, NOW_MS)
    return bytes(data)


def test_whole_batches_are_appended_and_a_cut_one_is_left(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    last = batch(5)
    assert replicated.append(log, batch(0, 3) + batch(3, 2) + last[:-1], 0, NOW_MS) == 5
    assert replicated.append(log, last[:-1], 0, NOW_MS) == 5
    assert replicated.append(log, b"", 0, NOW_MS) == 5
    assert [record.offset for record in read_all(log)] == [0, 1, 2, 3, 4]


def test_gaps_that_compaction_left_stay(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    assert replicated.append(log, batch(10) + batch(20, 2), 0, NOW_MS) == 22
    assert [record.offset for record in read_all(log)] == [10, 20, 21]
    assert append(log, 1).base_offset == 22


def test_segments_follow_each_other_where_the_leader_has_gaps(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=200))
    for base in (0, 5, 10, 15):
        replicated.append(log, batch(base, 2), 0, NOW_MS)
    assert len(log.segments) > 1
    ends = [segment.next_offset() for segment in log.segments[:-1]]
    assert ends == [segment.base_offset for segment in log.segments[1:]]


def test_a_batch_larger_than_a_segment_is_appended(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=100))
    assert replicated.append(log, batch(0, 50) + batch(50, 50), 0, NOW_MS) == 100
    assert len(read_all(log)) == 100


def damaged(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (damaged(batch(3), 64), "checksum"),
        (damaged(batch(3), 16), "no batch of format 2"),
        (batch(2), "follows offset 2"),
        (batch(3, epoch=6), "leader epoch 6"),
        (batch(3, epoch=1), "leader epoch 1"),
    ],
)
def test_a_reply_with_a_batch_that_cannot_be_there_is_not_appended(tmp_path: Path, second: bytes, why: str) -> None:
    log = open_log(tmp_path / "p")
    replicated.append(log, batch(0, epoch=2), 2, NOW_MS)
    with pytest.raises(KafkaError, match=why) as refused:
        replicated.append(log, batch(1, 2, epoch=2) + second, 5, NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, log.offline) == (1, False)


def test_no_record_is_looked_at(tmp_path: Path) -> None:
    """The leader checked the records; a follower takes their bytes as they are."""
    log = open_log(tmp_path / "p")
    header = read_header(batch(0, 2))
    data = write_batch(
        bytearray(61) + b"no records at all",
        room=61,
        count=2,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        base_offset=0,
        leader_epoch=0,
        last_offset_delta=1,
    )
    assert replicated.append(log, bytes(data), 0, NOW_MS) == 2
    assert log.read_batches(0, 1000) == bytes(data)


def test_a_gap_beyond_what_a_segment_can_hold_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    replicated.append(log, batch(0), 0, NOW_MS)
    with pytest.raises(KafkaError, match="gap"):
        replicated.append(log, batch(1 << 33), 0, NOW_MS)
    assert log.log_end_offset == 1
