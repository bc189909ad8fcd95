"""Tiers: who runs what, how much, and from which seed."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness import tiers
from harness.tiers import Tier

ROOT = Path(__file__).parents[1]
pytest_plugins = ["pytester"]
MARKED = """
import pytest

def test_plain(): pass

@pytest.mark.check
def test_checked(): pass

@pytest.mark.long
def test_long(): pass

VERSIONS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("long", "check")]

@pytest.mark.parametrize("version", VERSIONS)
def test_versions(version): pass
"""


@pytest.mark.parametrize(("tier", "passed"), [("test", 1), ("check", 3), ("long", 5), ("", 5)])
def test_a_tier_leaves_out_what_belongs_to_a_higher_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tier: str, passed: int
) -> None:
    monkeypatch.setattr(tiers, "ASKED", tier or None)
    monkeypatch.setattr(tiers, "TIER", tiers.tier_of(tier or "check"))
    pytester.makeconftest(
        "from tests.conftest import pytest_collection_modifyitems\n"
        "def pytest_configure(config):\n"
        "    for name in ('check', 'long'): config.addinivalue_line('markers', name)\n"
    )
    pytester.makepyfile(MARKED)
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=passed, deselected=5 - passed)


@pytest.mark.parametrize(("tier", "size"), [(Tier.TEST, 1), (Tier.CHECK, 20), (Tier.LONG, 300)])
def test_a_size_is_that_of_the_tier(monkeypatch: pytest.MonkeyPatch, tier: Tier, size: int) -> None:
    monkeypatch.setattr(tiers, "TIER", tier)
    assert tiers.sized(1, 20, 300) == size


def test_chance_belongs_to_the_long_tier_and_a_seed_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOLDAU_SEED", raising=False)
    monkeypatch.delenv("MOLDAU_FIRST_SEED", raising=False)
    monkeypatch.setattr(tiers, "LONG", False)
    assert tiers.seed_or(5) == 5 and tiers.seeds_or(5, 3) == range(5, 8)
    monkeypatch.setattr(tiers, "LONG", True)
    assert len({tiers.seed_or(5) for _ in range(20)}) > 1 and len(tiers.seeds_or(5, 3)) == 3
    monkeypatch.setenv("MOLDAU_FIRST_SEED", "70")
    assert tiers.seed_or(5) == 70 and tiers.seeds_or(5, 3) == range(70, 73)
    monkeypatch.setenv("MOLDAU_SEED", "77")
    assert tiers.seed_or(5) == 77 and tiers.seeds_or(5, 3) == range(77, 78)


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("long", 0, "long 2\n"), ("", 0, "None 1\n"), ("fast", 1, "MOLDAU_TIER is 'fast': it is test, check or long\n")],
)
def test_a_variable_names_the_tier_and_an_unknown_one_is_one_sentence(name: str, code: int, said: str) -> None:
    run = [sys.executable, "-c", "from harness.tiers import ASKED, TIER; print(ASKED, int(TIER))"]
    done = subprocess.run(run, cwd=ROOT, env={"MOLDAU_TIER": name}, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (code, said)
