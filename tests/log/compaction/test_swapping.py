"""A crash at every call that a cleaning makes of its disk: the log that comes back is the one before or behind it."""

import random
from pathlib import Path

import pytest

from harness.logs import NOW_MS, HandClock, append, config, open_log, read_all, records_from
from harness.tiers import sized
from moldau.log.checkpoints import CLEANER_OFFSETS
from moldau.log.log import Log
from moldau.records.batch import Row
from moldau.records.rows import Record
from moldau.runtime import Runtime
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import CHANGES, READS, DiskCall, DiskFault, Faults
from tests.log.compaction.compacting import COMPACTED, compact, latest, put

FOLDER = Path("/data/flights-0")
SETTINGS = config(**{**COMPACTED, "delete_retention_ms": 0, "segment_index_bytes": 1000})
MERGING = config(**{**COMPACTED, "delete_retention_ms": 0, "segment_index_bytes": 1000, "segment_bytes": 3000})


def opened(disk: SimulatedDisk, clean: bool = True, recovery_point: int = 0) -> Log:
    runtime = Runtime(clock=HandClock(), disk=disk)
    return open_log(FOLDER, runtime, clean=clean, config=SETTINGS, recovery_point=recovery_point)


def filled(disk: SimulatedDisk) -> Log:
    """Several segments that compaction makes one of, whose last records are all replaced later; with a producer."""
    disk.make_folder(FOLDER.parent)
    disk.sync_folder(FOLDER.parent.parent)
    log = opened(disk)
    sequence = 0
    for number in range(40):
        rows = [Row(b"%d" % (number % 3), b"%d" % number, NOW_MS), Row(b"x%d" % (number // 30), b"%d" % number, NOW_MS)]
        append(log, rows, producer_id=9, producer_epoch=0, base_sequence=sequence)
        sequence += 2
    put(log, ("1", None))
    log.roll(NOW_MS)
    put(log, ("0", "last"))
    log.flush()
    log.config = MERGING
    return log


def contents(log: Log) -> list[Record]:
    return read_all(log)


def check(log: Log, expected: dict[str, str]) -> None:
    """What a reader knows is what it was, the files fit each other, and the log goes on where it ended."""
    assert latest(log) == expected
    records = contents(log)
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    for record in records:
        assert next(records_from(log, record.offset)) == record
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases))
    for segment in log.segments:
        segment.look()
        walked = [(found.header.last_offset - segment.base_offset, found.position) for found in segment.walk(0)]
        entries = [segment.offsets.entry(number) for number in range(segment.offsets.entries)]
        assert all(tuple(entry) in walked for entry in entries)
    producer = log.producers.get(9)
    assert producer is not None and producer.batches[-1].last_sequence == 79
    assert log.log_end_offset == 82
    assert put(log, ("new", "one")) == 82


def forks_during_a_cleaning() -> list[tuple[DiskCall, SimulatedDisk]]:
    """The disk as it is before each call that changes something."""
    disk = SimulatedDisk()
    log = filled(disk)
    faults = disk.faults = Faults(random.Random(1))
    forks: list[tuple[DiskCall, SimulatedDisk]] = []

    def watch(call: DiskCall) -> None:
        if call.name in CHANGES:
            forks.append((call, disk.fork()))

    faults.watch = watch
    assert compact(log, roll=False)
    faults.watch = None
    assert len(log.segments) == 3
    return forks


FORKS = forks_during_a_cleaning()
EXPECTED = {"0": "last", "2": "38", "x0": "29", "x1": "39"}


def test_every_step_of_a_swap_is_among_the_calls() -> None:
    steps = [(call.name, call.path.name.partition(".")[2]) for call, _ in FORKS]
    written = steps.index(("write", "log.cleaned"))
    flushed = steps.index(("fsync", "log.cleaned"))
    swapped = steps.index(("rename", "log.cleaned"))
    first_gone = steps.index(("rename", "log"))
    named = steps.index(("rename", "log.swap"))
    assert written < flushed < swapped < first_gone < named
    folder_flushes = [at for at, (name, _) in enumerate(steps) if name == "fsync folder"]
    assert any(swapped < at < first_gone for at in folder_flushes)
    assert any(named < at for at in folder_flushes)
    assert steps.index(("fsync", "index.cleaned")) < swapped > steps.index(("fsync", "timeindex.cleaned"))


@pytest.mark.parametrize("at", range(len(FORKS)))
def test_a_process_killed_at_any_step_of_a_cleaning_loses_nothing(at: int) -> None:
    disk = FORKS[at][1].fork().after_kill()
    check(opened(disk, clean=False), EXPECTED)
    names = disk.list(FOLDER)
    assert not [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))]


@pytest.mark.parametrize("at", range(len(FORKS)))
@pytest.mark.parametrize("seed", range(4))
def test_a_power_loss_at_any_step_of_a_cleaning_loses_nothing(at: int, seed: int) -> None:
    disk = FORKS[at][1].fork().after_crash(random.Random(seed))
    check(opened(disk, clean=False, recovery_point=seed % 2 * 82), EXPECTED)


@pytest.mark.parametrize("at", range(0, len(FORKS), sized(5, 2, 1)))
def test_a_recovery_killed_at_any_step_is_finished_by_the_next(at: int) -> None:
    disk = FORKS[at][1].fork().after_kill()
    faults = disk.faults = Faults(random.Random(2))
    forks: list[SimulatedDisk] = []

    def watch(call: DiskCall) -> None:
        if call.name in CHANGES:
            forks.append(disk.fork())

    faults.watch = watch
    opened(disk, clean=False)
    for fork in forks:
        check(opened(fork.after_kill(), clean=False), EXPECTED)


@pytest.mark.parametrize("fault", [DiskFault.IO_ERROR, DiskFault.NO_SPACE])
def test_an_error_of_the_disk_at_any_step_takes_the_log_offline_and_loses_nothing(fault: DiskFault) -> None:
    calls = FORKS[-1][0].number
    for number in range(1, calls + 1, sized(3, 2, 1)):
        disk = SimulatedDisk()
        log = filled(disk)
        faults = disk.faults = Faults(random.Random(number))
        faults.plan[number] = fault
        compact(log, roll=False)
        unread = any(call.path.name == CLEANER_OFFSETS and call.name in READS for _, call in faults.met)
        assert log.offline == (bool(faults.met) and not unread)
        disk.faults = None
        check(opened(disk.after_kill(), clean=False), EXPECTED)
