"""`moldau log verify`: what it prints, what it exits with, and that it changes nothing."""

import hashlib
import shutil
from pathlib import Path

import pytest

from harness.logs import names
from moldau.runtime import RealDisk
from tests.cli.conftest import Moldau
from tests.files.inspection.filled import RECORDS, fill


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled")
    fill(path)
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "data")
    return tmp_path / "data"


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything that a change would change."""
    return {
        str(path): (
            path.stat().st_mtime_ns,
            path.stat().st_size,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [folder, *folder.rglob("*")]
    }


def test_a_folder_that_holds_is_one_line_and_exit_code_0(offline: Moldau, folder: Path) -> None:
    verified = offline("log", "verify", str(folder))
    assert (verified.code, verified.err, len(verified.lines)) == (0, "", 1)
    assert verified.out.startswith("3 partitions, ") and verified.out.endswith(": all is well\n")
    one = offline("log", "verify", str(folder / "flights-0"))
    assert one.code == 0 and one.out.startswith("1 partition, ") and f" {RECORDS:,} records, " in one.out


def test_an_error_is_a_line_that_names_the_file_and_exit_code_1(offline: Moldau, folder: Path) -> None:
    path = folder / "flights-0" / names(folder / "flights-0", ".log")[1]
    content = bytearray(path.read_bytes())
    content[100] ^= 0x20
    path.write_bytes(content)
    verified = offline("log", "verify", str(folder))
    assert verified.code == 1
    assert f"error: {path}: at position 0, after offset" in verified.out
    assert ": 1 error, " in verified.lines[-1]
    said = offline("log", "verify", str(folder), "--json")
    assert said.code == 1 and '"type": "summary"' in said.lines[-1] and '"type": "error"' in said.lines[0]


def test_a_torn_tail_after_a_crash_is_a_note_that_only_strict_minds(offline: Moldau, tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    path = tmp_path / "flights-0" / names(tmp_path / "flights-0", ".log")[-1]
    path.write_bytes(path.read_bytes()[:-5])
    verified = offline("log", "verify", str(tmp_path))
    assert verified.code == 0
    assert verified.lines[0].startswith(f"note: {path}: ") and verified.lines[0].endswith("truncates the log there")
    assert verified.lines[-1].endswith("all is well, 1 note")
    assert offline("log", "verify", str(tmp_path), "--strict").code == 1


def test_neither_dump_nor_verify_changes_a_byte_or_a_time(offline: Moldau, folder: Path, tmp_path: Path) -> None:
    fill(tmp_path / "unclean", clean=False)
    for path in (folder, tmp_path / "unclean"):
        before = state(path)
        assert offline("log", "verify", str(path)).code == 0
        assert offline("log", "verify", str(path / "flights-0")).code == 0
        assert offline("log", "dump", str(path), "--records", "--json").code == 0
        assert state(path) == before


def test_what_cannot_be_verified_is_said_in_a_sentence(offline: Moldau, folder: Path, tmp_path: Path) -> None:
    assert "No such file" in offline("log", "verify", str(tmp_path / "nowhere")).error
    assert offline("log", "verify").code == 2
    assert offline("log", "verify", str(folder), "--what").code == 2
    release = RealDisk().lock(folder / ".lock")
    try:
        assert "a broker is using" in offline("log", "verify", str(folder)).error
        assert offline("log", "verify", str(folder), "--force").code == 0
    finally:
        release()


def test_a_folder_that_holds_no_log_is_an_error_and_never_well(offline: Moldau, folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    sentence = f"{wrong} is not a log folder: it holds no partition and no meta.properties"
    assert offline("log", "verify", str(wrong)).error == sentence
    (wrong / "notes.txt").write_text("hello")
    (wrong / "chapter-1").mkdir()
    (wrong / "chapter-2").write_text("named as a partition")
    assert offline("log", "verify", str(folder), str(wrong)).error == sentence
    assert offline("log", "verify", str(wrong), "--json").error == sentence
    assert "No such file" in offline("log", "verify", str(tmp_path / "absent")).error


def test_a_log_folder_that_lost_its_own_files_is_still_one(offline: Moldau, folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    assert offline("log", "verify", str(folder)).out.splitlines()[-1].startswith("3 partitions, ")


def test_a_log_folder_without_a_topic_is_well(offline: Moldau, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    verified = offline("log", "verify", str(tmp_path))
    assert verified.code == 0 and verified.out.startswith("0 partitions, ")
