"""Programs forked from a process that has imported them: arguments, environment, folder, output, log and exit code."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.forking import ForkedProcess, Forking
from harness.patience import wait_until

PROGRAM = "tests.tools.forked_program"


@pytest.fixture(scope="module")
def forking() -> Iterator[Forking]:
    made = Forking()
    yield made
    made.end()


def start(forking: Forking, folder: Path, *arguments: str) -> ForkedProcess:
    with (folder / "log").open("a") as log:
        return forking.start(PROGRAM, arguments, {**os.environ, "SAID": "this"}, log.fileno())


def test_a_program_has_what_it_was_given_and_nothing_of_others(
    forking: Forking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = start(forking, tmp_path, "hang")
    one = start(forking, tmp_path, "3", "a")
    arguments, said, folder, descriptors = json.loads(one.stdout.readline())
    assert (arguments, said, folder) == (["3", "a"], "this", str(tmp_path))
    assert len(descriptors) == 4, "the three of every process, and the folder that was listed"
    assert one.wait(60) == 3 == one.poll()
    assert one.stdout.read() == ""
    assert wait_until(lambda: (tmp_path / "log").read_text() == "to the log\n" * 2), "the other writes when it may"
    assert other.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.01)
    other.kill()
    assert other.wait(60) == -signal.SIGKILL
    other.kill()  # nothing happens to whoever has its number now
    for process in (one, other):
        process.stdout.close()


def test_a_program_is_not_forked_if_its_interpreter_must_start_otherwise(forking: Forking) -> None:
    here = dict(os.environ)
    assert forking.can(here) and forking.can({**here, "PYTHONPATH": "elsewhere", "ANY": "1"})
    for name in ("LD_PRELOAD", "PYTHONDEVMODE", "MOLDAU_INTERPRETED"):
        assert not forking.can({**here, name: "other"})


def test_the_death_of_the_process_that_forks_is_noticed(tmp_path: Path) -> None:
    forking = Forking()
    one = start(forking, tmp_path, "hang")
    os.kill(forking.pid, signal.SIGKILL)
    one.stdout.readline()
    os.kill(one.pid, signal.SIGKILL)
    assert one.wait(60) == -signal.SIGKILL
    two = start(forking, tmp_path, "0")
    assert two.wait(60) == 0
    forking.end()
    for process in (one, two):
        process.stdout.close()


def test_a_process_that_forks_and_is_about_to_end_is_replaced(tmp_path: Path) -> None:
    forking = Forking()
    with start(forking, tmp_path, "0"):
        pass
    assert forking._control is not None
    forking._control.shutdown(socket.SHUT_RDWR)
    with start(forking, tmp_path, "0") as process:
        assert process.wait(60) == 0
    forking.end()
