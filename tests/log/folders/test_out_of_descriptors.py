"""A process that can open no more files for a while, at any call of a story: nothing is taken for a broken disk,
nothing is lost, and what was refused succeeds when it is tried again."""

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.logs import NOW_MS, TOPIC_ID, TP, HandClock, append, config, read_all
from moldau.config import TopicConfig, broker_config
from moldau.errors import KafkaError, StorageError
from moldau.log import truncation
from moldau.log.compaction import cleaner as cleaner_module
from moldau.log.compaction.cleaner import Candidate, Cleaner
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import LogFolders
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row
from moldau.runtime import File, Runtime
from moldau.simulation.disk import SimulatedDisk

T = TypeVar("T")
FOLDER = Path("/data")
OTHER = TopicPartition("flights", 1)
REFUSALS = 12
"""More than the files that are let go of before a call is refused for good."""
SMALL = config(segment_bytes=400, index_interval_bytes=100, file_delete_delay_ms=0)
COMPACTED = config(
    segment_bytes=400, index_interval_bytes=100, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0,
    file_delete_delay_ms=0,
)  # fmt: skip


class FullTable(SimulatedDisk):
    """From the call of number `at` on, this many calls that need a descriptor find none."""

    at = -1
    left = REFUSALS
    calls = 0

    def _open_something(self, path: Path) -> None:
        self.calls += 1
        if self.at >= 0 and self.calls > self.at and self.left:
            self.left -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        self._open_something(path)
        return super().open(path, create=create, writable=writable)

    def list(self, folder: Path) -> list[str]:
        self._open_something(folder)
        return super().list(folder)

    def sync_folder(self, folder: Path) -> None:
        self._open_something(folder)
        super().sync_folder(folder)


def insist(work: Callable[..., T], *values: Any, **named: Any) -> T:
    """Try until it succeeds, as clients and the clock do."""
    for _ in range(REFUSALS):
        with contextlib.suppress(KafkaError):
            return work(*values, **named)
    return work(*values, **named)


def write(log: Log, number: int, key: bytes, **batch: Any) -> None:
    if "producer_id" in batch:
        batch |= {"producer_epoch": 0, "base_sequence": number}
    insist(append, log, [Row(key, b"%d" % number, NOW_MS + number)], leader_epoch=number // 8, **batch)


def story(folder: LogFolder) -> None:
    """Everything that opens files while a folder serves."""
    log = insist(folder.create, TP, TOPIC_ID, SMALL)
    compacted = insist(folder.create, OTHER, TOPIC_ID, COMPACTED)
    for number in range(24):
        write(log, number, b"k")
        write(log, number, b"i", producer_id=7)
        write(log, number, b"t", producer_id=8, attributes=TRANSACTIONAL_BIT)
        if number % 4 == 3:
            marker = Marker(commits=number % 8 == 3, coordinator_epoch=0)
            insist(log.append_marker, 8, 0, marker, 1, number // 8, NOW_MS)
        write(compacted, number, b"%d" % (number % 3))
        if number % 6 == 5:
            insist(log.flush_closed if number % 4 == 1 else log.flush)
            insist(folder.checkpoint, {TP: log.log_end_offset})
            insist(log.by_time.first_since, NOW_MS + number)
            insist(log.committed.aborted_between, 0, log.log_end_offset)
    log.delete_records_before(log.log_end_offset // 2)
    insist(log.retain, NOW_MS, log.log_end_offset)
    clean(compacted)
    insist(folder.checkpoint)
    insist(folder.remove_due, NOW_MS)


def clean(log: Log) -> None:
    settings, _ = broker_config({})

    async def until_clean() -> None:
        cleaner = Cleaner(lambda: [Candidate(log, log.log_end_offset)], lambda: settings, log.services.runtime)
        disk = log.files.disk
        assert isinstance(disk, FullTable)
        before = -1
        while await cleaner.clean_dirtiest() or disk.left != before:
            before = disk.left

    asyncio.run(until_clean())


def known_of(folder: LogFolder) -> list[object]:
    """All that the folder's partitions hold, as their readers see it."""
    found: list[object] = []
    for tp in (TP, OTHER):
        log = folder.logs[tp]
        records = [(one.offset, one.key, one.value, one.timestamp_ms) for one in insist(read_all, log)]
        aborted = insist(log.committed.aborted_between, 0, log.log_end_offset)
        producers = {producer_id: (one.epoch, one.batches[-1:]) for producer_id, one in log.producers}
        bases = [segment.base_offset for segment in log.segments if tp is TP]  # a cleaning may be cut in two
        found.append((records, aborted, producers, log.log_start_offset, log.log_end_offset, bases, log.epochs.starts))
    return found


def opened(disk: SimulatedDisk) -> LogFolder:
    folder = LogFolder(FOLDER, Runtime(clock=HandClock(), disk=disk), open_files_max=2)
    configs: dict[str, TopicConfig] = {"flights": SMALL}
    folder.load({"flights": TOPIC_ID}, configs.__getitem__)
    return folder


@pytest.fixture(scope="module")
def expected() -> tuple[int, list[object]]:
    """The calls that the story makes, and what is known at its end."""
    disk = FullTable()
    folder = opened(disk)
    before = disk.calls
    story(folder)
    return disk.calls - before, known_of(folder)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.check) for part in range(1, 4))])
def test_wherever_no_file_can_be_opened_for_a_while_nothing_fails_and_nothing_is_lost(
    part: int, expected: tuple[int, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaner_module, "DESCRIPTOR_WAIT_S", 0.0)
    calls, known = expected
    assert calls > 300
    for at in range(part, calls, 4):
        disk = FullTable()
        folder = opened(disk)
        disk.at = disk.calls + at
        story(folder)
        assert folder.failed is None and not disk.left, at
        assert known_of(folder) == known, at
        again = opened(disk.after_kill())
        assert known_of(again) == known, at


def test_a_start_that_can_open_no_files_is_refused_with_what_to_do() -> None:
    disk = FullTable()
    folder = opened(disk)
    folder.create(TP, TOPIC_ID, SMALL)
    folder.close()
    starved = FullTable(disk._root)
    starved.at, starved.left = 0, 10**9
    with pytest.raises(StorageError, match="Raise the limit of open files"):
        LogFolders([FOLDER], Runtime(clock=HandClock(), disk=starved))


def cut_off(log: Log) -> None:
    truncation.truncate_to(log, 27, 0, NOW_MS)


def begin_anew(log: Log) -> None:
    truncation.begin_at(log, 100, NOW_MS)


@pytest.mark.parametrize("cut", [cut_off, begin_anew])
def test_a_log_is_cut_as_a_whole_or_not_at_all_or_goes_offline_without_its_folder(cut: Callable[[Log], None]) -> None:
    """A log that was half cut would take the batches that are gone for duplicates, and lose them."""

    def prepared(at: int = -1) -> tuple[FullTable, LogFolder, Log]:
        disk = FullTable()
        folder = LogFolder(FOLDER, Runtime(clock=HandClock(), disk=disk))
        log = folder.create(TP, TOPIC_ID, SMALL)
        for number in range(30):
            append(log, leader_epoch=number // 10, producer_id=7, producer_epoch=0, base_sequence=number)
        disk.at = disk.calls + at if at >= 0 else -1
        return disk, folder, log

    counting, folder, log = prepared()
    before = counting.calls
    cut(log)
    end, offline = log.log_end_offset, 0
    count = counting.calls - before
    for number in range(count):
        disk, folder, log = prepared(number)
        for _ in range(REFUSALS + 1):
            with contextlib.suppress(KafkaError):
                cut(log)
                break
        disk.left = 0
        assert folder.failed is None
        if log.offline:
            offline += 1
            continue
        assert log.log_end_offset == end
        appended = append(log, leader_epoch=3, producer_id=7, producer_epoch=0, base_sequence=27)
        assert (appended.error, appended.base_offset, log.log_end_offset) == (0, end, end + 1), number
        assert [one.offset for one in read_all(log)][-1] == end
        log.flush()
        assert log.recovery_point == end + 1
    assert offline < count
