"""The simulated disk loses what was not flushed and nothing else."""

import random
from pathlib import Path

import pytest

from moldau.errors import StorageError
from moldau.simulation.disk import SECTOR_BYTES, SimulatedDisk
from moldau.simulation.faults import DiskCall, DiskFault, Faults, PowerLoss

FOLDER, FILE = Path("/data"), Path("/data/file")


def disk_with_file(content: bytes) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_folder(FOLDER)
    disk.sync_folder(FOLDER.parent)
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
    for seed in range(100):
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


def test_a_folder_that_was_made_or_renamed_may_be_lost_until_its_parent_is_synced():
    outcomes = set()
    for seed in range(20):
        disk = disk_with_file(b"kept")
        disk.make_folder(FOLDER / "one" / "two")
        disk.rename(FOLDER / "one", FOLDER / "other")
        disk = disk.after_crash(random.Random(seed))
        outcomes.add(tuple(disk.list(FOLDER)))
    assert outcomes == {("file",), ("file", "one"), ("file", "other")}


def test_folders_keep_their_names_each_in_its_own_order():
    outcomes = set()
    for seed in range(60):
        disk = disk_with_file(b"")
        other = Path("/other")
        disk.make_folder(other)
        disk.sync_folder(other.parent)
        disk.open(FOLDER / "first", create=True)
        disk.open(other / "second", create=True)
        disk = disk.after_crash(random.Random(seed))
        outcomes.add((disk.exists(FOLDER / "first"), disk.exists(other / "second")))
    assert outcomes == {(False, False), (False, True), (True, False), (True, True)}


def test_a_cut_that_is_lost_takes_with_it_what_was_written_behind_it():
    for seed in range(40):
        disk = disk_with_file(b"aaaa")
        file = disk.open(FILE)
        file.truncate(2)
        file.write(b"bb", 2)
        found = disk.after_crash(random.Random(seed)).open(FILE).read(9, 0)
        assert found in (b"aaaa", b"aa", b"aabb")


def faulty(fault: DiskFault, at: int, seed: int = 1) -> tuple[SimulatedDisk, Faults]:
    disk = disk_with_file(b"kept")
    disk.faults = Faults(random.Random(seed))
    disk.faults.plan[at] = fault
    return disk, disk.faults


def test_after_a_failed_fsync_the_next_one_succeeds_and_the_bytes_are_gone():
    outcomes = set()
    for seed in range(20):
        disk, _ = faulty(DiskFault.IO_ERROR, 3, seed)
        file = disk.open(FILE)
        file.write(b"more", 4)
        with pytest.raises(OSError, match="Input/output error"):
            file.flush()
        assert file.read(8, 0) == b"keptmore"
        file.flush()
        outcomes.add(disk.after_crash(random.Random(seed)).open(FILE).read(8, 0))
    assert outcomes == {b"kept", b"keptmore"}


def test_a_full_disk_takes_a_part_of_a_write():
    lengths = set()
    for seed in range(40):
        disk, _ = faulty(DiskFault.NO_SPACE, 2, seed)
        with pytest.raises(OSError, match="No space left"):
            disk.open(FILE).write(b"more", 4)
        disk.faults = None
        lengths.add(disk.open(FILE).size())
    assert lengths == {4, 5, 6, 7, 8}


def test_the_power_fails_before_the_call_that_was_named_and_every_call_is_counted_by_its_operation():
    disk, faults = faulty(DiskFault.POWER_LOSS, 3)
    seen: list[DiskCall] = []
    faults.watch = seen.append
    faults.operation = "writing"
    file = disk.open(FILE)
    file.write(b"1", 4)
    with pytest.raises(PowerLoss):
        file.write(b"2", 5)
    assert disk.open(FILE).size() == 5
    assert faults.covered == {("writing", "open"): 2, ("writing", "write"): 2}
    assert [(call.number, call.name, call.path) for call in seen[:2]] == [(1, "open", FILE), (2, "write", FILE)]


def test_a_fork_goes_its_own_way():
    disk = disk_with_file(b"kept")
    disk.open(FILE).write(b"more", 4)
    fork = disk.fork()
    disk.open(FILE).flush()
    disk.remove(FILE)
    lost = {fork.fork().after_crash(random.Random(seed)).open(FILE).read(9, 0) for seed in range(20)}
    assert lost == {b"kept", b"keptmore"}
    assert fork.open(FILE).read(9, 0) == b"keptmore"
