"""The examples of docs/tls.md, one after the other, in a folder of their own."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from harness.brokers import SOURCE, first_line
from harness.listening import free_port
from harness.patience import stretched

PAGE = Path(__file__).parents[2] / "docs" / "tls.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
RUNS_ON = ("server start", "cluster start")


class Shell:
    """Runs the commands of the page; one that serves runs until the next of its kind."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._port = str(free_port())
        self._serving: subprocess.Popen[str] | None = None

    def write(self, text: str) -> None:
        name = re.match(r"# (\S+)\n", text)
        assert name is not None
        (self._folder / name[1]).write_text(text.replace("9093", self._port))

    def run(self, line: str) -> None:
        assert line.startswith("moldau ")
        words = [sys.executable, "-m", "moldau", *shlex.split(line.replace("9093", self._port))[1:]]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        if line.removeprefix("moldau ").startswith(RUNS_ON):
            self.stop()
            with open(self._folder / "log", "a") as log:
                self._serving = subprocess.Popen(
                    words, cwd=self._folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
                )
            said = first_line(self._serving, stretched(60))
            assert said.startswith("listening on "), (self._folder / "log").read_text()
            self._port = re.match(r"listening on \S+?:(\d+)", said)[1]  # type: ignore[index]
            return
        done = subprocess.run(
            words, cwd=self._folder, env=environment, capture_output=True, text=True, timeout=stretched(60)
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"

    def stop(self) -> None:
        if self._serving is not None:
            self._serving.terminate()
            self._serving.communicate(timeout=stretched(60))
            self._serving = None


def test_every_example_of_the_page_works(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with ExitStack() as stack:
        stack.callback(shell.stop)
        for kind, text in BLOCKS:
            if kind == "properties":
                shell.write(text)
            else:
                for line in text.splitlines():
                    shell.run(line)
    assert "Traceback" not in (tmp_path / "log").read_text()
