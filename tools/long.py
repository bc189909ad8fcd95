"""The long tier: pieces that go on from where the last run stopped, a line for each (`make long MINUTES=60 ONLY=NAME`).

Pieces are the files of tests that have more to do in the long tier, and the commands below. What passed is kept in
`build/long.json` for this revision, and what a piece said in `build/long/`. Each piece draws a seed; one that failed
gets the same seed again until it passes. When all pieces have passed, the next run begins anew. The last piece begins
before the minutes are over, and may end after them.
"""

import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.patience import Deadline
from tools.running import ROOT, Outcome, run_command
from tools.workers import processors, workers

STATE = ROOT / "build" / "long.json"
LOGS = ROOT / "build" / "long"
PYTHON = str(Path(sys.executable).parent / "python")
MORE_TO_DO = re.compile(
    r"\bmark\.long\b|\bharness\.tiers import\b|\bharness\.brokers import\b|\breleases\(|\bkafka_tools import\b"
    r"|^from hypothesis\b",
    re.MULTILINE,
)
"""What a file of tests, or the conftest.py beside it, names if it does more in the long tier."""
KILLS = "tests/replicated/test_kills.py"
KILL_PIECES = 30
REFEREES = ("4.3.1", "4.4.0")
WORLDS = ("", "groups", "transactions", "replicas", "replicated-groups", "replicated-transactions")
WORLD_SEEDS = 500
SEED = "{seed}"
"""Stands for the seed in a command."""
PIECE_MINUTES_MAX = 180
"""A piece that takes longer hangs."""


@dataclass(frozen=True)
class Piece:
    """A command, or files of tests that pytest runs."""

    name: str
    command: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return LOGS / (re.sub(r"\W+", "-", self.name).strip("-") + ".log")

    def started_with(self, seed: int) -> list[str]:
        options = ("-n", str(workers()), "--dist", "load", "--timeout=0", f"--hypothesis-seed={seed}")
        command = (PYTHON, "-m", "pytest", *options, *self.tests) if self.tests else self.command
        return [str(seed) if word == SEED else word for word in command]


def files() -> Iterator[Piece]:
    """A piece for each file of tests with more to do."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        conftest = path.with_name("conftest.py")
        texts = [path.read_text(), *([conftest.read_text()] if conftest.exists() and path.parents[1] != ROOT else [])]
        if file != KILLS and any(map(MORE_TO_DO.search, texts)):
            yield Piece(
                file.removeprefix("tests/").removesuffix(".py").replace("replicated/", "replicas/"), tests=(file,)
            )


def commands() -> Iterator[Piece]:
    jobs = ("--jobs", str(processors()))
    for number in range(1, KILL_PIECES + 1):
        parts = {"MOLDAU_PIECES": str(KILL_PIECES)}
        yield Piece(f"replicas/kills {number} of {KILL_PIECES}", tests=("-s", KILLS), environment=parts)
    for kind in WORLDS:
        for loss in ((), ("--power-loss",)):
            options = ((f"--{kind}",) if kind else ()) + loss
            name = " ".join(["seeds/worlds", *options])
            yield Piece(name, (PYTHON, "-m", "tests.worlds", SEED, str(WORLD_SEEDS), *options, *jobs))
    points = ("--points", "20000", *jobs)
    yield Piece("crash points/20,000", (PYTHON, "-m", "tests.crash_points", "--seed", SEED, *points))
    for version in REFEREES:
        yield Piece(f"referee/{version}", (PYTHON, "tools/referee.py", version))
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("debootstrap"):  # else it cannot make other systems
        yield Piece("machines", (PYTHON, "tools/machines.py"))


def all_pieces() -> list[Piece]:
    return [*commands(), *files()]


@dataclass
class State:
    """Names of the pieces that passed at this revision, and the seeds of those that failed."""

    revision: str
    passed: list[str] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)

    def save(self) -> None:
        STATE.parent.mkdir(exist_ok=True)
        partial = STATE.with_suffix(".partial")
        partial.write_text(json.dumps(vars(self), indent=1))
        partial.replace(STATE)


def revision() -> str:
    """The commit and what is changed since; a new one each time where git cannot say."""
    digest = hashlib.sha256()
    try:
        for command in (("rev-parse", "HEAD"), ("diff", "HEAD"), ("ls-files", "--others", "--exclude-standard")):
            digest.update(subprocess.run(("git", *command), cwd=ROOT, capture_output=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        digest.update(os.urandom(16))
    return digest.hexdigest()


def read_state() -> State:
    """What was kept; of another revision, only the seeds of what failed."""
    now = revision()
    try:
        kept = json.loads(STATE.read_text())
        return State(now, list(kept["passed"]) if kept["revision"] == now else [], dict(kept["failed"]))
    except (OSError, ValueError, KeyError, TypeError):
        return State(now)


def run(minutes: float, only: str, pieces: Sequence[Piece] | None = None) -> int:
    """Run pieces that have not passed yet, until the time is over; the exit code."""
    chosen = [piece for piece in (all_pieces() if pieces is None else pieces) if only in piece.name]
    if not chosen:
        print(f"no piece has {only!r} in its name: `tools/stages.py --list` has them all")
        return 2
    state, until = read_state(), time.monotonic() + minutes * 60
    if all(piece.name in state.passed for piece in chosen):
        state.passed = [name for name in state.passed if name not in {piece.name for piece in chosen}]
    waiting = [piece for piece in chosen if piece.name not in state.passed]
    print(f"{len(chosen)} pieces, of which {len(chosen) - len(waiting)} have passed at this revision", flush=True)
    ran = 0
    failed: list[Piece] = []
    for piece in waiting:
        if time.monotonic() > until:
            break
        ran += 1
        if not run_piece(piece, state):
            failed.append(piece)
        state.save()
    print(f"{ran} pieces ran, {len(failed)} failed, {len(waiting) - ran} are left for the next `make long`")
    for piece in failed:
        print(f"FAILED {piece.name}: {piece.log}")
    return 1 if failed else 0


def run_piece(piece: Piece, state: State) -> bool:
    """Run one piece, its output in its log; print its line, and if it failed, why, and how to repeat it."""
    outcome, began = Outcome(piece.name), time.monotonic()
    seed = state.failed.get(piece.name, random.SystemRandom().randrange(1 << 32))
    command = piece.started_with(seed)
    environment = {"MOLDAU_TIER": "long", "MOLDAU_FIRST_SEED": str(seed), **piece.environment}
    LOGS.mkdir(parents=True, exist_ok=True)
    with piece.log.open("w") as log:
        run_command(command, environment, Deadline(PIECE_MINUTES_MAX * 60), outcome, log)
    counts = ", ".join(f"{number} {what}" for what, number in outcome.counts.items())
    took = f"{time.monotonic() - began:>6.0f} s{outcome.processor_s:>7.0f} s of processor time"
    print(f"{'FAILED' if outcome.failures else 'ok':<8}{piece.name:<60}{took}  {counts}", flush=True)
    if not outcome.failures:
        state.passed.append(piece.name)
        state.failed.pop(piece.name, None)
        return True
    state.failed[piece.name] = seed
    given = " ".join(f"{name}={value}" for name, value in environment.items())
    for line in (*outcome.failures, *outcome.reasons, f"again: {given} {shlex.join(command)}"):
        print(f"        {line}", flush=True)
    return False
