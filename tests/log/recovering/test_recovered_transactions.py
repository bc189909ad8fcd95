"""What comes back of a log's transactions, after clean stops and others."""

from pathlib import Path

import pytest

from harness.logs import NOW_MS, append, names, open_log
from moldau.log.log import Log
from moldau.log.transaction_index import ENTRY, AbortedTxn
from tests.log.recovering.test_recovery import contents, killed
from tests.log.test_transaction_index import ABORT, COMMIT, SMALL, Writer, aborted, stable


def filled(folder: Path) -> Log:
    """Several segments with transactions of three producers that overlap; those of the third stay open."""
    log = open_log(folder, config=SMALL)
    one, two, three = Writer(log, 1), Writer(log, 2), Writer(log, 3)
    one.write()
    for number in range(40):
        two.write()
        if number == 20:
            one.end(ABORT)
            three.write()
        if number == 30:
            one.write()
            one.end(COMMIT)
        two.end(ABORT if number % 3 == 0 else COMMIT)
        append(log, 1)
    assert len(log.segments) == 10
    return log


def state(log: Log) -> tuple[object, ...]:
    producers = [
        (producer_id, found.epoch, found.coordinator_epoch, found.transaction_start, found.batches)
        for producer_id, found in sorted(log.producers)
    ]
    return aborted(log), stable(log), log.log_end_offset, producers


@pytest.mark.parametrize("recovery_point", [0, 1, 50, 100, 125])
def test_a_killed_log_knows_what_was_aborted_and_what_is_open(tmp_path: Path, recovery_point: int) -> None:
    log = filled(tmp_path / "p")
    before = state(log)
    assert stable(log) < log.log_end_offset and len(aborted(log)) == 15
    found = open_log(killed(log), config=SMALL, clean=False, recovery_point=recovery_point)
    assert state(found) == before
    found.close()
    assert state(open_log(tmp_path / "p", config=SMALL)) == before


def test_recovery_leaves_the_transaction_indexes_a_clean_stop_leaves(tmp_path: Path) -> None:
    filled(tmp_path / "clean").close()
    open_log(killed(filled(tmp_path / "killed")), config=SMALL, clean=False).close()
    assert contents(tmp_path / "killed") == contents(tmp_path / "clean")


def test_transaction_indexes_that_were_lost_with_the_power_are_built_anew(tmp_path: Path) -> None:
    log = filled(tmp_path / "p")
    before = state(log)
    folder = killed(log)
    for name in names(folder, ".txnindex"):
        (folder / name).unlink()
    for name in names(folder, ".snapshot"):
        (folder / name).unlink()
    found = open_log(folder, config=SMALL, clean=False)
    assert state(found) == before


def test_a_cut_off_marker_leaves_its_transaction_open(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    one = Writer(log, 1)
    one.write()
    one.end(ABORT)
    folder = killed(log)
    path = folder / names(folder, ".log")[0]
    path.write_bytes(path.read_bytes()[:-1])
    found = open_log(folder, clean=False)
    assert (aborted(found), stable(found), found.log_end_offset) == ([], 0, 1)
    found.append_marker(1, 1, COMMIT, 2, 0, NOW_MS)
    assert (aborted(found), stable(found)) == ([], 2)


@pytest.mark.parametrize(
    "flaw",
    [
        lambda data: b"\0\1" + data[2:],
        lambda data: data[ENTRY.size :] + data[: ENTRY.size],
        lambda data: data[:18] + b"\0" * 8 + data[26:],
        lambda data: b"\xff" * len(data),
        lambda data: ENTRY.pack(0, 9, 5, 4, 3) * 2000,
    ],
)
def test_a_bad_transaction_index_is_built_anew_after_a_clean_stop(tmp_path: Path, flaw: object) -> None:
    assert callable(flaw)
    log = filled(tmp_path / "p")
    before = state(log)
    log.close()
    right = contents(tmp_path / "p")
    paths = [path for path in sorted((tmp_path / "p").iterdir()) if path.stat().st_size > ENTRY.size]
    paths = [path for path in paths if path.suffix == ".txnindex"]
    for path in paths[::2]:
        path.write_bytes(flaw(path.read_bytes()))
    found = open_log(tmp_path / "p", config=SMALL)
    assert contents(tmp_path / "p") == right
    assert state(found) == before


def test_a_segment_without_indexes_gets_its_transaction_index_too(tmp_path: Path) -> None:
    log = filled(tmp_path / "p")
    before = state(log)
    log.close()
    right = contents(tmp_path / "p")
    for path in (tmp_path / "p").iterdir():
        if path.suffix in (".index", ".txnindex", ".timeindex", ".snapshot"):
            path.unlink()
    found = open_log(tmp_path / "p", config=SMALL)
    assert state(found) == before
    found.close()
    indexes = {name: data for name, data in right.items() if name.endswith(".txnindex")}
    assert {name: data for name, data in contents(tmp_path / "p").items() if name.endswith(".txnindex")} == indexes


def test_what_deleted_records_leave_of_a_transaction_is_recovered(tmp_path: Path) -> None:
    log = filled(tmp_path / "p")
    folder = killed(log)
    start = log.segments[2].base_offset
    for segment in log.segments[:2]:
        for path in folder.glob(f"{segment.base_offset:020d}.*"):
            path.unlink()
    found = open_log(folder, config=SMALL, clean=False, log_start=start)
    assert found.log_start_offset == start
    entries = [AbortedTxn(*entry) for entry in aborted(found, start)]
    assert entries[0].last_offset > start
    assert stable(found) == stable(log)
