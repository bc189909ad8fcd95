"""A standalone Spark cluster of the installed PySpark, on this machine: a master and two workers of one core each, as
processes. `running_cluster` leaves none behind, whatever was killed meanwhile."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyspark

from harness.patience import wait_until
from harness.quick_jvm import QUICK_JVM
from harness.spark_processes import is_of_daemon

EXECUTOR = b"CoarseGrainedExecutorBackend"
AT_FREE_PORTS = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
HERE = {"SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": " ".join(QUICK_JVM)}
"""The environment of all parts and of drivers: one address, and a JVM that is cheap to start."""


class Process(NamedTuple):
    """A running process."""

    pid: int
    parent: int
    session: int
    command: bytes


def processes() -> list[Process]:
    """All that run, except zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if state != "Z":
                command = (entry / "cmdline").read_bytes()
                found.append(Process(int(entry.name), int(parent), int(session), command))
    return found


class Cluster:
    """A master and its workers. Processes that they start are in their sessions."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self.log = folder / "master.log"
        self.master = ""

    def start(self) -> None:
        """Start all, and wait until the workers have registered."""
        self._run("master", "master.Master")
        (self.master,) = self._wait_for(1, r"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            self._run(
                f"worker-{number}", "worker.Worker", "--cores", "1", "--memory", "1g",
                "--work-dir", str(self._folder / f"work-{number}"), self.master,
            )  # fmt: skip
        self._wait_for(2, r"Registering worker (\S+)")

    def launched(self) -> int:
        """How many executors the master has had launched."""
        return len(self._said(r"Launching executor (\S+)"))

    def busy_executors(self) -> list[int]:
        """The executors that run a Python task at this moment."""
        sessions = {one.pid for one in self._started}
        ours = {one.pid: one for one in processes() if one.session in sessions}
        daemons = {pid: one.parent for pid, one in ours.items() if is_of_daemon(one.command)}
        executors = [
            daemons[one.parent] for one in ours.values() if one.parent in daemons and is_of_daemon(one.command)
        ]
        return [pid for pid in executors if pid in ours and EXECUTOR in ours[pid].command]

    def kill_busy_executor(self) -> None:
        """Kill an executor while it runs a Python task."""
        busy: list[int] = []
        assert wait_until(lambda: busy.extend(self.busy_executors()) or busy, 200, 0.01), self.log.read_text()
        os.kill(busy[0], signal.SIGKILL)

    def stop(self) -> None:
        """Stop workers, then the master, and what they have started."""
        sessions = {one.pid for one in self._started}
        for one in reversed(self._started):
            one.terminate()
        try:
            for one in self._started:
                one.wait(100)
            assert wait_until(lambda: not [one for one in processes() if one.session in sessions], 60)
        finally:
            for left in processes():
                if left.session in sessions:
                    with contextlib.suppress(OSError):
                        os.kill(left.pid, signal.SIGKILL)

    def _run(self, name: str, part: str, *arguments: str) -> None:
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(program), f"org.apache.spark.deploy.{part}", *AT_FREE_PORTS, *arguments],
                stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "SPARK_DAEMON_MEMORY": "128m", **HERE},
            )  # fmt: skip
        self._started.append(process)

    def _wait_for(self, count: int, pattern: str) -> list[str]:
        """Wait until the master has logged this as often."""
        logged = wait_until(lambda: len(self._said(pattern)) >= count or any(one.poll() for one in self._started), 100)
        assert logged and len(self._said(pattern)) == count, self.log.read_text()
        return self._said(pattern)

    def _said(self, pattern: str) -> list[str]:
        return re.findall(pattern, self.log.read_text()) if self.log.exists() else []


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
