"""The folder of a command's Spark goes with the command, or with the next one; folders of others stay."""

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.pipeline import scratch
from moldau.pipeline.scratch import PREFIX, remove_abandoned, scratch_folder

KILLED = """
import os, signal
from moldau.pipeline.scratch import scratch_folder

with scratch_folder() as folder:
    (folder / "blocks").mkdir()
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_block(temporary: Path) -> None:
    def interrupted() -> None:
        with scratch_folder() as folder:
            (folder / "spark-local").mkdir()
            assert folder.parent == temporary
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(temporary.iterdir()) == []


def test_the_next_command_removes_the_folder_of_a_killed_one_but_not_of_one_that_lives(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(temporary))
    with scratch_folder() as alive:
        done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
        killed = Path(done.stdout.strip())
        assert killed.parent == temporary and (killed / "blocks").exists(), done.stderr
        with scratch_folder() as next_one:
            assert set(temporary.iterdir()) == {alive, next_one}


def test_what_is_not_a_folder_of_ours_stays(temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "kept").touch()
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}file").touch()
    (temporary / "others").mkdir()
    remove_abandoned(temporary)
    assert len(list(temporary.iterdir())) == 3 and (elsewhere / "kept").exists()
    remove_abandoned(temporary / "nowhere")


def test_a_folder_that_another_command_removed_before_it_was_locked_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, locked = scratch.fcntl.flock, []

    def overtaken(lock: int, how: int) -> None:
        if not locked:
            locked.append(lock)
            [folder] = temporary.iterdir()
            folder.rmdir()
        real(lock, how)

    monkeypatch.setattr(scratch.fcntl, "flock", overtaken)
    with scratch_folder() as folder:
        assert locked and list(temporary.iterdir()) == [folder]
