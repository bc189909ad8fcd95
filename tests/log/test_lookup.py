"""A search among many segments looks at few of them."""

import errno
from pathlib import Path

import pytest

from harness.logs import NOW_MS, append, config, offset_for_time, open_log, rows
from moldau.errors import KafkaError
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.records.batch import batches
from moldau.replies import FileSlice
from moldau.runtime import RealFile


def test_a_time_is_looked_for_in_few_segments_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=80))
    for number in range(200):
        append(log, rows(1, NOW_MS + number))
    assert offset_for_time(log, NOW_MS + 5) == (NOW_MS + 5, 5)
    asked = []
    largest_timestamp = Segment.largest_timestamp
    monkeypatch.setattr(Segment, "largest_timestamp", lambda self: asked.append(self) or largest_timestamp(self))
    for number in (0, 17, 150, 199):
        assert offset_for_time(log, NOW_MS + number) == (NOW_MS + number, number)
    assert offset_for_time(log, NOW_MS + 200) is None
    assert len(asked) == 5


def test_times_are_found_as_segments_come_and_go(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=config(segment_bytes=80, retention_bytes=500))
    times = [NOW_MS + (number * 7919) % 50 for number in range(40)]
    for number, time in enumerate(times):
        append(log, rows(1, time))
        if number % 10 == 9:
            log.retain(NOW_MS, number + 1)
        start = int(log.log_start_offset)
        for asked in (NOW_MS, NOW_MS + 20, NOW_MS + 45, NOW_MS + 50):
            there = ((time, at) for at, time in enumerate(times[: number + 1]) if at >= start and time >= asked)
            assert offset_for_time(log, asked) == next(there, None)


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
