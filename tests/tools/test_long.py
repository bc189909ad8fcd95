"""The long tier goes on where it stopped, tells a line for each piece, and forgets what passed at another revision."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.running import ROOT, python
from tools.long import KILLS, MORE_TO_DO, PIECES, Piece

RUN = """
import json, sys
from pathlib import Path
from tools import long
from tools.long import Piece
long.LOGS, long.STATE = Path(sys.argv[1]) / "logs", Path(sys.argv[1]) / "long.json"
long.ROOT = Path(sys.argv[1])
pieces = [Piece(name, tuple(command)) for name, command in json.loads(sys.argv[2])]
sys.exit(long.run(float(sys.argv[3]), sys.argv[4], pieces))
"""
Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run these pieces; the exit code and the lines."""
    (tmp_path / "build").mkdir()

    def run(pieces: list[tuple[str, list[str]]], minutes: float = 1, only: str = "") -> tuple[int, list[str]]:
        command = [*python(RUN), str(tmp_path), json.dumps(pieces), str(minutes), only]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout.splitlines()

    return run


def noting(file: Path, name: str, code: int = 0) -> list[str]:
    return python(f"open({str(file)!r}, 'a').write({name!r}); raise SystemExit({code})")


def test_pieces_that_passed_are_not_run_again_and_those_that_failed_are(run: Run, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    pieces = [("a", noting(ran, "a")), ("b", noting(ran, "b", 1)), ("c", noting(ran, "c"))]
    code, lines = run(pieces)
    assert code == 1 and ran.read_text() == "abc"
    assert [line.split()[:2] for line in lines[1:4]] != [] and any(line.startswith("FAILED  b") for line in lines)
    code, _ = run([*pieces[:1], ("b", noting(ran, "B")), *pieces[2:]])
    assert code == 0 and ran.read_text() == "abcB"


def test_when_all_have_passed_the_next_run_begins_anew(run: Run, tmp_path: Path) -> None:
    pieces = [("a", noting(tmp_path / "ran", "a"))]
    assert run(pieces)[0] == run(pieces)[0] == 0
    assert (tmp_path / "ran").read_text() == "aa"


def test_no_piece_begins_when_the_time_is_over(run: Run, tmp_path: Path) -> None:
    code, lines = run([("a", noting(tmp_path / "ran", "a"))], minutes=-1)
    assert code == 0 and not (tmp_path / "ran").exists()
    assert lines[-1] == "0 pieces ran, 0 failed, 1 are left for the next `make long`"


def test_only_pieces_with_the_name_run_and_no_such_name_is_told(run: Run, tmp_path: Path) -> None:
    pieces = [("replicas/a", noting(tmp_path / "ran", "a")), ("seeds/b", noting(tmp_path / "ran", "b"))]
    assert run(pieces, only="replicas")[0] == 0 and (tmp_path / "ran").read_text() == "a"
    code, lines = run(pieces, only="nothing")
    assert code == 2 and lines == ["no piece has 'nothing' in its name: `tools/stages.py --list` has them all"]


@pytest.mark.parametrize("kept", ["{", "[]", '{"revision": "another", "passed": ["a"]}'])
def test_a_state_of_another_revision_or_that_is_none_counts_for_nothing(run: Run, tmp_path: Path, kept: str) -> None:
    (tmp_path / "long.json").write_text(kept)
    assert run([("a", noting(tmp_path / "ran", "a"))])[0] == 0
    assert (tmp_path / "ran").read_text() == "a"


def test_every_file_with_more_to_do_is_in_a_piece_and_each_name_is_there_once() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    more = {file for file in files if MORE_TO_DO.search((ROOT / file).read_text())}
    run = {argument for piece in PIECES for argument in piece.command if argument.startswith("tests/")}
    assert KILLS in more and more <= run <= files
    names = [piece.name for piece in PIECES]
    assert len(set(names)) == len(names) and len({piece.log for piece in PIECES}) == len(names)


def test_a_log_is_named_after_its_piece() -> None:
    assert Piece("seeds/worlds --groups", (sys.executable,)).log.name == "seeds-worlds-groups.log"
