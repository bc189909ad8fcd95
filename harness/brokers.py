"""A broker process that tests start, stop, kill and start again on the same port and data."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from harness.forking import ForkedProcess, Forking
from harness.patience import stretched
from harness.tiers import LONG

SOURCE = Path(__file__).parents[1] / "src"
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
HELD = "the event loop was held"
Process = subprocess.Popen[str] | ForkedProcess
forking: Forking | None = None
"""Forks the brokers, where tests have set it (tests/conftest.py)."""
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "num.partitions": "3"}


class NotReady(AssertionError):
    """The broker did not start; `code` is its exit code, None if it had to be killed."""

    def __init__(self, code: int | None, sentence: str):
        super().__init__(sentence)
        self.code = code


class LoopHeld(AssertionError):
    """The watchdog of the broker logged turns of the loop that took too long: those lines."""


class Broker:
    """`moldau server start` as a process of its own; `addresses` are those it printed, `address` is the first.

    `program` replaces `moldau` and gets the same arguments behind its own; `environment` is added to the process's.
    When the broker has been stopped or killed, the lines that its watchdog logged are printed; `LoopHeld` is raised
    for them unless its loop `may_be_held`. By default it may, except in the long tier: the watchdog measures time.
    `descriptors` is its `ulimit -n`.
    """

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str] | None = None,
        program: Sequence[str] = ("moldau",),
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        may_be_held: bool = not LONG,
        descriptors: int | None = None,
    ):
        self.folder = folder
        self.data = folder / "data"
        self.address = ""
        self.addresses: list[str] = []
        self.settings = {**SETTINGS, **(settings or {})}
        self._program = program
        self._environment = {"PYTHONPATH": str(SOURCE), **(environment or {})}
        self._options = options
        self._shell = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"] if descriptors else []
        self._process: Process | None = None
        self._may_be_held = may_be_held
        self._log_checked = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, seconds: float = START_SECONDS_MAX) -> None:
        """Start and wait for the line `listening on`. A second start takes the port of the first."""
        self._take()  # one that has ended by itself
        port = self.address.rpartition(":")[2] or "0"
        command = [*self._shell, sys.executable, "-m", *self._program, "server", "start"]
        command += ["--host", "127.0.0.1", "--port", port, "--data-dir", str(self.data), *self._options]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        with open(self.folder / "broker.log", "a") as log:
            self._process = started(command, {**os.environ, **self._environment}, log)
        line = first_line(self._process, seconds)
        if not line.startswith("listening on "):
            code = self._process.returncode if self.wait(stretched(5)) else None
            self.kill()
            raise NotReady(code, f"the broker said {line!r}, and in its log:\n{self.log()}")
        self.addresses = [text.split()[0] for text in line.removeprefix("listening on ").split(",")]
        self.address = self.addresses[0]

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self, seconds: float) -> bool:
        """Wait until the process ends by itself; returns whether it did."""
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self, seconds: float = STOP_SECONDS_MAX) -> None:
        """Send SIGTERM; the process must end by itself, with exit code 0."""
        process = self._take()
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(stretched(seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the broker did not stop on SIGTERM; its log:\n{self.log()}") from None
        assert code == 0, f"the broker left with {code}; its log:\n{self.log()}"
        self._check_turns()

    def kill(self) -> None:
        """Send SIGKILL."""
        if process := self._take():
            process.kill()
            process.wait()
        self._check_turns()

    def _check_turns(self) -> None:
        """Each line is reported once, so that a test that goes on with this broker does not fail again."""
        with open(self.folder / "broker.log", "rb") as log:
            log.seek(self._log_checked)
            said = log.read()
        self._log_checked += len(said)
        if held := [line for line in said.decode(errors="replace").splitlines() if HELD in line]:
            print(*held, sep="\n", file=sys.stderr)
            if not self._may_be_held:
                raise LoopHeld("\n".join(held))

    def log(self) -> str:
        return (self.folder / "broker.log").read_text()[-4000:]

    def traceback(self) -> str:
        """The first one in its whole log, with the lines around it; "" if there is none."""
        said = (self.folder / "broker.log").read_text()
        at = said.find("Traceback")
        return said[max(0, at - 500) : at + 4000] if at >= 0 else ""

    def log_bytes(self, topic: str, partition: int = 0) -> int:
        """The size of a partition's segments on the disk. Listed again if a segment was compacted or deleted
        meanwhile."""
        while True:
            with contextlib.suppress(FileNotFoundError):
                return sum(path.stat().st_size for path in (self.data / f"{topic}-{partition}").glob("*.log"))

    def _take(self) -> Process | None:
        process, self._process = self._process, None
        if process and process.stdout:
            process.stdout.close()
        return process


def started(
    command: Sequence[str], environment: Mapping[str, str], log: IO[str], folder: Path | None = None
) -> Process:
    """The process of this command in this folder, else the present one; it is forked if it may be."""
    if forking is not None and command[:2] == [sys.executable, "-m"] and forking.can(environment):
        return forking.start(command[2], command[3:], environment, log.fileno(), folder)
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=folder
    )


class ForeignBroker:
    """A running broker that `MOLDAU_TEST_BROKER` names, to run the tests against it."""

    def __init__(self, address: str):
        self.address = address


def first_line(process: Process, seconds: float = START_SECONDS_MAX) -> str:
    """The first line of the process's output; what there is of it if the process ends or takes too long."""
    lines: queue.Queue[str] = queue.Queue()
    output: IO[str] | None = process.stdout
    assert output is not None
    threading.Thread(target=lambda: lines.put(output.readline()), daemon=True).start()
    try:
        return lines.get(timeout=stretched(seconds))
    except queue.Empty:
        return ""
