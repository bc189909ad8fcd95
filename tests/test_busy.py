"""The tool that keeps the machine busy beside the tests: its loops end with it, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.patience import wait_until
from tools.busy import busy, main

ROOT = Path(__file__).parents[1]
SAYS_ITS_LOOPS = """
import time
from tools.busy import busy
with busy(2) as loops:
    print(*(loop.pid for loop in loops), flush=True)
    time.sleep(600)
"""


def runs(pid: int) -> bool:
    """Whether the process is there and has not ended; one that nobody has waited for is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_loops_end_with_the_block_even_if_it_fails() -> None:
    there: list[int] = []

    def fail() -> None:
        with busy(2) as loops:
            there.extend(loop.pid for loop in loops)
            assert all(map(runs, there))
            raise KeyError("this")

    with pytest.raises(KeyError):
        fail()
    assert len(there) == 2 and not any(map(runs, there))


def test_loops_end_when_the_process_that_started_them_is_killed() -> None:
    process = subprocess.Popen([sys.executable, "-c", SAYS_ITS_LOOPS], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        loops = [int(pid) for pid in process.stdout.readline().split()]
        assert len(loops) == 2 and all(map(runs, loops))
        os.kill(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not any(map(runs, loops)))


@pytest.mark.parametrize(("code", "times"), [(0, 2), (3, 1)])
def test_the_command_runs_as_often_as_asked_until_it_fails(
    capfd: pytest.CaptureFixture[str], code: int, times: int
) -> None:
    command = [sys.executable, "-c", f"print('here'); raise SystemExit({code})"]
    assert main(["--loops", "1", "--times", "2", "--", *command]) == code
    said = capfd.readouterr().out
    assert said.count("here") == times and said.count(" before and ") == times
