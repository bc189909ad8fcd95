from pathlib import Path

import pytest

from harness.logs import NOW_MS, append, config, names, offset_for_time, open_log, read_all, records_from, rows
from moldau.errors import ErrorCode
from moldau.log.log import Log
from moldau.log.producers.rebuilding import WALK_BACK_ENTRIES
from moldau.records.batch import Row

SMALL = config(segment_bytes=1000, index_interval_bytes=100)


def filled(folder: Path, batches: int = 60) -> Log:
    """Several segments, one record a batch; offsets are values."""
    log = open_log(folder, config=SMALL)
    for number in range(batches):
        append(log, [Row(None, b"%d" % number, NOW_MS + number)], leader_epoch=number // 20)
    return log


def killed(log: Log) -> Path:
    """What SIGKILL leaves: everything that was written, nothing that was closed."""
    log.abandon()
    return log.folder


def recovered(folder: Path, recovery_point: int = 0, log_start: int = 0) -> Log:
    return open_log(folder, config=SMALL, clean=False, recovery_point=recovery_point, log_start=log_start)


def logs(folder: Path) -> list[Path]:
    return [folder / name for name in names(folder, ".log")]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def values(log: Log) -> list[int]:
    return [int(record.value or b"") for record in read_all(log)]


def test_a_killed_log_comes_back_whole(tmp_path: Path) -> None:
    folder = killed(filled(tmp_path / "p"))
    log = recovered(folder)
    assert values(log) == list(range(60))
    assert (log.log_end_offset, log.recovery_point) == (60, 0)
    assert log.epochs.starts == ((0, 0), (1, 20), (2, 40))
    assert append(log, rows(1)).base_offset == 60


def test_recovery_leaves_the_files_a_clean_stop_leaves(tmp_path: Path) -> None:
    filled(tmp_path / "clean").close()
    recovered(killed(filled(tmp_path / "killed"))).close()
    assert contents(tmp_path / "killed") == contents(tmp_path / "clean")


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    folder = killed(filled(tmp_path / "p"))
    last = logs(folder)[-1]
    whole = last.read_bytes()
    before = recovered(folder).active_segment.size
    assert before == len(whole)
    for lost in (1, 10, 40):
        last.write_bytes(whole[:-lost])
        log = recovered(folder)
        assert values(log) == list(range(59))
        assert last.stat().st_size == log.active_segment.size < before
        log.abandon()


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b"\xff" * 200, b"garbage", b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 60]
)
def test_garbage_behind_the_last_batch_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    folder = killed(filled(tmp_path / "p"))
    last = logs(folder)[-1]
    whole = last.read_bytes()
    last.write_bytes(whole + tail)
    assert values(recovered(folder)) == list(range(60))
    assert last.read_bytes() == whole


@pytest.mark.parametrize("at", [0, 3, 8, 11, 16, 17, 22, 26, 35, 45, 57, 61, 66])
def test_a_flipped_bit_cuts_the_log_there_and_takes_the_later_segments_along(tmp_path: Path, at: int) -> None:
    folder = killed(filled(tmp_path / "p"))
    second = logs(folder)[1]
    first_offset = int(second.stem)
    data = bytearray(second.read_bytes())
    batch_bytes = int.from_bytes(data[8:12], "big") + 12
    data[2 * batch_bytes + at] ^= 0x80
    second.write_bytes(data)
    log = recovered(folder)
    assert values(log) == list(range(first_offset + 2))
    assert logs(folder)[-1] == second
    assert append(log, rows(1)).base_offset == first_offset + 2
    assert len(names(folder, ".index")) == len(names(folder, ".timeindex")) == len(logs(folder))


def test_nothing_before_the_recovery_points_segment_is_read(tmp_path: Path) -> None:
    log = filled(tmp_path / "p")
    log.flush()
    point = log.recovery_point
    folder = killed(log)
    first = logs(folder)[0]
    data = bytearray(first.read_bytes())
    data[70] ^= 1
    first.write_bytes(data)
    assert recovered(folder, recovery_point=point).log_end_offset == 60
    assert first.read_bytes() == data


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage", "zeros"])
def test_a_damaged_index_is_built_anew(tmp_path: Path, suffix: str, clean: bool, damage: str) -> None:
    log = filled(tmp_path / "p")
    log.close()
    folder = log.folder
    expected = contents(folder)
    for name in names(folder, suffix):
        path = folder / name
        if damage == "missing":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(expected[name][:-5])
        else:
            path.write_bytes({"empty": b"", "garbage": b"\xf3garbage" * 9, "zeros": b"\0" * 9600}[damage])
    again = open_log(folder, config=SMALL, clean=clean)
    assert values(again) == list(range(60))
    for number in range(60):
        assert offset_for_time(again, NOW_MS + number) == (NOW_MS + number, number)
        assert int(next(records_from(again, number)).value or b"") == number
    again.close()
    if damage != "empty":
        assert {name: data for name, data in contents(folder).items() if "index" in name} == {
            name: data for name, data in expected.items() if "index" in name
        }


def test_a_damaged_index_entry_keeps_no_batch_of_a_producer_unknown(tmp_path: Path) -> None:
    settings = config(index_interval_bytes=100)
    log = open_log(tmp_path / "p", config=settings)
    for number in range(200):
        append(log, rows(1), producer_id=7, producer_epoch=0, base_sequence=number)
    log.close()
    (path,) = (log.folder / name for name in names(log.folder, ".index"))
    data = bytearray(path.read_bytes())
    data[len(data) - WALK_BACK_ENTRIES * 8 + 4] ^= 0x80  # its position is negative now
    path.write_bytes(data)
    producer = open_log(log.folder, config=settings).producers.get(7)
    assert producer is not None and [batch.last_sequence for batch in producer.batches] == [195, 196, 197, 198, 199]


def test_a_clean_start_reads_no_more_than_the_end_of_the_last_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p")
    for number in range(2000):
        append(log, rows(1, NOW_MS + number), producer_id=7, producer_epoch=0, base_sequence=number)
    log.close()
    last = logs(tmp_path / "p")[-1]
    data = bytearray(last.read_bytes())
    data[1000:20_000] = b"\0" * 19_000
    last.write_bytes(data)
    again = open_log(tmp_path / "p")
    assert again.log_end_offset == 2000
    assert append(again, 1, producer_id=7, producer_epoch=0, base_sequence=2000).base_offset == 2000


def test_a_clean_marker_does_not_hide_a_torn_tail(tmp_path: Path) -> None:
    log = filled(tmp_path / "p")
    log.close()
    last = logs(tmp_path / "p")[-1]
    last.write_bytes(last.read_bytes()[:-7])
    assert values(open_log(tmp_path / "p", config=SMALL)) == list(range(59))


def test_leftovers_of_a_deletion_and_files_without_a_log_go(tmp_path: Path) -> None:
    folder = killed(filled(tmp_path / "p"))
    for name in (
        "00000000000000000900.index",
        "00000000000000000900.timeindex",
        "00000000000000000000.log.deleted",
        "00000000000000000000.log.cleaned",
        "leader-epoch-checkpoint.tmp",
    ):
        (folder / name).write_bytes(b"old")
    (folder / "notes.txt").write_bytes(b"keep me")
    assert values(recovered(folder)) == list(range(60))
    assert not names(folder, ".deleted") and not names(folder, ".cleaned") and not names(folder, ".tmp")
    assert not (folder / "00000000000000000900.index").exists()
    assert (folder / "notes.txt").read_bytes() == b"keep me"


def test_a_finished_swap_replaces_the_segments_it_covers(tmp_path: Path) -> None:
    folder = killed(filled(tmp_path / "p"))
    first, second = logs(folder)[:2]
    merged = first.read_bytes() + second.read_bytes()
    (folder / f"{first.name}.swap").write_bytes(merged)
    log = recovered(folder)
    assert values(log) == list(range(60))
    assert first.read_bytes() == merged and not second.exists()


def test_an_unfinished_swap_is_thrown_away(tmp_path: Path) -> None:
    folder = killed(filled(tmp_path / "p"))
    before = logs(folder)[0].read_bytes()
    (folder / "00000000000000000000.log.swap").write_bytes(b"half")
    (folder / "00000000000000000000.log.cleaned").write_bytes(b"half")
    assert values(recovered(folder)) == list(range(60))
    assert logs(folder)[0].read_bytes() == before
    assert not names(folder, ".swap")


def test_a_log_that_ends_below_its_start_begins_anew_there(tmp_path: Path) -> None:
    log = recovered(killed(filled(tmp_path / "p")), log_start=500)
    assert (log.log_start_offset, log.log_end_offset, log.epochs.starts) == (500, 500, ())
    assert names(tmp_path / "p", ".log") == ["00000000000000000500.log"]
    assert append(log, rows(1)).base_offset == 500


def test_the_log_start_of_the_checkpoint_is_kept(tmp_path: Path) -> None:
    log = recovered(killed(filled(tmp_path / "p")), log_start=33)
    assert values(log) == list(range(33, 60))
    assert log.epochs.starts == ((1, 33), (2, 40))


def test_epochs_are_built_anew_from_the_log_if_their_file_is_corrupt(tmp_path: Path) -> None:
    log = filled(tmp_path / "p")
    log.close()
    (tmp_path / "p" / "leader-epoch-checkpoint").write_text("0\n9\nx")
    assert open_log(tmp_path / "p", config=SMALL).epochs.starts == ((0, 0), (1, 20), (2, 40))


def test_an_epoch_file_beyond_the_logs_end_is_cut(tmp_path: Path) -> None:
    log = filled(tmp_path / "p")
    log.close()
    (tmp_path / "p" / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n2 40\n9 75\n")
    assert open_log(tmp_path / "p", config=SMALL).epochs.starts == ((0, 0), (2, 40))


def idempotent(folder: Path, segment_bytes: int) -> Log:
    log = open_log(folder, config=config(segment_bytes=segment_bytes))
    for number in range(40):
        producer_id = number % 2 + 5
        append(log, rows(2), producer_id=producer_id, producer_epoch=1, base_sequence=number // 2 * 2)
    return log


@pytest.mark.parametrize("segment_bytes", [300, 1000, 1 << 20])
@pytest.mark.parametrize("stop", ["clean", "killed", "killed without snapshots", "clean with a corrupt snapshot"])
def test_producers_are_known_as_before_after_a_restart(tmp_path: Path, segment_bytes: int, stop: str) -> None:
    log = idempotent(tmp_path / "p", segment_bytes)
    known = {producer_id: (producer.epoch, producer.batches) for producer_id, producer in log.producers}
    if stop.startswith("clean"):
        log.close()
    log.abandon()
    snapshots = [log.folder / name for name in names(log.folder, ".snapshot")]
    for path in snapshots if "without" in stop else snapshots[-1:] if "corrupt" in stop else []:
        path.write_bytes(b"\0\1garbage")
    again = open_log(log.folder, clean=stop.startswith("clean"), config=config(segment_bytes=segment_bytes))
    assert {producer_id: (producer.epoch, producer.batches) for producer_id, producer in again.producers} == known
    for number in range(30, 40):
        sequence, producer_id = number // 2 * 2, number % 2 + 5
        answer = append(again, rows(2), producer_id=producer_id, producer_epoch=1, base_sequence=sequence)
        assert (answer.duplicate, answer.base_offset) == (True, 2 * number)
    late = append(again, rows(2), producer_id=5, producer_epoch=1, base_sequence=44)
    assert late.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_log_can_be_killed_again_and_again(tmp_path: Path) -> None:
    log = open_log(tmp_path / "p", config=SMALL)
    for number in range(30):
        answer = append(log, 1, producer_id=7, producer_epoch=0, base_sequence=number)
        assert answer.base_offset == number
        log = recovered(killed(log), recovery_point=log.recovery_point)
        again = append(log, 1, producer_id=7, producer_epoch=0, base_sequence=number)
        assert (again.duplicate, again.base_offset) == (True, number)
    assert len(read_all(log)) == 30


def test_a_segment_that_lost_its_end_without_a_trace_takes_the_later_ones_along(tmp_path: Path) -> None:
    folder = killed(filled(tmp_path / "p"))
    first = logs(folder)[0]
    data = first.read_bytes()
    batch_bytes = int.from_bytes(data[8:12], "big") + 12
    first.write_bytes(data[: 3 * batch_bytes])
    assert values(recovered(folder)) == [0, 1, 2]
    assert logs(folder) == [first]


def test_a_compacted_log_may_have_holes(tmp_path: Path) -> None:
    folder = killed(filled(tmp_path / "p"))
    first, second = logs(folder)[:2]
    data = first.read_bytes()
    batch_bytes = int.from_bytes(data[8:12], "big") + 12
    first.write_bytes(data[: 3 * batch_bytes])
    compacted = config(segment_bytes=1000, index_interval_bytes=100, cleanup_policy=("compact",))
    log = open_log(folder, config=compacted, clean=False)
    assert values(log) == [0, 1, 2, *range(int(second.stem), 60)]
    assert read_all(log, 3)[0].offset == int(second.stem)
