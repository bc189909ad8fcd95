"""Many logs are closed at a stop: with one flush for many, never a failed flush twice, and a kill costs little."""

import asyncio
import errno
import logging
import random
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.logs import TOPIC_ID, HandClock, append, config
from harness.patience import stretched
from moldau import runtime
from moldau.config import TopicConfig
from moldau.log.checkpoints import CLOSED_ENDS
from moldau.log.folders import closing as module
from moldau.log.folders.closing import Pace
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import LogFolders
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.log.recovering import recovery
from moldau.log.segment import Segment
from moldau.names import TopicPartition
from moldau.runtime import FileSystem, RealDisk, RealFileSystem, Runtime
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import Faults

PATH = Path("/data")
KNOWN = {"t": TOPIC_ID}
LOGS = 6


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def config_of(_: str) -> TopicConfig:
    return config()


class CountedDisk(SimulatedDisk):
    """Notes the flushes of single files and of all, and fails those of all on request."""

    def __init__(self, flushes_all: bool = True):
        super().__init__()
        self.flushes_all = flushes_all
        self.calls: list[str] = []
        self.fails = False

    def meet(self, name: str, path: Path) -> OSError | None:
        if name.startswith("fsync"):
            self.calls.append(name)
        return OSError(errno.EIO, "a write failed", str(path)) if self.fails and name == "fsync all" else None


def filled(disk: SimulatedDisk) -> LogFolder:
    """Each log has two records that were not flushed."""
    folder = LogFolder(PATH, Runtime(clock=HandClock(), disk=disk))
    for number in range(LOGS):
        append(folder.create(tp(number), TOPIC_ID, config()), 2)
    return folder


def opened(disk: SimulatedDisk) -> LogFolder:
    folder = LogFolder(PATH, Runtime(clock=HandClock(), disk=disk))
    folder.load(KNOWN, config_of)
    return folder


def test_many_logs_are_flushed_as_one_and_few_each_by_itself() -> None:
    for together_min, flushes_all, wanted in ((1, True, 6), (1, False, 0), (LOGS + 1, True, 0)):
        disk = CountedDisk(flushes_all)
        folder = filled(disk)
        disk.calls.clear()
        closing = folder.closing(Pace(together_min, piece=2))
        closing.work()
        assert disk.calls.count("fsync all") == wanted
        assert ("fsync" in disk.calls) == (wanted == 0), "each file for itself only where not all together"
        assert len(closing.closed) == LOGS
        assert all(log.recovery_point == log.log_end_offset == 2 for log in folder.logs.values())
        folder.close()
        again = opened(disk.after_kill())
        assert again.clean and all(log.log_end_offset == 2 for log in again.logs.values())


def test_a_flush_of_all_that_failed_is_not_tried_again_and_leaves_no_marker() -> None:
    disk = CountedDisk()
    folder = filled(disk)
    disk.fails, disk.faults = True, Faults(random.Random(1))
    closing = folder.closing(Pace(1, piece=2))
    threads = [threading.Thread(target=closing.work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folder.failed is not None
    folder.close()
    assert disk.calls.count("fsync all") == 1
    assert not disk.exists(PATH / CLEAN_MARKER) and not disk.exists(PATH / CLOSED_ENDS)


class Killed(BaseException):
    """The process ends here."""


def cut_off(disk: SimulatedDisk, after: int) -> None:
    """A stop that is killed when it has noted this many closed logs."""
    folder = filled(disk)
    note = folder._note_closed

    def dies(closed: Mapping[TopicPartition, int]) -> None:
        note(closed)
        if len(closed) >= after:
            raise Killed

    closing = folder.closing(Pace(1, piece=2, note_ms=0))
    closing._note = dies
    with pytest.raises(Killed):
        closing.work()


def recovered(disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that a start reads again."""
    read: list[str] = []
    real = recovery.recover_segment

    def seen(segment: Segment, *more: object) -> tuple[int, bool]:
        read.append(segment.folder.name)
        return real(segment, *more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "recover_segment", seen)
        folder = opened(disk)
    assert {str(one): log.log_end_offset for one, log in folder.logs.items()} == {f"t-{n}": 2 for n in range(LOGS)}
    return sorted(read)


def test_after_a_stop_that_was_killed_only_the_logs_that_were_not_closed_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = CountedDisk()
    cut_off(disk, 4)
    disk = disk.after_kill()  # type: ignore[assignment]
    assert recovered(disk, monkeypatch) == ["t-4", "t-5"]
    assert not disk.exists(PATH / CLOSED_ENDS), "what is appended now must not pass for closed"
    assert recovered(disk.after_kill(), monkeypatch) == [f"t-{number}" for number in range(LOGS)]


def test_a_log_that_grew_after_it_was_noted_as_closed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = CountedDisk()
    cut_off(disk, 4)
    after = disk.after_kill()
    file = after.open(PATH / "t-0" / f"{0:020d}.log")
    file.write(b"\0" * 5, file.size())
    assert recovered(after, monkeypatch) == ["t-0", "t-4", "t-5"]


def test_a_start_that_is_interrupted_after_a_clean_stop_leaves_the_folder_clean() -> None:
    disk = SimulatedDisk()
    filled(disk).close()
    for opened_first in range(LOGS + 1):
        folder = interrupted(disk, opened_first)
        assert len(folder.logs) == opened_first
        folder.close()
        disk = disk.after_kill()
        assert disk.exists(PATH / CLEAN_MARKER)
    folder = opened(disk)
    assert folder.clean and [log.recovery_point for log in folder.logs.values()] == [2] * LOGS
    assert folder.high_watermarks == {}


def interrupted(disk: SimulatedDisk, after: int) -> LogFolder:
    """A start that is asked to end when this many logs are open."""
    folder = LogFolder(PATH, Runtime(clock=HandClock(), disk=disk))
    found = folder.sift(KNOWN).partitions

    def config_until(_: str) -> TopicConfig:
        if len(folder.logs) == after - 1:
            folder.stop_loading()
        return config()

    if not after:
        folder.stop_loading()
    for work in folder.loading(found, KNOWN, config_until):
        work()
    folder.settle()
    return folder


def test_an_interrupted_recovery_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    filled(disk).close(clean=False)
    disk = disk.after_kill()
    interrupted(disk, 2).close()
    disk = disk.after_kill()
    assert not disk.exists(PATH / CLEAN_MARKER)
    interrupted(disk, 4).close()
    disk = disk.after_kill()
    assert not disk.exists(PATH / CLEAN_MARKER)
    assert recovered(disk, monkeypatch) == ["t-4", "t-5"]


def test_a_stop_that_takes_long_says_how_far_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = threading.Event()

    class Slow(RealFileSystem):
        def flush(self) -> bool:
            said.wait(stretched())
            return False

    class SlowDisk(RealDisk):
        def file_system(self, folder: Path) -> FileSystem:
            return Slow(folder)

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "stopping" in record.getMessage():
                said.set()

    monkeypatch.setattr(module, "TELL_S", 0.01)
    caplog.set_level(logging.INFO)
    heard = Heard()
    module.logger.addHandler(heard)
    try:
        both = LogFolders([tmp_path / "a", tmp_path / "b"], Runtime(disk=SlowDisk()))
        asyncio.run(both.load(KNOWN, config_of))
        for number in range(120):
            both.folders[number == 0].create(tp(number), TOPIC_ID, config())
        asyncio.run(both.shut({}))
    finally:
        module.logger.removeHandler(heard)
    lines = [record.getMessage() for record in caplog.records if "stopping" in record.getMessage()]
    assert lines[0].startswith("stopping: ") and lines[0].endswith(" of 120 partitions flushed")


def test_a_system_whose_flush_does_not_report_failed_writes_is_not_trusted_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_system = RealFileSystem(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "REPORTS_SINCE", (1000, 0))
        assert file_system.flush() is False
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "REPORTING", frozenset())
        assert file_system.flush() is False
    assert file_system.flush() in (True, False)
    file_system.close()
    assert file_system.flush() is False
