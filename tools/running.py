"""Runs a command, shows its output, and accounts for every process that it started: processor time, and what is left.

On Linux a process whose parent has ended becomes a child of this one (a "child subreaper"), so that its processor time
counts too, and one that goes on after the command is found, stopped and named. Elsewhere only processes that were
waited for count.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from harness.patience import Deadline

ROOT = Path(__file__).resolve().parents[1]
LOOK_SECONDS = 5.0
"""How often the load is looked at, with which a deadline stretches."""

CLOSING_LINE = re.compile(r"^=+ (?P<counts>.*(?:passed|failed|error|no tests ran).*) in [\d.]+s.*=+$")
SUMMARY_LINE = re.compile(r"^=+ short test summary info =+$")
FAILING_LINE = re.compile(r"^(FAILED|ERROR) ")
OTHER_LINE = re.compile(r"^(SKIPPED|XFAIL|XPASS|PASSED) ")
NO_NEWS = re.compile(r"[.]+( *\[ *\d+%\])?$|seed \d+: \d+ messages in ")
COUNT = re.compile(r"(\d+) (passed|failed|error|skipped|deselected|xfailed|xpassed|warning)s?")
REASON_CHARACTERS_MAX = 1500
AGAIN = "again: "
TAIL_LINES = 15
PR_SET_CHILD_SUBREAPER = 36
STOP_SECONDS_MAX = 10.0
LEFT_SECONDS_MAX = 15.0
"""How long a process may go on after the command that started it: Java's end some seconds after their client."""


@dataclass
class Outcome:
    name: str
    seconds: float = 0.0
    processor_s: float = 0.0
    """User and system time of all processes."""
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Of each test that failed, as pytest's summary has them; of another command, how its output ended."""
    again: list[str] = field(default_factory=list)
    """The commands that repeat what failed, as tools/progress.py prints them."""


class Reading:
    """Reads a command's output line by line: counts of tests, and the reasons of failures."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: list[str] = []
        self.again: list[str] = []
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._summary = False

    def line(self, line: str) -> None:
        self.tail.append(line)
        if closing := CLOSING_LINE.match(line.strip()):
            self.counts.update({what: int(number) for number, what in COUNT.findall(closing["counts"])})
            self._summary = False
        elif SUMMARY_LINE.match(line.strip()):
            self._summary = True
        elif line.startswith(AGAIN):
            self.again.append(line.removeprefix(AGAIN).strip())
        elif self._summary and FAILING_LINE.match(line):
            self.reasons.append(line)
        elif self._summary and self.reasons and not OTHER_LINE.match(line):
            self.reasons[-1] = (self.reasons[-1] + line)[:REASON_CHARACTERS_MAX]

    def why(self) -> list[str]:
        """The reasons; the end of the output if there are none."""
        return [reason.rstrip() for reason in self.reasons] or ["".join(self.tail).rstrip()]


def adopt_orphans() -> None:
    """From now on, processes below this one become its children when their parents end (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run_command(
    command: list[str], environment: Mapping[str, str], deadline: Deadline, outcome: Outcome, log: TextIO | None = None
) -> None:
    """Run one command and show its output, or write it to the log; its counts, its processor time and the reasons of a
    failure go into the outcome. It is stopped at the deadline.

    Python keeps what it translated, also where the environment says otherwise: every worker would translate all tests.
    This process waits for any child meanwhile, so it must have no other children.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    began, done, late = time.monotonic(), threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(min(deadline.left_s, LOOK_SECONDS)):
            if deadline.passed:
                late.set()
                stop(process.pid)
                return

    reading = Reading()
    reader = threading.Thread(target=_show, args=(process, reading, log), daemon=True)
    try:
        threading.Thread(target=watch, daemon=True).start()
        reader.start()
        code = _await(process, outcome)
    except BaseException:
        stop(process.pid, reap=True)
        raise
    finally:
        done.set()
    left = _end_what_is_left(outcome)
    reader.join(LEFT_SECONDS_MAX)  # where orphans are not adopted, one may hold the pipe
    outcome.counts.update(reading.counts)
    outcome.again += reading.again
    shown = " ".join([Path(command[0]).name, *command[1:]])[:100]
    if late.is_set():
        outcome.failures.append(f"took too long, stopped after {time.monotonic() - began:.0f} s: {shown}")
    elif code:
        outcome.failures.append(f"exit code {code}: {shown}")
    outcome.failures += [f"left running: {one}" for one in left]
    if late.is_set() or code:
        outcome.reasons += reading.why()


def stop(leader: int, reap: bool = False) -> None:
    """Ask a command and all of its session to end; kill what has not after ten seconds. `reap`: nobody else waits for
    them."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(leader, sign)
        except ProcessLookupError:
            return
        until = time.monotonic() + STOP_SECONDS_MAX
        while time.monotonic() < until:
            try:
                os.killpg(leader, 0)
                if reap:
                    os.waitpid(-1, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):
                return
            time.sleep(0.05)


def _show(process: subprocess.Popen[str], reading: Reading, log: TextIO | None) -> None:
    watched = sys.stdout.isatty()
    with process.stdout or open(os.devnull) as lines:
        for line in lines:
            reading.line(line)
            if log:
                log.write(line)
            elif watched or not NO_NEWS.match(line):
                print(line, end="", flush=True)


def _await(process: subprocess.Popen[str], outcome: Outcome) -> int:
    """The exit code; whatever ends meanwhile is counted."""
    while True:
        pid, status, used = os.wait4(-1, 0)
        outcome.processor_s += used.ru_utime + used.ru_stime
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def _end_what_is_left(outcome: Outcome) -> list[str]:
    """Wait for processes that the command left, stop those that go on, and return their command lines."""
    until = time.monotonic() + LEFT_SECONDS_MAX
    named: dict[int, str] = {}
    while True:
        try:
            pid, _, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return list(named.values())
        outcome.processor_s += used.ru_utime + used.ru_stime
        if pid:
            continue
        if time.monotonic() > until:
            for child in _children():
                named[child] = _command_line(child)
                os.kill(child, signal.SIGKILL)
            until = time.monotonic() + LEFT_SECONDS_MAX
        time.sleep(0.05)


def _children() -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it has ended meanwhile
            continue
        if parent == os.getpid():
            yield int(path.parent.name)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return f"process {pid}"
