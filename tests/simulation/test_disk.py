"""The simulated disk loses what was not flushed and nothing else."""

import random
from pathlib import Path

import pytest

from moldau.errors import StorageError
from moldau.simulation.disk import SECTOR_BYTES, SimulatedDisk

FOLDER, FILE = Path("/data"), Path("/data/file")


def disk_with_file(content: bytes) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_folder(FOLDER)
    file = disk.open(FILE, create=True)
    file.write(content, 0)
    file.flush()
    disk.sync_folder(FOLDER)
    return disk


def test_what_was_flushed_is_there_after_every_crash():
    for seed in range(20):
        disk = disk_with_file(b"kept")
        disk.open(FILE).write(b"lost", 4)
        disk = disk.after_crash(random.Random(seed))
        assert disk.open(FILE).read(4, 0) == b"kept"


def test_what_was_not_flushed_is_kept_lost_or_torn_by_sectors():
    found = set()
    for seed in range(40):
        disk = disk_with_file(b"")
        disk.open(FILE).write(b"a" * SECTOR_BYTES + b"b" * SECTOR_BYTES, 0)
        disk = disk.after_crash(random.Random(seed))
        found.add(disk.open(FILE).read(2 * SECTOR_BYTES, 0))
    a, b, nothing = b"a" * SECTOR_BYTES, b"b" * SECTOR_BYTES, bytes(SECTOR_BYTES)
    assert found == {b"", a, nothing + b, a + b}


def test_a_rename_that_was_not_synced_may_be_undone_but_is_never_halved():
    outcomes = set()
    for seed in range(20):
        disk = disk_with_file(b"old")
        new = FOLDER / "new"
        disk.open(new, create=True).write(b"new", 0)
        disk.open(new).flush()
        disk.sync_folder(FOLDER)
        disk.rename(new, FILE)
        disk = disk.after_crash(random.Random(seed))
        outcomes.add((disk.open(FILE).read(3, 0), disk.exists(new)))
    assert outcomes == {(b"old", True), (b"new", False)}


def test_a_kill_loses_nothing_and_frees_the_lock():
    disk = disk_with_file(b"")
    disk.lock(FOLDER / ".lock")
    with pytest.raises(StorageError):
        disk.lock(FOLDER / ".lock")
    file = disk.open(FILE)
    file.write(b"written", 0)
    after = disk.after_kill()
    assert after.open(FILE).read(7, 0) == b"written"
    after.lock(FOLDER / ".lock")
    with pytest.raises(OSError, match="dead"):
        file.write(b"too late", 0)


def test_room_that_was_only_made_reads_as_zeros_and_can_be_cut():
    disk = disk_with_file(b"head")
    file = disk.open(FILE)
    file.truncate(10 << 20)
    assert file.size() == 10 << 20
    assert file.read(8, 0) == b"head\0\0\0\0"
    file.truncate(2)
    file.truncate(6)
    assert file.read(10, 0) == b"he\0\0\0\0"
