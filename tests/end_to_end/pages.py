"""Plays a page of the documents as a reader would: its files are written, its commands and programs run, one after the
other, in a folder of its own.

A block of properties or Python begins with `# NAME` if it is a file. Commands that serve run until the next one does.
The port 9093 of a page becomes a free one.
"""

import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from harness.brokers import SOURCE, Process, first_line, started
from harness.commands import moldau
from harness.listening import free_port
from harness.patience import stretched

DOCS = Path(__file__).parents[2] / "docs"
RUNS_ON = ("server start", "cluster start")


class Shell:
    """Runs the commands of the page; one that serves runs until the next of its kind."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._port = str(free_port())
        self._serving: Process | None = None

    def write(self, text: str) -> None:
        name = re.match(r"# (\S+)\n", text)
        assert name is not None
        (self._folder / name[1]).write_text(text.replace("9093", self._port))

    def run(self, line: str) -> None:
        if line.startswith("echo "):
            self._ended(["sh", "-c", line])
            return
        assert line.startswith("moldau "), line
        words = shlex.split(line.replace("9093", self._port))[1:]
        if line.removeprefix("moldau ").startswith(RUNS_ON):
            self.stop()
            with open(self._folder / "log", "a") as log:
                command, environment = (
                    [sys.executable, "-m", "moldau", *words],
                    {**os.environ, "PYTHONPATH": str(SOURCE)},
                )
                self._serving = started(command, environment, log, self._folder)
            said = first_line(self._serving, stretched(60))
            assert said.startswith("listening on "), (self._folder / "log").read_text()
            self._port = re.match(r"listening on \S+?:(\d+)", said)[1]  # type: ignore[index]
            return
        done = moldau(*words, folder=self._folder)
        assert done.returncode == 0, f"{line}: {done.stderr}"

    def program(self, text: str) -> None:
        self._ended([sys.executable, "-c", text.replace("9093", self._port)])

    def _ended(self, words: list[str]) -> None:
        done = subprocess.run(
            words,
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            timeout=stretched(60),
        )
        assert done.returncode == 0, f"{' '.join(words[1:])}: {done.stderr}"

    def stop(self) -> None:
        if self._serving is not None:
            self._serving.terminate()
            self._serving.wait(stretched(60))
            assert self._serving.stdout is not None
            self._serving.stdout.close()
            self._serving = None


def play(page: str, folder: Path) -> None:
    """Play that page of the documents. Raises `AssertionError` if something of it does not work."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    shell = Shell(folder)
    with ExitStack() as stack:
        stack.callback(shell.stop)
        for kind, text in blocks:
            if kind == "properties":
                shell.write(text)
            elif kind == "python":
                shell.program(text)
            else:
                for line in text.splitlines():
                    shell.run(line)
    assert "Traceback" not in (folder / "log").read_text()
