"""Limits stretch with the machine's load, and still end what hangs."""

import asyncio
import time
from pathlib import Path

import pytest

from harness import patience
from harness.patience import Deadline, slowness, stretched, wait_until, within

ROOT = Path(__file__).parents[1]
pytest_plugins = ["pytester"]
TIMED = """
import os, time
os.getloadavg = lambda: ({load}, 0.0, 0.0)
os.cpu_count = lambda: 1

def test_that_takes_a_while():
    time.sleep(1)
"""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The load that two processors have had for a minute; for five it was 1."""
    averages = [0.0, 1.0, 0.0]
    monkeypatch.setattr(patience.os, "getloadavg", lambda: tuple(averages))
    monkeypatch.setattr(patience.os, "cpu_count", lambda: 2)
    return averages


def test_limits_are_what_they_say_on_an_idle_machine_and_longer_on_a_busy_one(load: list[float]) -> None:
    assert slowness() == 1 and stretched(30) == 30
    load[0] = 8
    assert slowness() == 4 and stretched(30) == 120
    load[:2] = 2, 16
    assert stretched(30) == 240, "it was busy a minute ago"


def test_a_deadline_follows_the_load(load: list[float]) -> None:
    deadline = Deadline(0.01)
    time.sleep(0.02)
    assert deadline.passed and deadline.left_s == 0
    load[0] = 2000
    assert not deadline.passed and 5 < deadline.left_s <= 10


def test_what_never_holds_is_given_up(load: list[float]) -> None:
    assert not wait_until(lambda: False, 0.05)
    assert wait_until(lambda: True, 0)


def test_work_that_hangs_is_cancelled_and_other_work_has_its_result_or_failure(load: list[float]) -> None:
    cancelled = []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    async def fails() -> None:
        raise KeyError("this")

    async def scenario() -> None:
        with pytest.raises(TimeoutError, match="it hangs"):
            await within(hangs(), 0.05)
        assert cancelled
        assert await within(asyncio.sleep(0, "result")) == "result"
        with pytest.raises(KeyError, match="this"):
            await within(fails())

    asyncio.run(scenario())


@pytest.mark.parametrize(("busy", "passed"), [(0.0, 0), (1000.0, 1)])
def test_the_limit_of_a_test_stretches_too(pytester: pytest.Pytester, busy: float, passed: int) -> None:
    hook = "from tests.conftest import pytest_timeout_set_timer"
    pytester.makeconftest(f"import sys; sys.path.insert(0, {str(ROOT)!r}); {hook}")
    pytester.makepyfile(TIMED.format(load=busy))
    outcome = pytester.runpytest_subprocess("--timeout=0.3", "-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=passed, failed=1 - passed)
