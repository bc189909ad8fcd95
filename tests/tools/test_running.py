"""Commands of a tier: what fails, what is stopped, what is counted, and what is told."""

import json
import signal
import subprocess
import sys

import pytest

from tests.tools import running as kit
from tests.tools.running import python, ran
from tools import running

SUMMARY = """
again: MOLDAU_TIER=test .venv/bin/pytest tests/a.py::test_one
=========================== short test summary info ============================
SKIPPED [1] tests/a.py:3: not here
FAILED tests/a.py::test_one - AssertionError: 3 differences
Kafka said 1
Moldau said 2
ERROR tests/a.py::test_two - RuntimeError: no broker
========================= 1 failed, 1 error in 0.31s ===========================
"""
ORPHAN = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {child!r}], start_new_session=True)
"""
ADOPTS = sys.platform == "linux"


def test_commands_that_succeed_fail_nothing() -> None:
    outcome, shown = ran(python("print('hello')"))
    assert outcome.failures == [] and outcome.reasons == [] and "hello" in shown


def test_a_failing_command_is_told_and_the_next_one_still_runs() -> None:
    outcome, shown = ran(python("raise SystemExit(3)"), python("print('still here')"))
    assert outcome.failures and outcome.failures[0].startswith("exit code 3")
    assert "still here" in shown


def test_a_command_that_takes_too_long_is_stopped_with_all_it_started() -> None:
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    outcome, _ = ran(python(child), seconds=0.5)
    assert outcome.failures[0].startswith("took too long, stopped after ")


def test_an_interrupt_stops_what_runs_and_waits_for_its_end() -> None:
    says = "import time; print('up', flush=True); time.sleep(602)"
    arguments = [json.dumps([python(says)]), "600"]
    runner = subprocess.Popen(
        [*python(kit.RUN), *arguments], cwd=kit.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with runner:
        assert runner.stdout and runner.stdout.readline() == b"up\n"
        runner.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in runner.communicate()[1]


def test_processor_time_is_that_of_all_descendants() -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    outcome, _ = ran(python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"))
    assert 0.4 < outcome.processor_s < 60


def test_an_orphan_that_ends_soon_is_waited_for_and_counted() -> None:
    outcome, _ = ran(python(ORPHAN.format(child="import time\nwhile time.process_time() < 0.4: pass")))
    assert outcome.failures == [] and (outcome.processor_s > 0.4 or not ADOPTS)


def test_an_orphan_that_goes_on_is_stopped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "RUN", "import tools.running; tools.running.LEFT_SECONDS_MAX = 0.5\n" + kit.RUN)
    outcome, _ = ran(python(ORPHAN.format(child="import time; time.sleep(601)")))
    assert [("time.sleep(601)" in failure) for failure in outcome.failures] == [True] * ADOPTS


def test_counts_of_pytest_are_added_up() -> None:
    closing = python("print('===== 2 failed, 40 passed, 1 error in 0.31s =====')")
    outcome, _ = ran(closing, closing)
    assert outcome.counts == {"failed": 4, "passed": 80, "error": 2}


def test_reasons_and_the_commands_that_repeat_are_kept() -> None:
    outcome, _ = ran(python(f"print({SUMMARY!r}); raise SystemExit(1)"))
    assert outcome.reasons == [
        "FAILED tests/a.py::test_one - AssertionError: 3 differences\nKafka said 1\nMoldau said 2",
        "ERROR tests/a.py::test_two - RuntimeError: no broker",
    ]
    assert outcome.again == ["MOLDAU_TIER=test .venv/bin/pytest tests/a.py::test_one"]


def test_a_reason_that_is_too_long_is_cut() -> None:
    summary = "=== short test summary info ===\\nFAILED a - b\\n" + "more\\n" * 500 + "=== 1 failed in 1s ==="
    outcome, _ = ran(python(f"print('{summary}'); raise SystemExit(1)"))
    assert [len(reason) <= running.REASON_CHARACTERS_MAX for reason in outcome.reasons] == [True]


def test_of_a_command_that_is_no_test_the_end_is_the_reason() -> None:
    outcome, _ = ran(python("print('\\n'.join(f'line {i}' for i in range(99))); raise SystemExit(1)"))
    assert "line 98" in outcome.reasons[0] and "line 80" not in outcome.reasons[0]


def test_what_is_no_news_is_left_out_where_nobody_watches() -> None:
    lines = ["..... [ 7%]", "..F.. [ 9%]", "...", "seed 5: no"]
    _, shown = ran(python(f"print({chr(10).join(lines)!r})"))
    assert [line for line in lines if line in shown.splitlines()] == ["..F.. [ 9%]", "seed 5: no"]
