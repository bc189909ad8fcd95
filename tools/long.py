"""The long tier: pieces that go on from where the last run stopped, a line for each (`make long MINUTES=60 ONLY=NAME`).

Pieces are the files of tests that have more to do in the long tier (they name it: `mark.long`, `LONG`, `sized`,
hypothesis), and the commands below. What passed is kept in `build/long.json` for this revision, and what a piece said
in `build/long/`. When all pieces have passed, the next run begins anew; chance draws other seeds then.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.running import ROOT, Outcome, run_command
from tools.workers import processors, workers

BIN = Path(sys.executable).parent
STATE = ROOT / "build" / "long.json"
LOGS = ROOT / "build" / "long"
MORE_TO_DO = re.compile(r"\bmark\.long\b|\bharness\.tiers import\b|^from hypothesis\b", re.MULTILINE)
KILLS = "tests/replicated/test_kills.py"
KILL_PIECES = 30
REFEREES = ("4.3.1", "4.4.0")
WORLDS = ("", "groups", "transactions", "replicas", "replicated-groups", "replicated-transactions")
WORLD_SEEDS = 500


@dataclass(frozen=True)
class Piece:
    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return LOGS / (re.sub(r"\W+", "-", self.name).strip("-") + ".log")


def _pytest(*tests: str) -> tuple[str, ...]:
    options = ("-n", str(workers()), "--dist", "load", "--timeout=0")
    return (str(BIN / "python"), "-m", "pytest", *options, *tests)


def _seed() -> str:
    return str(random.SystemRandom().randrange(1 << 40))


def _files() -> Iterator[Piece]:
    """A piece for each file of tests with more to do."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        conftest = path.with_name("conftest.py")
        texts = [path.read_text(), *([conftest.read_text()] if conftest.exists() and path.parents[1] != ROOT else [])]
        if file != KILLS and any(map(MORE_TO_DO.search, texts)):
            name = file.removeprefix("tests/").removesuffix(".py").replace("replicated/", "replicas/")
            yield Piece(name, _pytest(file))


def _commands() -> Iterator[Piece]:
    python, jobs = str(BIN / "python"), str(processors())
    for number in range(1, KILL_PIECES + 1):
        name = f"replicas/kills {number} of {KILL_PIECES}"
        yield Piece(name, _pytest("-s", KILLS), {"MOLDAU_PIECES": str(KILL_PIECES)})
    for kind in WORLDS:
        for loss in ((), ("--power-loss",)):
            options = ((f"--{kind}",) if kind else ()) + loss
            name = " ".join(["seeds/worlds", *options])
            yield Piece(name, (python, "-m", "tests.worlds", _seed(), str(WORLD_SEEDS), *options, "--jobs", jobs))
    points = ("--points", "20000", "--jobs", jobs)
    yield Piece("crash points/20,000", (python, "-m", "tests.crash_points", "--seed", _seed(), *points))
    for version in REFEREES:
        yield Piece(f"referee/{version}", (python, "tools/referee.py", version))
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("debootstrap"):  # else it cannot make other systems
        yield Piece("machines", (python, "tools/machines.py"))


PIECES = (*_commands(), *_files())


@dataclass
class State:
    """Names of the pieces that passed at this revision."""

    revision: str
    passed: list[str]

    def save(self) -> None:
        STATE.parent.mkdir(exist_ok=True)
        partial = STATE.with_suffix(".partial")
        partial.write_text(json.dumps({"revision": self.revision, "passed": self.passed}, indent=1))
        partial.replace(STATE)


def read_state() -> State:
    """Of this revision; that of another one counts for nothing."""
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    revision = git.stdout.strip()
    try:
        kept = json.loads(STATE.read_text())
        passed = kept["passed"] if kept["revision"] == revision else []
    except (OSError, ValueError, KeyError, TypeError):
        passed = []
    return State(revision, passed)


def run(minutes: float, only: str, pieces: Sequence[Piece] = PIECES) -> int:
    """Run pieces that have not passed yet, until the time is over; the exit code."""
    chosen = [piece for piece in pieces if only in piece.name]
    if not chosen:
        print(f"no piece has {only!r} in its name: `tools/stages.py --list` has them all")
        return 2
    state, until = read_state(), time.monotonic() + minutes * 60
    if all(piece.name in state.passed for piece in chosen):
        state.passed = [name for name in state.passed if name not in {piece.name for piece in chosen}]
    waiting = [piece for piece in chosen if piece.name not in state.passed]
    print(f"{len(chosen)} pieces, of which {len(chosen) - len(waiting)} have passed at this revision", flush=True)
    failed: list[Piece] = []
    ran = 0
    for piece in waiting:
        if time.monotonic() > until:
            break
        ran += 1
        if run_piece(piece):
            state.passed.append(piece.name)
            state.save()
        else:
            failed.append(piece)
    print(f"{ran} pieces ran, {len(failed)} failed, {len(waiting) - ran} are left for the next `make long`")
    for piece in failed:
        print(f"FAILED {piece.name}: {piece.log.relative_to(ROOT)}")
    return 1 if failed else 0


def run_piece(piece: Piece) -> bool:
    """Run one piece, its output in its log; print its line, and why it failed."""
    outcome, began = Outcome(piece.name), time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)
    with piece.log.open("w") as log:
        run_command(list(piece.command), {"MOLDAU_TIER": "long", **piece.environment}, float("inf"), outcome, log)
    counts = ", ".join(f"{number} {what}" for what, number in outcome.counts.items())
    took = f"{time.monotonic() - began:>6.0f} s{outcome.processor_s:>7.0f} s of processor time"
    print(f"{'FAILED' if outcome.failures else 'ok':<8}{piece.name:<60}{took}  {counts}", flush=True)
    for line in (*outcome.failures, *outcome.reasons, *outcome.again):
        print(f"        {line}", flush=True)
    return not outcome.failures
