"""Runs a tier of the tests: `make test`, `make check`, `make long`; a line for each stage at the end.

usage: stages.py test|check [STAGE ...]          the tier, or these stages of it
       stages.py long [--minutes M] [--only NAME]  pieces of the long tier (tools/long.py), as many as fit
       stages.py --list                          what there is

Seeds, crash points and the demo run beside lint and tests, where there is room. A stage fails if one of its commands
fails, leaves a process running, or takes more than twice its budget; then it is stopped. Budgets are minutes on two
cores, and stretch with the machine's other work. The reasons of failures are printed again at the end, each with the
command that repeats it. If the output is not a terminal, lines without news (dots, seeds that passed) are left out.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to be run as a file, as `make` does

from harness.patience import Deadline
from tools import long
from tools.lanes import side_by_side
from tools.running import Outcome, adopt_orphans, run_command
from tools.workers import machine, room_beside, workers

BIN = Path(sys.executable).parent
REASONS_MAX = 30
LEFT_SHOWN = 20

NOT_COMPILED = "records/columns is not compiled: install a C compiler and Python's headers (gcc, python3-dev)"
CHECK_COMPILED = f"import moldau.records.columns as c, sys; sys.exit(None if c.COMPILED else {NOT_COMPILED!r})"
CHECK_QUIET = "import pathlib, sys; sys.exit(pathlib.Path('build/columns.log').read_text() or None)"
"""Fails with what Cython and the compiler said: `make setup` has compiled the columns, and keeps it there."""


@dataclass(frozen=True)
class Stage:
    """`commands` run one after the other, then pytest on `tests` (folders or files)."""

    name: str
    budget_minutes: float
    commands: tuple[tuple[str, ...], ...] = ()
    tests: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


LINT = Stage(
    "lint",
    2,
    (
        ("ruff", "check"),
        ("ruff", "format", "--check", "--quiet"),
        ("mypy",),
        ("lint-imports", "--no-cache", "--no-logo"),
        ("python", "tools/settings_page.py", "--check"),
    ),
)
COMPILED = Stage("compiled", 1, (("python", "-c", CHECK_COMPILED), ("python", "-c", CHECK_QUIET)))
INTERPRETED = Stage("interpreted", 2, tests=("tests/records",), environment={"MOLDAU_INTERPRETED": "1"})
SEEDS = Stage(
    "seeds",
    3,
    (
        ("python", "-m", "tests.worlds", "1000", "20", "--jobs", "2"),
        ("python", "-m", "tests.worlds", "2000", "20", "--power-loss", "--jobs", "2"),
        ("python", "-m", "tests.worlds", "4000", "10", "--groups", "--power-loss", "--jobs", "2"),
        ("python", "-m", "tests.worlds", "6000", "10", "--transactions", "--power-loss", "--jobs", "2"),
        ("python", "-m", "tests.worlds", "8000", "20", "--replicas", "--power-loss", "--jobs", "2"),
    ),
)
CRASH_POINTS = Stage("crash points", 2, (("python", "-m", "tests.crash_points", "--points", "3000", "--jobs", "2"),))
DEMO = Stage("demo", 4, (("moldau", "pipeline", "demo", "--folder", "build/demo"),))


@dataclass(frozen=True)
class Tier:
    """`beside` runs side by side with `stages`, where there are processors and memory for both: tests wait for much,
    and leave a third of the second processor to it."""

    sentence: str
    stages: tuple[Stage, ...] = ()
    beside: tuple[Stage, ...] = ()

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        return self.stages + self.beside

    def lanes(self, only: Sequence[str]) -> list[list[Stage]]:
        """The stages of these names, all if there is none."""
        chosen = [[one for one in lane if not only or one.name in only] for lane in (self.stages, self.beside)]
        lanes = [lane for lane in chosen if lane]
        return lanes if room_beside() else [[stage for lane in lanes for stage in lane]]


TIERS = {
    "test": Tier(
        "all deterministic tests, with Python and a JRE",
        (Stage("tests", 8, tests=("tests",)),),
    ),
    "check": Tier(
        "`make test`, lint, the newest foreign clients, Kafka's recorded answers, each kind of kill, the whole demo",
        (COMPILED, LINT, Stage("tests", 16, tests=("tests",))),  # one test takes over what lint has kept
        (INTERPRETED, SEEDS, CRASH_POINTS, DEMO),
    ),
    "long": Tier(
        "every client version, all put-in bugs, 20,000 crash points, thousands of seeds, 1,000 kills, live Kafka",
    ),
}


def commands_of(stage: Stage) -> list[list[str]]:
    commands = [[str(BIN / command[0]), *command[1:]] for command in stage.commands]
    if stage.tests:
        forks, spawned = ("-p", "tools.forks", "--forks", f"{workers()}"), ("-n", f"{workers()}", "--dist", "loadfile")
        options = (*(forks if sys.platform == "linux" else spawned), "-p", "tools.progress")
        commands.append([str(BIN / "python"), "-m", "pytest", *options, *stage.tests])
    return commands


@contextlib.contextmanager
def temporary_folder() -> Iterator[dict[str, str]]:
    """The variables that give a stage a folder of its own for temporary files. What is left there is named and removed;
    pytest's own folders, with what failed tests wrote, are where they always are."""
    usual = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="moldau-stage-", ignore_cleanup_errors=True) as folder:
        yield {"TMPDIR": folder, "PYTEST_DEBUG_TEMPROOT": os.environ.get("PYTEST_DEBUG_TEMPROOT", usual)}
        if left := sorted(path.name for path in Path(folder).iterdir()):
            print(f"left behind in TMPDIR, and removed: {', '.join(left[:LEFT_SHOWN])}", flush=True)


def run_stage(stage: Stage, environment: Mapping[str, str]) -> Outcome:
    outcome = Outcome(stage.name)
    started, deadline = time.monotonic(), Deadline(stage.budget_minutes * 120)
    print(f"\n##### stage {stage.name} (budget {stage.budget_minutes:g} min)", flush=True)
    with temporary_folder() as temporary:
        for command in commands_of(stage):
            run_command(command, {**environment, **temporary, **stage.environment}, deadline, outcome)
    outcome.seconds = time.monotonic() - started
    if deadline.passed and not outcome.failures:
        outcome.failures.append("took more than twice its budget")
    print(f"##### stage {stage.name}: {outcome.seconds:.0f} s, {'FAILED' if outcome.failures else 'ok'}", flush=True)
    return outcome


def report(outcomes: Sequence[Outcome], seconds: float) -> int:
    """Print each stage's seconds and failures, why tests failed and how to repeat them, and all counts together in the
    form of pytest's closing line. `seconds` is what all took, side by side."""
    print()
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total.update(outcome.counts)
        counts = ", ".join(f"{number} {what}" for what, number in outcome.counts.items())
        took = f"{outcome.seconds:>7.0f} s{outcome.processor_s:>7.0f} s of processor time"
        print(f"{outcome.name:<14}{took}  {'FAILED' if outcome.failures else 'ok':<8}{counts}")
        for failure in outcome.failures:
            print(f"{'':<14}{failure}")
    why = [f"[{outcome.name}] {reason}" for outcome in outcomes for reason in outcome.reasons]
    again = [command for outcome in outcomes for command in outcome.again]
    for title, lines in (("why", why), ("again", again)):
        if lines:
            print(f"\n{title}:", *lines[:REASONS_MAX], sep="\n")
        if len(lines) > REASONS_MAX:
            print(f"and {len(lines) - REASONS_MAX} more")
    processor = sum(outcome.processor_s for outcome in outcomes)
    print(f"\n{seconds:.0f} s, {processor:.0f} s of processor time")
    shown = ("failed", "passed", "skipped", "xfailed", "error")
    counts = ", ".join(f"{total[what]} {what}" for what in shown if total[what]) or "no tests ran"
    print(f"{f' {counts} in {seconds:.2f}s ':=^100}", flush=True)
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def run_tier(name: str, only: Sequence[str]) -> int:
    print(f"make {name}: {TIERS[name].sentence}\n{machine()}, so {workers()} tests at a time", flush=True)
    began = time.monotonic()
    outcomes = side_by_side(TIERS[name].lanes(only), lambda stage: run_stage(stage, {"MOLDAU_TIER": name}))
    return report(outcomes, time.monotonic() - began)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="run a tier of the tests")
    parser.add_argument(
        "tier", nargs="?", choices=TIERS, help="; ".join(f"{n}: {t.sentence}" for n, t in TIERS.items())
    )
    parser.add_argument("stage", nargs="*", help="all of the tier, if none is named")
    parser.add_argument("--minutes", type=float, default=60, help="of the long tier (60)")
    parser.add_argument("--only", default="", metavar="NAME", help="of the long tier: pieces with this in their names")
    parser.add_argument("--list", action="store_true", help="tiers, stages and pieces")
    asked = parser.parse_args(arguments)
    if asked.list or asked.tier is None:
        return tell()
    names = [stage.name for stage in TIERS[asked.tier].all_stages]
    if unknown := [name for name in asked.stage if name not in names]:
        parser.error(f"{asked.tier} has no stage {unknown[0]}: it has {', '.join(names) or 'pieces (--only)'}")
    adopt_orphans()
    if asked.tier == "long":
        return long.run(asked.minutes, asked.only)
    return run_tier(asked.tier, asked.stage)


def tell() -> int:
    for name, tier in TIERS.items():
        print(f"{name}: {tier.sentence}")
        for stage in tier.all_stages:
            print(f"  {stage.name:<14}{stage.budget_minutes:>4g} min  {' '.join(stage.tests)}")
    for piece in long.all_pieces():
        print(f"  {piece.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
