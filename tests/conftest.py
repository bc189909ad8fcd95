"""What every test gets: its tier, columns interpreted when asked for, and the profiles of property tests.

`MOLDAU_INTERPRETED=1` makes `moldau.records.columns` run from its Python files even where they are compiled, so that
the same tests run both ways. Property tests take the same examples in every run; in the long tier they take new ones,
and a hundred times as many.
"""

import functools
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest
import pytest_timeout
from hypothesis import strategies

from harness import brokers, tiers
from harness.forking import Forking
from harness.patience import Deadline
from moldau.notices import Notices
from tests import refereed
from tests.spark import bootstrap, half_open, moldau_command, new_topic, numbers, produce, slow_once, spark

__all__ = ["bootstrap", "half_open", "moldau_command", "new_topic", "numbers", "produce", "slow_once", "spark"]

FIRST_PYTHON_WITHOUT_RE2 = (3, 15)
"""As in pyproject.toml. On older ones a missing google-re2 is a failure, not a reason to skip."""
COLUMNS = Path(__file__).parents[1] / "src" / "moldau" / "records" / "columns"

EXAMPLES = tiers.examples(30, 40)
WITHOUT_A_CLOCK = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True, max_examples=EXAMPLES
)
"""The first example of texts reads tables of letters: on a busy machine that may take longer than hypothesis allows."""
hypothesis.settings.register_profile("same", WITHOUT_A_CLOCK, derandomize=True)
hypothesis.settings.register_profile("new", WITHOUT_A_CLOCK)
hypothesis.settings.load_profile("new" if tiers.LONG else "same")
hypothesis.core.function_digest = functools.cache(hypothesis.core.function_digest)
"""Hypothesis reads the source of a function twice for each set of its parameters, and most have hundreds."""


NOTICES: "weakref.WeakSet[Notices]" = weakref.WeakSet()
"""What this process has, to be forgotten between tests: a line counts as told for half a minute, whoever told it."""


def _remember(notices: Notices, *given: Any, _begin: Callable[..., None] = Notices.__init__, **named: Any) -> None:
    _begin(notices, *given, **named)
    NOTICES.add(notices)


Notices.__init__ = _remember  # type: ignore[method-assign]


class InterpretedColumns(importlib.abc.MetaPathFinder):
    """Finds the modules of records/columns as Python files, before anyone finds the compiled ones beside them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if package != "moldau.records.columns":
            return None
        return importlib.util.spec_from_file_location(name, COLUMNS / f"{module}.py")


def stale_columns() -> list[str]:
    """Compiled modules older than their source: what runs would not be what one reads."""
    return [
        so.name
        for so in sorted(COLUMNS.glob("*.so"))
        if (source := COLUMNS / f"{so.name.partition('.')[0]}.py").exists()
        and source.stat().st_mtime > so.stat().st_mtime
    ]


INTERPRETED_WHY = (
    "asked for"
    if os.environ.get("MOLDAU_INTERPRETED")
    else f"{', '.join(stale)} older than its source: run `make setup`"
    if (stale := stale_columns())
    else ""
    if any(COLUMNS.glob("*.so"))
    else "not compiled"
)
if INTERPRETED_WHY:
    sys.meta_path.insert(0, InterpretedColumns())


def hear_signals() -> None:
    """What runs in the background, or under nohup, ignores SIGINT and SIGHUP, and its children inherit that: tests that
    send them would wait for ever. A signal with a handler is one that children find as it should be."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


hear_signals()
if not tiers.LONG:
    brokers.forking = Forking()


def pytest_report_header() -> list[str]:
    return [
        f"records/columns: {f'interpreted ({INTERPRETED_WHY})' if INTERPRETED_WHY else 'compiled'}",
        f"tier: {tiers.ASKED or 'none, so all that is named runs'}",
        f"property tests: {'new examples' if tiers.LONG else 'the same examples in every run (seeds of their names)'}",
    ]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of higher tiers than the one that is asked for are left out."""
    if tiers.ASKED:
        above = [item for item in items if tier_of(item) > tiers.TIER]
        config.hook.pytest_deselected(items=above)
        items[:] = [item for item in items if tier_of(item) <= tiers.TIER]


def pytest_configure(config: pytest.Config) -> None:
    chosen = [f"{name} {value}" for name in ("keyword", "markexpr", "deselect") if (value := config.getoption(name))]
    refereed.missing += [f"tests were deselected: {one}" for one in chosen]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        refereed.missing.append(f"failed: {report.nodeid}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting tests makes is no garbage: looking for some meanwhile takes a quarter of its time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """What collecting made stays until the end: no collection of garbage needs to look at it again. What is forked
    shares it, and Hypothesis's table of all characters, which takes seconds in a fresh clone."""
    if session.config.getoption("forks", 0):
        strategies.text().validate()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Libraries that count what is left at their end find none of it. Processes of `tools.forks` end before that."""
    if not config.getoption("forks", 0):
        gc.unfreeze()


def tier_of(item: pytest.Item) -> tiers.Tier:
    return max((tier for name, tier in tiers.MARKERS.items() if item.get_closest_marker(name)), default=tiers.Tier.TEST)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if sys.version_info >= FIRST_PYTHON_WITHOUT_RE2 and item.get_closest_marker("re2"):
        pytest.importorskip("re2", reason="google-re2 has no wheel for this Python, and is not installed")


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool | None:
    """The limit of a test stretches with the load: it is looked at when the alarm rings, and set again if it is not
    over. Other methods than that of signals are left to the plugin."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    deadline = Deadline(settings.timeout)

    def ring(*_: object) -> None:
        if deadline.passed:
            pytest_timeout.timeout_sigalrm(item, settings)
        signal.setitimer(signal.ITIMER_REAL, max(deadline.left_s, 0.1))

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


HEARD = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Whoever switches logging off switches it on again: others look at what was logged. Handlers of signals are put
    back: uvloop leaves its own when it is closed, and a broker that has ended in this process would hear of Ctrl-C."""
    for number, handler in HEARD.items():
        signal.signal(number, handler)
    for notices in NOTICES:
        notices._written.clear()
    ours = logging.getLogger("moldau")
    left = logging.root.manager.disable, ours.level, ours.propagate
    assert left == (logging.NOTSET, logging.NOTSET, True), "this test leaves logging switched off"
