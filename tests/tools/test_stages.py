"""The tiers: what is told at their end, that their stages exist, and that all documents name them alike."""

import subprocess
from pathlib import Path

import pytest

from harness import patience
from tools import stages
from tools.running import Outcome
from tools.stages import TIERS

ROOT = Path(__file__).parents[2]


def test_the_end_tells_seconds_counts_reasons_and_how_to_repeat(capsys: pytest.CaptureFixture[str]) -> None:
    bad = Outcome("tests", 61.2, 100.4, failures=["exit code 1: pytest"], reasons=["FAILED a - b"], again=["pytest a"])
    bad.counts.update(failed=1, passed=40)
    good = Outcome("lint", 3.0, 5.0)
    good.counts.update(passed=2)
    assert stages.report([good, bad], 62) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split() for line in said if line.startswith("tests")] == [
        ["tests", "61", "s", "100", "s", "of", "processor", "time", "FAILED", "1", "failed,", "40", "passed"]
    ]
    assert "[tests] FAILED a - b" in said and said.index("again:") + 1 == said.index("pytest a")
    assert "62 s, 105 s of processor time" in said, "they ran side by side"
    assert said[-1].startswith("===") and " 1 failed, 42 passed in 62.00s " in said[-1]
    assert stages.report([good], 3) == 0


def test_only_so_many_reasons_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    stages.report([Outcome("tests", failures=["bad"], reasons=["FAILED a - b"] * (stages.REASONS_MAX + 10))], 1)
    said = capsys.readouterr().out
    assert said.count("[tests] FAILED a - b") == stages.REASONS_MAX and "and 10 more" in said


def test_a_stage_beyond_twice_its_budget_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "run_command", lambda *_: None)
    assert stages.run_stage(stages.Stage("slow", 0, (("true",),)), {}).failures == ["took more than twice its budget"]


def test_every_stage_names_tests_that_exist() -> None:
    named = [path for tier in TIERS.values() for stage in tier.all_stages for path in stage.tests]
    assert named and [path for path in named if not (ROOT / path).exists()] == []


def test_test_and_check_run_all_folders() -> None:
    for name in ("test", "check"):
        assert any(stage.tests == ("tests",) for stage in TIERS[name].stages)


@pytest.mark.parametrize(
    ("room", "lanes"), [(True, [["compiled", "tests"], ["demo"]]), (False, [["compiled", "tests", "demo"]])]
)
def test_stages_run_side_by_side_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, room: bool, lanes: list[list[str]]
) -> None:
    monkeypatch.setattr(stages, "room_beside", lambda: room)
    chosen = TIERS["check"].lanes(("tests", "demo", "compiled"))
    assert [[stage.name for stage in lane] for lane in chosen] == lanes
    assert [[stage.name for stage in lane] for lane in TIERS["check"].lanes(["demo"])] == [["demo"]]


@pytest.mark.parametrize("page", ["Makefile", "README.md", "CONTRIBUTING.md", "tests/README.md"])
def test_all_pages_say_the_same_of_each_tier(page: str) -> None:
    text = (ROOT / page).read_text()
    assert [name for name, tier in TIERS.items() if tier.sentence not in text] == []


def test_an_unknown_stage_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        stages.main(["check", "nonsense"])
    assert "check has no stage nonsense: it has compiled, lint, tests" in capsys.readouterr().err


def test_a_budget_stretches_with_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "slowness", lambda: 1000.0)
    slow = stages.Stage("slow", 0.0001, (("sleep", "0.1"),))
    monkeypatch.setattr(stages, "commands_of", lambda stage: [list(command) for command in stage.commands])
    monkeypatch.setattr(stages, "run_command", lambda command, *_: subprocess.run(command, check=True))
    assert stages.run_stage(slow, {}).failures == []
