"""`moldau pipeline load --every` as a process of a test, and the processes below it."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from harness.patience import stretched
from harness.spark_processes import is_of_daemon
from moldau.pipeline.session import python_path

DRIVER, JVM, WORKER = "driver", "jvm", "worker"


class ContinuousLoad:
    """A command that runs in a process group of its own. `said` are the lines of its standard output so far."""

    def __init__(self, command: list[str], bootstrap: str, folder: Path, *options: str):
        self._command = [
            *command,
            "pipeline",
            "load",
            "-b",
            bootstrap,
            "--master",
            "local[2]",
            "--json",
        ]
        self._command += ["--warehouse", str(folder / "warehouse"), *options]
        self._out, self._err = folder / "load.out", folder / "load.err"
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        self.starts = 0
        self.process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        """Start it, or start it once more after it ended."""
        if self.starts:
            self.close()
        self.starts += 1
        with self._out.open("ab") as out, self._err.open("ab") as err:
            self.process = subprocess.Popen(
                self._command, stdout=out, stderr=err, start_new_session=True,
                env={**os.environ, "PYTHONPATH": python_path(), "TMPDIR": str(self._temporary)},
            )  # fmt: skip
        return self.process

    def left_behind(self) -> list[str]:
        """The folders for temporary files that its starts have left so far."""
        return os.listdir(self._temporary)

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def said(self, event: str) -> list[dict[str, Any]]:
        """Its lines about an event; the last one may have been cut off by a kill."""
        found = []
        for line in self._out.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return [one for one in found if one["event"] == event]

    def complained(self) -> str:
        return self._err.read_text()

    def stop(self) -> int:
        """Send SIGTERM to it and to every process below it, as a supervisor may, twice; returns the exit code."""
        for _ in range(2):
            for number, _line in [(self.process.pid, b""), *self._below()]:
                _kill(number, signal.SIGTERM)
        return self.process.wait(stretched(60))

    def close(self) -> None:
        """Kill what is left of it."""
        _kill_group(self.process.pid)
        for number, _ in self._below():
            _kill(number)
        self.process.wait()

    def kill(self, what: str) -> bool:
        """Send SIGKILL to the driver, its JVM, or a Python worker; returns whether there was one."""
        if what == DRIVER:
            victims = [self.process.pid]
        elif what == JVM:
            victims = [pid for pid, line in self._below() if b"org.apache.spark.deploy.SparkSubmit" in line]
        else:  # the workers come after the daemon that forks them
            victims = [pid for pid, line in self._below() if is_of_daemon(line)][::-1]
        return bool(victims) and _kill(victims[0])

    def _below(self) -> list[tuple[int, bytes]]:
        """The processes that this one, or a process below it, has started: parents first, with their command lines."""
        children: dict[int, list[int]] = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(status.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(status.parent.name))
        found, waiting = [], [self.process.pid]
        while waiting:
            below = children.get(waiting.pop(0), [])
            waiting += below
            for pid in below:
                try:
                    found.append((pid, Path(f"/proc/{pid}/cmdline").read_bytes()))
                except OSError:
                    continue
        return found


def _kill_group(leader: int) -> None:
    """Kill a driver and what it left behind: the JVM of a killed driver ends by itself, but later."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _kill(pid: int, sign: signal.Signals = signal.SIGKILL) -> bool:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return False
    return True
