"""What a run of the tests shows (a plugin of pytest): a line for each folder that is done, each failure at once, and at
the end the ten slowest tests and the command that repeats each failure.

usage: python -m pytest -p tools.forks -p tools.progress --forks 3 tests

Groups of tests are ordered by their seconds in `tests/durations.tsv` (tools/ordering.py).
`MOLDAU_RECORD=1` writes the seconds of this run into the table.
"""

import contextlib
import heapq
import os
import resource
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest

from harness import tiers
from tools import durations, rewriting
from tools.durations import file_of
from tools.forks import group_of
from tools.ordering import Expected, folder_by_folder, from_both_ends
from tools.workers import processors

SLOWEST = 10
TICKS = os.sysconf("SC_CLK_TCK")
PROCESSOR = "processor_s"
TIER = tiers.TIER.name.lower()


def folder_of(nodeid: str) -> str:
    """The folder below `tests`; files beside the folders are `tests`, and the name of a group stays."""
    parts = file_of(nodeid).split("/")
    return parts[1] if len(parts) > 2 else parts[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    if session.config.getoption("forks", 0) and session.config.args == ["tests"]:
        rewriting.share_out(session.config.rootpath, processors())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only forked workers begin at both ends."""
    table, files = durations.read(), Counter(file_of(item.nodeid) for item in items)
    groups: dict[str, dict[str, None]] = {}
    for item in items:
        groups.setdefault(group_of(item), {})[file_of(item.nodeid)] = None
    expected = {
        name: Expected(
            sum(table.of(TIER, file, files[file]) for file in of),
            sum(table.used(TIER, file, files[file]) for file in of),
        )
        for name, of in groups.items()
    }
    order = from_both_ends if config.getoption("forks", 0) else folder_by_folder
    ranks = {name: rank for rank, name in enumerate(order(expected, folder_of))}
    items.sort(key=lambda item: ranks[group_of(item)])


def processor_s() -> float:
    """User and system time of this process, of those it has waited for and, on Linux, of those that run below it."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in both) + sum(map(used_s, descendants(os.getpid())))


def descendants(process: int) -> Iterator[int]:
    """The processes below this one; some may have ended. It is asked for every test, so it makes no paths."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{process}/task/{thread}/children", "rb") as children:
                for child in map(int, children.read().split()):
                    yield child
                    yield from descendants(child)


def used_s(process: int) -> float:
    """User and system time of a process and of those it has waited for; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as stat:
            after_name = stat.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, after_name[11:15])) / TICKS


BEGAN_AT = pytest.StashKey[float]()
used_so_far: list[float] = []
"""At the end of the latest test, and so at the beginning of the next one."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BEGAN_AT] = used_so_far[-1] if used_so_far else processor_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.when == "teardown":
        used_so_far[:] = [processor_s()]
        used = max(0.0, used_so_far[0] - item.stash[BEGAN_AT])  # less if an orphan has ended, for which nobody waited
        report.user_properties.append((PROCESSOR, used))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """No dots: folders and failures are told instead."""
    if report.passed and report.when == "call":
        return "passed", "", ""
    if report.failed:
        return ("failed", "", "FAILED") if report.when == "call" else ("error", "", "ERROR")
    return None


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config), "moldau-progress")


class Progress:
    """In the process that the workers report to."""

    def __init__(self, config: pytest.Config):
        self._config = config
        self._table = durations.read()
        self._began = time.monotonic()
        self._left: dict[str, Counter[str]] = defaultdict(Counter)
        """Of each folder, the tests of each file that are not done."""
        self._expected_s: dict[str, float] = {}
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._folder_s: dict[str, float] = defaultdict(float)
        self._folder_processor_s: dict[str, float] = defaultdict(float)
        self._test_s: dict[str, float] = defaultdict(float)
        self._test_processor_s: dict[str, float] = defaultdict(float)
        self._failed: dict[str, None] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter:  # tests of several files end in turns: their files are no news
            reporter.showfspath = reporter._show_progress_info = False
        self._collected([item.nodeid for item in session.items])

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Where nothing is forked."""
        self._collected(ids)

    def _collected(self, ids: Sequence[str]) -> None:
        if self._expected_s or not ids:
            return
        files = Counter(file_of(nodeid) for nodeid in ids)
        for file, tests in files.items():
            self._left[folder_of(file)][file] = tests
            self._expected_s[file] = self._table.of(TIER, file, tests)
        workers = self._config.getoption("forks", 0) or self._config.getoption("numprocesses", None) or 1
        minutes = self._table.expected_s(TIER, files, workers, processors()) / 60
        self._say(f"{len(ids):,} tests in {len(self._left)} folders, {workers} at a time: about {minutes:.0f} min")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        file, folder = file_of(name), folder_of(name)
        self._test_s[name] += report.duration
        self._folder_s[folder] += report.duration
        if report.failed and name not in self._failed:
            self._failed[name] = None
            self._say(f"FAILED   {name}")
        if report.when == "call" or not report.passed:
            self._outcomes[folder][report.outcome] += 1
        if report.when == "teardown":
            used_s = sum(float(str(value)) for what, value in report.user_properties if what == PROCESSOR)
            self._folder_processor_s[folder] += used_s
            self._test_processor_s[name] += used_s
            self._done(folder, file)

    def _done(self, folder: str, file: str) -> None:
        left = self._left[folder]
        left[file] -= 1
        if left[file] <= 0:
            del left[file]
        if not left:
            counts = ", ".join(f"{number:,} {what}" for what, number in self._outcomes[folder].items())
            took = f"{self._folder_s[folder]:.0f} s, {self._folder_processor_s[folder]:.0f} s of processor time"
            self._say(f"{self._share():>4.0%}  {folder:<15}{counts} in {took}")

    def _share(self) -> float:
        """The part of the expected time that is done."""
        waiting = sum(self._expected_s[file] for left in self._left.values() for file in left)
        return 1 - waiting / (sum(self._expected_s.values()) or 1)

    def _say(self, line: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.ensure_newline()
            reporter.write_line(f"{time.monotonic() - self._began:>5.0f} s  {line}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section(f"the {SLOWEST} slowest")
        for name, seconds in heapq.nlargest(SLOWEST, self._test_s.items(), key=lambda one: one[1]):
            processor_s = self._test_processor_s[name]
            terminalreporter.write_line(f"{seconds:>7.1f} s, {processor_s:.1f} s of processor time  {name}")
        if self._failed:
            terminalreporter.section("to repeat")
        for name in self._failed:
            terminalreporter.write_line(f"again: {again(name)}")
        if os.environ.get("MOLDAU_RECORD") and TIER in durations.TIERS:
            self._record()

    def _record(self) -> None:
        """Of files in which no test failed."""
        failed = {file_of(name) for name in self._failed}
        measured, used = (by_file(of, failed) for of in (self._test_s, self._test_processor_s))
        self._table.take(TIER, measured, used)
        durations.write(self._table)


def by_file(seconds: Mapping[str, float], left_out: Collection[str]) -> dict[str, float]:
    """The sum of each file, from the seconds of its tests."""
    sums: dict[str, float] = defaultdict(float)
    for name, of_test in seconds.items():
        if file_of(name) not in left_out:
            sums[file_of(name)] += of_test
    return dict(sums)


def again(name: str) -> str:
    """The command that runs one test as it was run."""
    tier = f"MOLDAU_TIER={tiers.ASKED} " if tiers.ASKED else ""
    way = "MOLDAU_INTERPRETED=1 " if os.environ.get("MOLDAU_INTERPRETED") else ""
    return f"{tier}{way}.venv/bin/pytest {shlex.quote(name)}"
