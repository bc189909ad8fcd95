"""Where a reader goes on is known before it asks, and a slice that cannot be sent is somebody's fault."""

import errno
from pathlib import Path

import pytest

from harness.logs import append, config, open_log
from moldau.errors import KafkaError
from moldau.log.log import Log
from moldau.log.slicing import READERS_MAX
from moldau.records.batch import batches
from moldau.replies import FileSlice
from moldau.runtime import RealFile


@pytest.mark.parametrize("cut", [0, 5], ids=["between two batches", "in a batch"])
def test_a_reader_that_goes_on_is_looked_ahead_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=100_000))
    for _ in range(2000):
        append(log, 3)
    found = log.segments[0].find(0)
    assert found is not None
    bytes_max = 100 * found.header.size + cut
    reads = []
    read = RealFile.read
    monkeypatch.setattr(RealFile, "read", lambda self, *a: reads.append(a) or read(self, *a))
    at, pieces, costs = 0, 0, 0
    while at < log.log_end_offset:
        reads.clear()
        piece = log.read(at, bytes_max, log.log_end_offset)
        costs += len(reads)
        assert piece is not None
        data = piece.file.read(piece.length, piece.offset)
        headers = [header for _, header in batches(data)]
        assert headers[0].base_offset == at
        at, pieces = headers[-1].next_offset, pieces + 1
        if piece.on_left is not None:
            piece.on_left()
    assert pieces >= 20
    assert costs < pieces, "most reads after the first cost no other read of a file"


def a_piece_cut_off(log: Log) -> FileSlice:
    for _ in range(200):
        append(log, 3)
    piece = log.read(0, 9_000, 600)
    assert piece is not None
    assert piece.on_left is not None
    return piece


def test_what_was_looked_ahead_for_is_gone_with_the_records(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    piece = a_piece_cut_off(log)
    whole = [header for _, header in batches(piece.file.read(piece.length, piece.offset))]
    next_offset = whole[-1].next_offset
    assert log.segments[0].find(next_offset) is not None
    piece.on_left()
    log.segments[0].truncate(whole[0].size)
    assert log.segments[0].find(next_offset) is None


def test_nobody_looks_ahead_in_a_file_that_was_let_go(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    piece = a_piece_cut_off(log)
    segment = log.segments[0]
    segment.log.let_go()
    piece.on_left()
    assert segment.log.file is None


def test_a_disk_that_fails_while_looking_ahead_fails_whoever_reads_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "p")
    piece = a_piece_cut_off(log)

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "a read failed")

    monkeypatch.setattr(RealFile, "read", fail)
    piece.on_left()
    with pytest.raises(KafkaError, match="failed or is closed"):
        log.read(300, 9_000, 600)


def test_a_segment_remembers_the_places_of_a_few_readers_only(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(index_interval_bytes=0))
    segment = log.segments[0]
    for _ in range(3 * READERS_MAX):
        append(log, 3)
        end = log.log_end_offset
        assert log.read(end - 3, 1 << 20, end) is not None
    assert list(segment.stops) == [3 * number for number in range(2 * READERS_MAX + 1, 3 * READERS_MAX + 1)]
    for number in range(READERS_MAX + 2):  # every other batch: each reader takes its place away when it goes on
        piece = log.read(6 * number, segment.size // (3 * READERS_MAX) + 1, log.log_end_offset)
        assert piece is not None
        assert piece.on_left is not None
        piece.on_left()
    assert segment.ahead is not None
    assert len(segment.ahead) == READERS_MAX


def test_a_slice_that_cannot_be_sent_fails_the_log_only_if_the_disk_has_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path / "p")
    append(log, 3)
    piece = log.read(0, 1000, 3)
    assert piece is not None
    assert piece.on_failed is not None
    piece.on_failed(OSError("the file ends before the slice"))
    assert "is damaged" in caplog.text
    assert not log.offline
    piece.on_failed(OSError(errno.EIO, "Input/output error"))
    assert log.offline
