"""The stage runner: what it lets fail, what it stops, and that its stages split the suite."""

import sys
import time
from pathlib import Path

import pytest

from harness.patience import stretched
from tools import stages


@pytest.fixture(autouse=True)
def commands_are_any_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "BIN", Path("/"))


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_a_stage_whose_commands_succeed_is_ok() -> None:
    outcome = stages.run_stage(stages.Stage("fine", 1, commands=(python("print('hello')"),)), {})
    assert outcome.failures == []


def test_a_failing_command_fails_its_stage_and_the_next_command_still_runs(capfd: pytest.CaptureFixture[str]) -> None:
    stage = stages.Stage("bad", 1, commands=(python("raise SystemExit(3)"), python("print('still here')")))
    outcome = stages.run_stage(stage, {})
    assert outcome.failures and outcome.failures[0].startswith("exit code 3")
    assert "still here" in capfd.readouterr().out
    assert stages.report([outcome]) == 1


def test_a_stage_beyond_twice_its_budget_is_stopped_with_all_it_started() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    started = time.monotonic()
    outcome = stages.run_stage(stages.Stage("slow", 0.5 / 120, commands=(python(code),)), {})
    assert outcome.failures and "twice the budget" in outcome.failures[0]
    assert time.monotonic() - started < stretched()


def test_counts_of_pytest_are_added_up(capfd: pytest.CaptureFixture[str]) -> None:
    closing = "print('===== 2 failed, 40 passed, 1 error in 0.31s =====')"
    outcome = stages.run_stage(stages.Stage("tests", 1, commands=(python(closing), python(closing))), {})
    stages.report([outcome])
    last = capfd.readouterr().out.splitlines()[-1]
    assert " 4 failed, 80 passed, 2 error in " in last and last.startswith("===") and last.endswith("===")


SUMMARY = """
=========================== short test summary info ============================
SKIPPED [1] tests/a.py:3: not here
FAILED tests/a.py::test_one - AssertionError: 3 differences
Kafka said 1
Moldau said 2
ERROR tests/a.py::test_two - RuntimeError: no broker
========================= 1 failed, 1 error in 0.31s ===========================
"""


def test_why_tests_failed_is_said_again_at_the_very_end(capfd: pytest.CaptureFixture[str]) -> None:
    loud = python(f"print({SUMMARY!r}); raise SystemExit(1)")
    outcome = stages.run_stage(stages.Stage("tests", 1, commands=(loud,)), {})
    capfd.readouterr()
    stages.report([outcome, stages.Outcome("after it")])
    said = capfd.readouterr().out
    assert said.endswith(
        "why:\n[tests] FAILED tests/a.py::test_one - AssertionError: 3 differences\nKafka said 1\nMoldau said 2\n"
        "[tests] ERROR tests/a.py::test_two - RuntimeError: no broker\n" + said.splitlines()[-1] + "\n"
    )


def test_reasons_are_cut_where_there_are_too_many_or_too_long_ones(capfd: pytest.CaptureFixture[str]) -> None:
    summary = (
        "=== short test summary info ===\\n" + "FAILED a - b\\n" * 40 + "more\\n" * 2000 + "=== 1 failed in 1s ==="
    )
    loud = python(f"print('{summary}'); raise SystemExit(1)")
    outcome = stages.run_stage(stages.Stage("tests", 1, commands=(loud,)), {})
    capfd.readouterr()
    stages.report([outcome])
    said = capfd.readouterr().out
    assert said.count("[tests] FAILED a - b") == stages.REASONS_MAX and "and 10 more" in said
    assert max(map(len, outcome.reasons)) <= stages.REASON_CHARACTERS_MAX


def test_of_a_command_that_is_no_test_the_end_is_said_again(capfd: pytest.CaptureFixture[str]) -> None:
    loud = python("print('\\n'.join(f'line {i}' for i in range(99))); raise SystemExit(1)")
    outcome = stages.run_stage(stages.Stage("lint", 1, commands=(loud,)), {})
    capfd.readouterr()
    stages.report([outcome])
    said = capfd.readouterr().out
    assert "line 98" in said and "line 80" not in said


def test_what_is_no_news_is_left_out_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    lines = [
        "..... [ 7%]",
        "..F.. [ 9%]",
        "...",
        "seed 5: no",
    ]
    code = f"print({chr(10).join(lines)!r})"
    stages.run_stage(stages.Stage("tests", 1, commands=(python(code),)), {})
    said = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line in said] == ["..F.. [ 9%]", "seed 5: no"]


def test_the_stages_split_the_suite() -> None:
    by_name = {stage.name: stages.commands_of(stage) for stage in stages.STAGES}
    unit = by_name["unit"][-1]
    folders = [path for stage in stages.STAGES if stage.name != "unit" and not stage.again for path in stage.tests]
    assert folders and all(f"--ignore={path}" in unit for path in folders)
    assert "--ignore=tests/records" not in unit


def test_every_stage_names_tests_that_exist() -> None:
    root = Path(__file__).parents[1]
    missing = [path for stage in stages.STAGES for path in stage.tests if not (root / path).exists()]
    assert missing == []


def test_the_long_mode_repeats_its_stages_and_stops_at_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    code = f"import os; open({str(seen)!r}, 'a').write(os.environ['MOLDAU_TIER'] + ' '); raise SystemExit(%s)"
    fails_third = code % f"len(open({str(seen)!r}).read().split()) == 3"
    monkeypatch.setattr(stages, "STAGES", (stages.Stage("once", 1), stages.Stage("again", 1, long=True)))
    monkeypatch.setattr(stages, "commands_of", lambda stage: [list(python(fails_third))])
    outcomes = stages.run_long(1)
    assert [outcome.name for outcome in outcomes] == ["again"] * 3
    assert [bool(outcome.failures) for outcome in outcomes] == [False, False, True]
    assert seen.read_text().split() == ["long"] * 3
