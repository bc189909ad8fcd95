"""What a long recovery says while it runs: what is left to read, in segments and bytes."""

import logging
from pathlib import Path

import pytest

from harness.logs import NOW_MS, TOPIC_ID, append, config
from moldau.log.folders.folder import LogFolder
from moldau.log.recovering import progress
from moldau.log.recovering.progress import Progress
from moldau.names import TopicPartition
from moldau.runtime import Runtime


class TickingClock:
    """A second passes every time it is looked at."""

    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        self.ms += 1000
        return self.ms

    def elapsed_s(self) -> float:
        return self.ms / 1000


def unclean(path: Path) -> dict[TopicPartition, int]:
    """Three partitions of several segments, the first of which is flushed."""
    folder = LogFolder(path, Runtime())
    partitions = [TopicPartition("t", number) for number in range(3)]
    for tp in partitions:
        log = folder.create(tp, TOPIC_ID, config(segment_bytes=2000))
        while len(log.segments) < 6:
            append(log, 5)
        if tp.partition == 0:
            log.flush()
    folder.checkpoint()
    points = {tp: folder.logs[tp].recovery_point for tp in partitions}
    folder.close(clean=False)
    return points


def test_only_what_is_behind_the_recovery_points_is_counted(tmp_path: Path) -> None:
    points = unclean(tmp_path)
    counted = Progress(tmp_path, Runtime(), points, list(points))
    assert (counted.partitions, counted.segments) == (3, 1 + 6 + 6)
    files = [*(tmp_path / "t-1").glob("*.log"), *(tmp_path / "t-2").glob("*.log")]
    active = sorted((tmp_path / "t-0").glob("*.log"))[-1]
    assert counted.bytes == sum(file.stat().st_size for file in [active, *files])


def test_a_long_recovery_tells_what_is_left_and_when_it_is_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    unclean(tmp_path)
    monkeypatch.setattr(progress, "LARGE_BYTES", 1)
    monkeypatch.setattr(progress, "EVERY_MS", 3000)
    caplog.set_level(logging.INFO)
    folder = LogFolder(tmp_path, Runtime(clock=TickingClock()))
    folder.load({"t": TOPIC_ID}, lambda _: config(segment_bytes=2000))
    said = [record.getMessage() for record in caplog.records if record.name == "moldau.log.recovering.progress"]
    assert "was not closed cleanly: recovery reads 3 partitions, 13 segments" in said[0]
    assert len(said) > 3 and all(" left" in line and "segments" in line for line in said[1:-1])
    assert "was recovered in" in said[-1]
    folder.close()


def test_a_short_recovery_is_silent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    unclean(tmp_path)
    caplog.set_level(logging.INFO)
    folder = LogFolder(tmp_path, Runtime())
    folder.load({"t": TOPIC_ID}, lambda _: config(segment_bytes=2000))
    assert not [record for record in caplog.records if record.name == "moldau.log.recovering.progress"]
    folder.close()
