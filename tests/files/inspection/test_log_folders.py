"""What is wrong with a folder is found, and nothing is where nothing is."""

import base64
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.logs import NOW_MS, HandClock, append, config, names, rows
from harness.tiers import sized
from moldau.files.inspection.findings import CheckedTotals, Finding
from moldau.files.inspection.log_folders import verify
from moldau.log.folders import arrival
from moldau.log.folders.arrival import Arrival
from moldau.log.folders.folder import LogFolder
from moldau.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from moldau.log.transaction_index import ENTRY
from moldau.records.batch import HEADER_SIZE, batches, encode_batch, stamp
from moldau.runtime import RealDisk, Runtime
from tests.files.inspection.filled import BATCHES, FLIGHTS, IDS, RECORDS, SMALL, fill

FLIPS = sized(200, 200, 20_000)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original")
    fill(path)
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "folder")
    return tmp_path / "folder"


def look(folder: Path) -> list[Finding]:
    return list(verify(RealDisk(), folder, CheckedTotals()))


def errors(folder: Path) -> list[str]:
    return [f"{finding.path.name}: {finding.message}" for finding in look(folder) if finding.wrong]


def notes(folder: Path) -> list[str]:
    return [f"{finding.path.name}: {finding.message}" for finding in look(folder) if not finding.wrong]


def change(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    at %= len(content)
    content[at : at + len(data)] = data
    path.write_bytes(content)


def segment(folder: Path, number: int, suffix: str = ".log", partition: str = "flights-0") -> Path:
    return folder / partition / names(folder / partition, suffix)[number]


def test_a_folder_that_holds_has_no_finding_and_everything_was_looked_at(folder: Path) -> None:
    seen = CheckedTotals()
    assert list(verify(RealDisk(), folder, seen)) == []
    assert seen.partitions == 3 and seen.segments == len(list(folder.glob("*/*.log")))
    assert seen.bytes == sum(path.stat().st_size for path in folder.glob("*/*.log"))
    alone = CheckedTotals()
    assert list(verify(RealDisk(), folder / "flights-0", alone)) == []
    assert (alone.partitions, alone.batches, alone.records) == (1, BATCHES, RECORDS)


@pytest.mark.parametrize(
    ("where", "at", "said"),
    [
        ("key or value", 200, "the checksum of the batch is wrong"),
        ("size", 8, "cut off"),
        ("format", 16, "unknown format"),
        ("offset", 0, "belongs to a later segment"),
        ("leader epoch", 12, "has leader epoch"),
    ],
)
def test_a_batch_that_does_not_hold_is_found(folder: Path, where: str, at: int, said: str) -> None:
    change(segment(folder, 1), at, b"\x7f")
    [found, *_] = [error for error in errors(folder) if said in error]
    assert found.startswith(segment(folder, 1).name)


def rewritten(folder: Path, change_it: Callable[[bytearray], None]) -> None:
    """Change the records of the first batch, which has no codec, so that its checksum holds."""
    path = segment(folder, 0)
    content = bytearray(path.read_bytes())
    [(_, header), *_] = list(batches(content))
    batch = content[: header.size]
    change_it(batch)
    stamp(batch, header.attributes, header.max_timestamp)
    path.write_bytes(batch + content[header.size :])


def test_a_record_that_is_none_in_a_batch_whose_checksum_holds_is_found(folder: Path) -> None:
    rewritten(folder, lambda batch: batch.__setitem__(HEADER_SIZE + 4, 0x7F))
    [found] = errors(folder)
    assert "record 0 is bad" in found


def test_a_batch_that_hides_its_latest_time_is_found(folder: Path) -> None:
    def hide(batch: bytearray) -> None:
        batch[27:35] = struct.pack(">q", NOW_MS + 1)

    rewritten(folder, hide)
    assert any("a record has time" in error for error in errors(folder))


def test_a_leader_epoch_that_none_can_have_is_found(folder: Path) -> None:
    change(segment(folder, 1), 12, b"\x80")
    assert any("impossible leader epoch" in error for error in errors(folder))


def test_a_log_that_ends_in_the_middle_of_a_batch_is_found_after_a_clean_stop(folder: Path) -> None:
    path = segment(folder, -1)
    path.write_bytes(path.read_bytes()[:-1])
    assert any("cut off" in error for error in errors(folder))


def test_a_segment_that_is_gone_from_the_middle_is_noted_and_its_indexes_are_found(folder: Path) -> None:
    segment(folder, 1).unlink()
    assert sum("the index has no log file" in error for error in errors(folder)) == 2
    assert any("are missing: compacted or lost" in note for note in notes(folder))


def test_segments_that_overlap_are_found(folder: Path) -> None:
    second = segment(folder, 1)
    base = int(second.stem)
    second.rename(second.with_name(f"{base - 5:020d}.log"))
    assert any("belongs to a later segment" in error for error in errors(folder))


def entries(path: Path, size: int) -> list[bytes]:
    content = path.read_bytes()
    return [content[at : at + size] for at in range(0, len(content), size)]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_index_entries_out_of_order_missing_or_cut_off_are_found(folder: Path, suffix: str) -> None:
    path = segment(folder, 1, suffix)
    size = {".index": OFFSET_ENTRY.size, ".timeindex": TIME_ENTRY.size}[suffix]
    sound = entries(path, size)
    path.write_bytes(b"".join([sound[1], sound[0], *sound[2:]]))
    assert any("is not above the one before" in error for error in errors(folder))
    path.write_bytes(b"".join(sound) + sound[0][:3])
    assert any("not a complete entry" in error for error in errors(folder))
    path.write_bytes(b"".join(sound) + bytes(4 * size))
    assert any("was not trimmed" in error for error in errors(folder))
    path.write_bytes(b"".join(sound) + bytes(size) + sound[-1])
    assert any("follow zeros" in error for error in errors(folder))
    path.unlink()
    assert any("the file is missing; the next start rebuilds it" in error for error in errors(folder))


def test_an_offset_index_that_points_elsewhere_is_found(folder: Path) -> None:
    path = segment(folder, 1, ".index")
    relative, position = OFFSET_ENTRY.unpack(entries(path, 8)[1])
    for wrong, said in (
        ((relative, position + 1), "where no batch begins"),
        ((relative + 1, position), "has last offset"),
        ((relative, 1 << 30), "after the log's last batch"),
    ):
        change(path, 8, OFFSET_ENTRY.pack(*wrong))
        assert any(said in error for error in errors(folder)), said


def test_a_time_index_that_is_not_so_is_found(folder: Path) -> None:
    path = segment(folder, 1, ".timeindex")
    sound = entries(path, 12)
    timestamp, relative = TIME_ENTRY.unpack(sound[1])
    for wrong, said in (
        ((timestamp + 1, relative), "has time"),
        ((timestamp, 1 << 30), "after the log's last batch"),
    ):
        change(path, 12, TIME_ENTRY.pack(*wrong))
        assert any(said in error for error in errors(folder)), said
    path.write_bytes(b"".join(sound[:-1]))
    assert any("the segment's largest time" in error for error in errors(folder))


def test_a_transaction_index_that_hides_or_invents_a_transaction_is_found(folder: Path) -> None:
    path = segment(folder, 0, ".txnindex", "bookings-0")
    sound = entries(path, ENTRY.size)
    path.write_bytes(b"".join(sound[1:]))
    assert any("has no entry" in error for error in errors(folder))
    path.unlink()
    assert any("has no entry" in error for error in errors(folder))
    version, producer, first, last, stable = ENTRY.unpack(sound[0])
    for wrong, said in (
        ((1, producer, first, last, stable), "unknown version 1"),
        ((version, producer + 1, first, last, stable), "has no abort of producer"),
        ((version, producer, last + 1, last, stable), "is impossible"),
        ((version, producer, first, 1 << 40, stable), "belongs to another segment"),
    ):
        path.write_bytes(ENTRY.pack(*wrong) + b"".join(sound[1:]))
        assert any(said in error for error in errors(folder)), said
    path.write_bytes(sound[1] + sound[0] + b"".join(sound[2:]))
    assert any("is not above the one before" in error for error in errors(folder))
    path.write_bytes(b"".join(sound))
    last_one = segment(folder, -1, ".txnindex", "bookings-0")
    last_one.write_bytes(last_one.read_bytes() + ENTRY.pack(version, producer, first, 1 << 40, 1 << 40))
    assert any("an entry has an abort at" in error for error in errors(folder))


def test_snapshots_that_do_not_hold_or_are_of_the_future_are_found(folder: Path) -> None:
    path = segment(folder, -1, ".snapshot")
    renamed = path.with_name(f"{RECORDS + 7:020d}.snapshot")
    shutil.copy(path, renamed)
    assert any(f"the snapshot is for offset {RECORDS + 7}" in error for error in errors(folder))
    renamed.unlink()
    shutil.copy(path, path.with_name(f"{3:020d}.snapshot"))
    assert any("past the snapshot" in error for error in errors(folder))
    change(path, -3, b"\x55")
    assert any("its checksum is wrong" in error for error in errors(folder))


def test_the_note_of_a_partition_that_has_moved_is_known(folder: Path) -> None:
    arrival.note(RealDisk(), folder / "flights-0", Arrival("the-other-folder", 0, RECORDS))
    said = "the partition moved here from log folder the-other-folder; the next start removes this note"
    assert (errors(folder), notes(folder)) == ([], [f"arrived-from: {said}"])
    (folder / "flights-0" / "arrived-from").write_text('{"version":1}')
    assert errors(folder) == ["arrived-from: the file does not say from which log folder the partition moved here"]


def test_epochs_that_fall_or_begin_behind_the_end_are_found(folder: Path) -> None:
    path = folder / "flights-0" / "leader-epoch-checkpoint"
    for text, said in (
        ("0\n2\n0 0\n3 5000\n", "begins at offset 5000"),
        ("0\n2\n3 0\n1 10\n", "not in ascending order"),
        ("0\n1\n0 0\n", "the checkpoint has 0"),
        ("0\n7\n0 0\n", "does not begin with version"),
    ):
        path.write_text(text)
        assert any(said in error for error in errors(folder)), said


def test_checkpoints_that_cannot_be_read_or_point_behind_the_log_are_found(folder: Path) -> None:
    for name, what in (
        ("recovery-point-offset-checkpoint", "was flushed up to"),
        ("log-start-offset-checkpoint", "begins at"),
        ("replication-offset-checkpoint", "was committed up to"),
    ):
        path = folder / name
        sound = path.read_text()
        path.write_text(f"0\n1\nflights 0 {RECORDS + 1}\n")
        assert any(what in error for error in errors(folder)), name
        path.write_text("0\n1\nflights 0\n")
        assert any("malformed line" in error for error in errors(folder))
        path.write_text("0\n1\nflights 0 -3\n")
        assert any("has the impossible offset -3" in error for error in errors(folder))
        path.write_text(sound)


def test_a_clean_stop_flushes_everything(folder: Path) -> None:
    (folder / "recovery-point-offset-checkpoint").write_text(f"0\n1\nflights 0 {RECORDS - 1}\n")
    assert any("by a clean stop" in error for error in errors(folder))


def test_kafkas_controllers_may_leave_their_log_open_at_a_clean_stop(folder: Path) -> None:
    """As 4.4 does: room in the indexes, and no last entry."""
    own = folder / "__cluster_metadata-0"
    shutil.copytree(folder / "flights-0", own)
    (own / "partition.metadata").unlink()
    closed = {index: index.read_bytes() for index in (*own.glob("*.index"), *own.glob("*.timeindex"))}
    for index in closed:
        index.write_bytes(bytes(120))
    assert errors(folder) == []
    for index, data in closed.items():
        index.write_bytes(data)
    assert errors(folder) == [], "closed, as 4.3 does"
    torn = max(own.glob("*.log"))
    whole = torn.read_bytes()
    torn.write_bytes(whole[:-7])
    assert errors(folder) != [], "a log that was closed is whole"
    torn.write_bytes(whole)
    for index in closed:
        index.write_bytes(bytes(120))
    own.rename(folder / "another-0")
    assert errors(folder) != []


def test_a_topic_with_two_ids_is_found(folder: Path) -> None:
    shutil.copytree(folder / "hollow-0", folder / "flights-1")
    assert any("topic id differs" in error for error in errors(folder))
    (folder / "flights-1" / "partition.metadata").write_text("nothing")
    assert any("names no topic id" in error for error in errors(folder))


def test_leftovers_and_strangers_are_notes(folder: Path) -> None:
    shutil.copy(segment(folder, 0), segment(folder, 0).with_name(f"{0:020d}.log.deleted"))
    shutil.copy(segment(folder, 0), segment(folder, 0).with_name(f"{0:020d}.log.swap"))
    shutil.copytree(folder / "hollow-0", folder / "hollow-0.0123-delete")
    (folder / "flights-0" / "README").write_text("hello")
    (folder / "notes.txt").write_text("hello")
    assert errors(folder) == []
    said = "\n".join(notes(folder))
    for what in ("left by a deletion (1)", "replaced segments (1)", "deletion of a topic", "README", "notes.txt"):
        assert what in said


def test_what_an_unclean_stop_leaves_is_no_error_and_is_named(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    assert look(tmp_path) == []
    path = segment(tmp_path, -1)
    sound = path.read_bytes()
    path.write_bytes(sound[:-10])
    [note] = notes(tmp_path)
    assert "the next start truncates the log there" in note and errors(tmp_path) == []
    change(path, -40, b"\x55\xaa")
    assert errors(tmp_path) == [] and len(notes(tmp_path)) == 1
    path.write_bytes(sound + bytes(4096))
    assert errors(tmp_path) == [] and "zeros follow" in notes(tmp_path)[0]


def test_before_the_first_checkpoint_the_next_start_reads_everything_again(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    for path in tmp_path.glob("*-checkpoint"):
        path.unlink()
    change(segment(tmp_path, 0), 300, b"\x55\xaa")
    assert errors(tmp_path) == [] and any("later segments" in note for note in notes(tmp_path))


def test_what_was_flushed_and_does_not_hold_is_an_error_after_an_unclean_stop_too(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    change(segment(tmp_path, 0), 300, b"\x55\xaa")
    assert any("checksum" in error for error in errors(tmp_path))


def test_flushed_records_that_are_gone_are_an_error_after_an_unclean_stop(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    path = segment(tmp_path, -1)
    first_size = next(batches(path.read_bytes()))[1].size
    path.write_bytes(path.read_bytes()[:first_size])
    assert any("was flushed up to offset" in error for error in errors(tmp_path))


def test_a_folder_without_surroundings_may_end_in_the_middle_of_a_batch_but_not_hold_a_wrong_one(folder: Path) -> None:
    alone = folder.parent / "alone" / "flights-0"
    shutil.copytree(folder / "flights-0", alone)
    last = names(alone, ".log")[-1]
    (alone / last).write_bytes((alone / last).read_bytes()[:-10])
    assert [finding for finding in look(alone) if finding.wrong and finding.path.name == last] == []
    change(alone / names(alone, ".log")[0], 300, b"\x55\xaa")
    assert any("checksum" in error for error in errors(alone))


def test_a_compacted_log_has_no_finding(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, Runtime(clock=HandClock()))
    log = folder.create(FLIGHTS, IDS["flights"], config(segment_bytes=2000, index_interval_bytes=100))
    for _ in range(20):
        append(log, 3)
    folder.close()
    path = segment(tmp_path, 0)
    content = path.read_bytes()
    kept = [content[at : at + header.size] for at, header in batches(content)]
    path.write_bytes(b"".join(kept[::2]))
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink()
    reopened = LogFolder(tmp_path, Runtime(clock=HandClock()))
    reopened.load({"flights": IDS["flights"]}, lambda _: SMALL)
    reopened.close()
    assert errors(tmp_path) == []


def test_one_file_with_much_that_is_wrong_does_not_fill_the_screen(folder: Path) -> None:
    path = segment(folder, 0, ".index")
    path.write_bytes(b"".join(OFFSET_ENTRY.pack(at, at) for at in range(1, 500)))
    found = errors(folder)
    assert len(found) < 30 and any("more findings" in error for error in found)


@pytest.mark.timeout(1200)
def test_any_bit_of_any_file_may_flip_and_what_covers_it_says_so(original: Path, tmp_path: Path) -> None:
    """In every kind of file; what no checksum covers and nothing contradicts may pass, but never raise."""
    shutil.copytree(original, tmp_path / "f")
    chance = random.Random(4)
    files = sorted(path for path in (tmp_path / "f").rglob("*") if path.is_file() and path.stat().st_size)
    kinds: dict[str, list[Path]] = {}
    for path in files:
        kinds.setdefault(path.suffix or path.name, []).append(path)
    passed: dict[str, int] = dict.fromkeys(kinds, 0)
    for number in range(FLIPS):
        kind = sorted(kinds)[number % len(kinds)]
        path = chance.choice(kinds[kind])
        sound = path.read_bytes()
        bit = chance.randrange(len(sound) * 8)
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        passed[kind] += not look(tmp_path / "f" if path.parent.name == "f" else path.parent)
        path.write_bytes(sound)
    assert passed[".log"] == passed[".snapshot"] == passed[".index"] == 0, passed
    assert passed[".timeindex"] < FLIPS / 50 and passed[".txnindex"] < FLIPS / 50, passed


def test_what_no_file_can_be_is_named_and_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "flights-0"
    folder.mkdir()
    (folder / f"{0:020d}.log").mkdir()
    (folder / "leader-epoch-checkpoint").write_bytes(b"\xff" * 100)
    (folder / "partition.metadata").write_bytes(base64.b64encode(b"\0" * 64))
    assert sum("cannot be read" in error for error in errors(folder)) == 1
    assert len(errors(folder)) >= 3
    huge = encode_batch(rows(1))
    huge[8:12] = struct.pack(">i", 2**31 - 1)
    shutil.rmtree(folder / f"{0:020d}.log")
    (folder / f"{0:020d}.log").write_bytes(huge)
    assert any("cut off" in f"{finding}" for finding in look(folder))
