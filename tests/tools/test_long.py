"""The long tier goes on where it stopped, tells a line for each piece, and forgets what passed at another revision."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.running import ROOT, python
from tools.long import KILLS, Piece, all_pieces

RUN = """
import json, sys
from pathlib import Path
from tools import long
from tools.long import Piece
long.LOGS, long.STATE = Path(sys.argv[1]) / "logs", Path(sys.argv[1]) / "long.json"
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


@pytest.mark.parametrize("kept", ["{", "[]", '{"revision": "another", "passed": ["a"], "failed": {}}'])
def test_a_state_of_another_revision_or_that_is_none_counts_for_nothing(run: Run, tmp_path: Path, kept: str) -> None:
    (tmp_path / "long.json").write_text(kept)
    assert run([("a", noting(tmp_path / "ran", "a"))])[0] == 0
    assert (tmp_path / "ran").read_text() == "a"


def test_a_piece_that_failed_gets_its_seed_again_and_says_how_to_repeat_it(run: Run, tmp_path: Path) -> None:
    both = "sys.argv[1] + ' ' + os.environ['MOLDAU_FIRST_SEED'] + ' '"
    notes = f"import os, sys; open({str(tmp_path / 'seeds')!r}, 'a').write({both})"
    code, lines = run([("a", [*python(notes + "; raise SystemExit(1)"), "{seed}"])])
    first = (tmp_path / "seeds").read_text().split()[0]
    assert code == 1 and any(
        f"MOLDAU_FIRST_SEED={first} " in line and "again: MOLDAU_TIER=long" in line for line in lines
    )
    assert run([("a", [*python(notes), "{seed}"])])[0] == 0
    assert run([("a", [*python(notes), "{seed}"])])[0] == 0
    seeds = (tmp_path / "seeds").read_text().split()
    assert seeds[:4] == [first] * 4 and seeds[4] == seeds[5] != first


def test_each_piece_has_a_name_and_a_log_of_its_own_and_tests_that_are_there() -> None:
    pieces = all_pieces()
    names = [piece.name for piece in pieces]
    assert len(set(names)) == len(names) and len({piece.log for piece in pieces}) == len(names)
    files = {word for piece in pieces for word in piece.tests if not word.startswith("-")}
    assert len(files) > 10 and all((ROOT / file).is_file() for file in files)


@pytest.mark.long  # it collects all tests once more
def test_every_test_of_the_long_tier_is_in_a_piece() -> None:
    every = {name: value for name, value in os.environ.items() if name != "MOLDAU_TIER"}
    collect = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-qq", "-m", "long", "tests"]
    env = every | {"MOLDAU_TIER": "long"}
    done = subprocess.run(collect, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    collected = {line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("tests/")}
    assert KILLS not in collected and len(collected) > 10
    assert collected <= {test for piece in all_pieces() for test in piece.tests}


def test_a_log_is_named_after_its_piece() -> None:
    assert Piece("seeds/worlds --groups", (sys.executable,)).log.name == "seeds-worlds-groups.log"
