"""Runs what CI runs: named stages, each with a budget; a line for each at the end.

usage: stages.py [STAGE ...]        these stages, or all of them
       stages.py --long MINUTES     the randomised stages again and again, in their long mode
       stages.py --list             what there is

A stage fails if one of its commands fails, or if it takes more than twice its budget; then it is stopped. Budgets are
minutes on two cores. The stages split the suite by folders: a test that no other stage names belongs to `unit`.

The reasons of failures are printed again at the end. If the output is not a terminal, lines without news (dots,
seeds that passed) are left out.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent

CLOSING_LINE = re.compile(r"^=+ (?P<counts>.*(?:passed|failed|error|no tests ran).*) in [\d.]+s.*=+$")
SUMMARY_LINE = re.compile(r"^=+ short test summary info =+$")
FAILING_LINE = re.compile(r"^(FAILED|ERROR) ")
OTHER_LINE = re.compile(r"^(SKIPPED|XFAIL|XPASS|PASSED) ")
NO_NEWS = re.compile(r"[.]+( *\[ *\d+%\])?$|seed \d+: \d+ messages in ")
REASON_CHARACTERS_MAX = 1500
REASONS_MAX = 30
TAIL_LINES = 15
COUNT = re.compile(r"(\d+) (passed|failed|error|skipped|deselected|xfailed|xpassed|warning)s?")

PARALLEL = ("-n", "2", "--dist", "loadfile")
NOT_COMPILED = "records/columns is not compiled: install a C compiler and Python's headers (gcc, python3-dev)"
CHECK_COMPILED = f"import moldau.records.columns as c, sys; sys.exit(None if c.COMPILED else {NOT_COMPILED!r})"
CHECK_QUIET = "import pathlib, sys; sys.exit(pathlib.Path('build/columns.log').read_text() or None)"
"""Fails with what Cython and the compiler said: `make setup` has compiled the columns, and keeps it there."""
AS_FILES = {"MOLDAU_INTERPRETED": "1"}


@dataclass(frozen=True)
class Stage:
    """`commands` run first, then pytest on `tests` (folders or files) with `options`.

    `again`: runs tests that another stage runs too, another way. `long`: has a long mode.
    """

    name: str
    budget_minutes: float
    commands: tuple[tuple[str, ...], ...] = ()
    tests: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    again: bool = False
    long: bool = False


LINT = (
    ("ruff", "check"),
    ("ruff", "format", "--check", "--quiet"),
    ("mypy",),
    ("lint-imports", "--no-cache", "--no-logo"),
    ("python", "tools/settings_page.py", "--check"),
)
COMPILED = (("python", "-c", CHECK_COMPILED), ("python", "-c", CHECK_QUIET))
DEMO = (("moldau", "pipeline", "demo", "--folder", "build/demo"),)
SEEDS = (
    ("python", "-m", "tests.worlds", "1000", "150"),
    ("python", "-m", "tests.worlds", "2000", "150", "--power-loss"),
    ("python", "-m", "tests.worlds", "3000", "50", "--groups", "--jobs", "2"),
    ("python", "-m", "tests.worlds", "4000", "50", "--groups", "--power-loss", "--jobs", "2"),
    ("python", "-m", "tests.worlds", "5000", "50", "--transactions", "--jobs", "2"),
    ("python", "-m", "tests.worlds", "6000", "50", "--transactions", "--power-loss", "--jobs", "2"),
    ("python", "-m", "tests.worlds", "7000", "60", "--replicas", "--jobs", "2"),
    ("python", "-m", "tests.worlds", "8000", "100", "--replicas", "--power-loss", "--jobs", "2"),
    ("python", "-m", "tests.worlds", "9000", "20", "--replicated-groups", "--power-loss", "--jobs", "2"),
    ("python", "-m", "tests.worlds", "9500", "20", "--replicated-transactions", "--power-loss", "--jobs", "2"),
)
CRASH_POINTS = (("python", "-m", "tests.crash_points", "--points", "20000", "--jobs", "2"),)

STAGES = (
    Stage("lint", 2, commands=LINT),
    Stage("unit", 10, commands=COMPILED, tests=("tests",), options=PARALLEL, long=True),
    Stage("interpreted", 2, tests=("tests/records",), options=PARALLEL, environment=AS_FILES, again=True),
    Stage("clients", 14, tests=("tests/clients",), options=PARALLEL),
    Stage("transactions", 9, tests=("tests/clients/transactions",), options=PARALLEL, long=True),
    Stage("differential", 6, tests=("tests/differential",)),
    Stage("agreement", 4, tests=("tests/agreement",)),
    Stage("spark", 16, commands=DEMO, tests=("tests/demo", "tests/pipeline"), options=PARALLEL),
    Stage("loads", 4, tests=("tests/pipeline/loading/test_kills.py",), long=True),
    Stage("crash points", 8, commands=CRASH_POINTS, tests=("tests/crash_points",), options=PARALLEL, long=True),
    Stage("simulation", 6, commands=SEEDS, tests=("tests/simulation", "tests/worlds"), options=("-n", "2"), long=True),
    Stage("zookeeper", 5, tests=("tests/zookeeper",), options=PARALLEL),
    Stage("kills", 4, tests=("tests/zookeeper/test_kills.py",), long=True),
    Stage("replicas", 6, tests=("tests/replicated",), long=True),
    Stage("end-to-end", 8, tests=("tests/end_to_end",), options=PARALLEL, long=True),
)


@dataclass
class Outcome:
    name: str
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Of each test that failed, as pytest's summary has them; of another command, how its output ended."""


def commands_of(stage: Stage, stages: Sequence[Stage] = STAGES) -> list[list[str]]:
    """The commands of the stage; pytest leaves out folders inside its own that other stages run."""
    commands = [[str(BIN / command[0]), *command[1:]] for command in stage.commands]
    if stage.tests:
        others = [path for other in stages if not other.again for path in other.tests]
        ignored = [f"--ignore={path}" for path in others if any(path.startswith(f"{own}/") for own in stage.tests)]
        commands.append([str(BIN / "python"), "-m", "pytest", *stage.options, *ignored, *stage.tests])
    return commands


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a command and all that it started: it leads a session of its own."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(10)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


class Reading:
    """Reads a command's output line by line: counts of tests, and the reasons of failures."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: list[str] = []
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._summary = False

    def line(self, line: str) -> None:
        self.tail.append(line)
        if closing := CLOSING_LINE.match(line.strip()):
            self.counts.update({what: int(number) for number, what in COUNT.findall(closing["counts"])})
            self._summary = False
        elif SUMMARY_LINE.match(line.strip()):
            self._summary = True
        elif self._summary and FAILING_LINE.match(line):
            self.reasons.append(line)
        elif self._summary and self.reasons and not OTHER_LINE.match(line):
            self.reasons[-1] = (self.reasons[-1] + line)[:REASON_CHARACTERS_MAX]

    def why(self) -> list[str]:
        """The reasons; the end of the output if there are none."""
        return [reason.rstrip() for reason in self.reasons] or ["".join(self.tail).rstrip()]


def run_command(command: list[str], environment: Mapping[str, str], seconds: float, outcome: Outcome) -> None:
    """Run one command and show its output; its counts and the reasons of a failure go into the outcome."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = threading.Event()

    def too_late() -> None:
        late.set()
        stop(process)

    timer = threading.Timer(min(max(seconds, 0.1), threading.TIMEOUT_MAX), too_late)
    timer.daemon = True
    timer.start()
    reading, watched = Reading(), sys.stdout.isatty()
    try:
        for line in process.stdout or ():
            reading.line(line)
            if watched or not NO_NEWS.match(line):
                print(line, end="", flush=True)
        code = process.wait()
    except BaseException:
        stop(process)
        raise
    finally:
        timer.cancel()
        if process.stdout:
            process.stdout.close()
    outcome.counts.update(reading.counts)
    shown = " ".join([Path(command[0]).name, *command[1:]])[:100]
    if late.is_set():
        outcome.failures.append(f"stopped at twice the budget: {shown}")
    elif code:
        outcome.failures.append(f"exit code {code}: {shown}")
    if late.is_set() or code:
        outcome.reasons += reading.why()


def run_stage(stage: Stage, environment: Mapping[str, str]) -> Outcome:
    outcome = Outcome(stage.name)
    started, allowed = time.monotonic(), stage.budget_minutes * 120
    print(f"\n##### stage {stage.name} (budget {stage.budget_minutes:g} min)", flush=True)
    for command in commands_of(stage):
        left = allowed - (time.monotonic() - started)
        run_command(command, {**environment, **stage.environment}, left, outcome)
    outcome.seconds = time.monotonic() - started
    if outcome.seconds > allowed and not outcome.failures:
        outcome.failures.append("took more than twice its budget")
    print(f"##### stage {stage.name}: {outcome.seconds:.0f} s, {'FAILED' if outcome.failures else 'ok'}", flush=True)
    return outcome


def report(outcomes: Sequence[Outcome]) -> int:
    """Print each stage's seconds and failures, why tests failed, and all counts together in the form of pytest's
    closing line."""
    print()
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total.update(outcome.counts)
        counts = ", ".join(f"{number} {what}" for what, number in outcome.counts.items())
        print(f"{outcome.name:<14}{outcome.seconds:>7.0f} s  {'FAILED' if outcome.failures else 'ok':<8}{counts}")
        for failure in outcome.failures:
            print(f"{'':<14}{failure}")
    reasons = [f"[{outcome.name}] {reason}" for outcome in outcomes for reason in outcome.reasons]
    if reasons:
        print("\nwhy:")
        print(*reasons[:REASONS_MAX], sep="\n")
    if len(reasons) > REASONS_MAX:
        print(f"and {len(reasons) - REASONS_MAX} more")
    seconds = sum(outcome.seconds for outcome in outcomes)
    shown = ("failed", "passed", "skipped", "xfailed", "error")
    counts = ", ".join(f"{total[what]} {what}" for what in shown if total[what]) or "no tests ran"
    print(f"{f' {counts} in {seconds:.2f}s ':=^100}", flush=True)
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def run_long(minutes: float) -> list[Outcome]:
    """The randomised stages in turns until the time is up or one fails: its output says how to repeat it."""
    outcomes: list[Outcome] = []
    until = time.monotonic() + minutes * 60
    while time.monotonic() < until:
        for stage in STAGES:
            if stage.long:
                unhurried = replace(stage, budget_minutes=float("inf"), commands=(), options=(*PARALLEL, "--timeout=0"))
                outcomes.append(run_stage(unhurried, {"MOLDAU_TIER": "long"}))
                if outcomes[-1].failures:
                    return outcomes
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="run the stages of CI")
    names = [stage.name for stage in STAGES]
    parser.add_argument("stage", nargs="*", help=f"all of them, if none of {', '.join(names)} is named")
    parser.add_argument("--long", type=float, metavar="MINUTES", help="the randomised stages in their long mode")
    parser.add_argument("--list", action="store_true", help="the stages and their budgets")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.stage if name not in names]:
        parser.error(f"there is no stage {unknown[0]}: there are {', '.join(names)}")
    if chosen.list:
        for stage in STAGES:
            print(f"{stage.name:<14}{stage.budget_minutes:>4g} min  {' '.join(stage.tests)}")
        return 0
    if chosen.long is not None:
        return report(run_long(chosen.long))
    return report([run_stage(stage, {}) for stage in STAGES if not chosen.stage or stage.name in chosen.stage])


if __name__ == "__main__":
    sys.exit(main())
