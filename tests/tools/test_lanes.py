"""Stages side by side: what is shown, what comes of them, and that an interrupt ends them all."""

import os
import signal
import subprocess
from pathlib import Path

from harness.patience import wait_until
from tests.tools.running import python

ROOT = Path(__file__).parents[2]
STAGES = """
import os, sys
from pathlib import Path
from harness.patience import Deadline
from tools.lanes import side_by_side
from tools.running import Outcome, run_command

def run(name):
    outcome = Outcome(name)
    if name == "dies":
        os._exit(3)
    code = f"from tests.tools.test_lanes import work; work({folder!r}, {name!r})"
    run_command([sys.executable, "-c", code], {}, Deadline(600), outcome)
    return outcome

folder, *lanes = sys.argv[1:]
for outcome in side_by_side([lane.split(",") for lane in lanes], run):
    print(outcome.name, outcome.failures, outcome.processor_s > 0)
"""
AFTER = {"a": "", "b": "d", "c": "b", "d": "a"}
"""The stage that has to be done before this one ends."""


def work(folder: str, name: str) -> None:
    """A stage that says when it begins and, once the one that it waits for is done, when it ends."""
    print(f"{name} begins", flush=True)
    Path(folder, f"process-{os.getpid()}").touch()
    assert wait_until(lambda: name != "hangs" and Path(folder, AFTER[name]).exists(), 600)
    Path(folder, name).touch()
    print(f"{name} ends", flush=True)


def runs(process: str) -> bool:
    try:
        os.kill(int(process.removeprefix("process-")), 0)
    except ProcessLookupError:
        return False
    return True


def test_lanes_run_side_by_side_and_each_stage_is_shown_in_one_piece(tmp_path: Path) -> None:
    """a and b in one lane, d and c in the other: b ends only if d has run beside it, and d only after a."""
    done = subprocess.run(
        [*python(STAGES), str(tmp_path), "a,b", "d,c"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    said = [line for line in done.stdout.splitlines() if line]
    assert said[-4:] == [f"{name} [] True" for name in "abdc"]
    assert "d begins\nd ends\n" in done.stdout and "c begins\nc ends\n" in done.stdout
    assert [line for line in said if line.endswith(("begins", "ends")) and line[0] in "ab"] == [
        f"{name} {what}" for name in "ab" for what in ("begins", "ends")
    ]


def test_a_lane_that_dies_is_a_failure(tmp_path: Path) -> None:
    done = subprocess.run([*python(STAGES), str(tmp_path), "a", "dies"], cwd=ROOT, capture_output=True, text=True)
    assert "lane ['its process ended with 3: dies'] False" in done.stdout.splitlines()


def test_an_interrupt_ends_every_lane(tmp_path: Path) -> None:
    runner = subprocess.Popen(
        [*python(STAGES), str(tmp_path), "hangs", "hangs"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with runner:
        assert wait_until(lambda: len([*tmp_path.glob("process-*")]) == 2)
        runner.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in runner.communicate()[1]
    assert not any(runs(one.name) for one in tmp_path.iterdir())
