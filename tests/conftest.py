"""What every test gets: columns interpreted when asked for, and the profiles of property tests.

`MOLDAU_INTERPRETED=1` makes `moldau.records.columns` run from its Python files even where they are compiled, so that
the same tests run both ways. `MOLDAU_PROFILE=long` makes property tests search a hundred times longer.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
import pytest_timeout

from harness.patience import Deadline
from tests.spark import bootstrap, half_open, moldau_command, new_topic, numbers, produce, slow_once, spark

__all__ = ["bootstrap", "half_open", "moldau_command", "new_topic", "numbers", "produce", "slow_once", "spark"]

FIRST_PYTHON_WITHOUT_RE2 = (3, 15)
"""As in pyproject.toml. On older ones a missing google-re2 is a failure, not a reason to skip."""
COLUMNS = Path(__file__).parents[1] / "src" / "moldau" / "records" / "columns"

hypothesis.settings.register_profile("usual", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True)
hypothesis.settings.register_profile("long", deadline=None, print_blob=True, max_examples=10_000)
hypothesis.settings.load_profile(os.environ.get("MOLDAU_PROFILE") or ("ci" if os.environ.get("CI") else "usual"))


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


def pytest_report_header() -> str:
    return f"records/columns: {f'interpreted ({INTERPRETED_WHY})' if INTERPRETED_WHY else 'compiled'}"


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


@pytest.fixture(autouse=True)
def _logging_is_left_on() -> Iterator[None]:
    """Whoever switches it off switches it on again: others look at what was logged."""
    yield
    ours = logging.getLogger("moldau")
    left = logging.root.manager.disable, ours.level, ours.propagate
    assert left == (logging.NOTSET, logging.NOTSET, True), "this test leaves logging switched off"
