"""Runs the console blocks of a page as a reader would: in a folder of its own, one command after the other.

Commands that serve (`moldau server start`, ...) run in processes of their own until the next one that needs their port,
as if each had a terminal; others run in this process, which takes a fraction of the time. What the page prints below a
command must be printed, by any numbers: a figure, a date or a port may be another one. `printf ... | moldau produce`
and `echo` are given to the command as its input.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Self

from harness.brokers import SOURCE, first_line
from harness.patience import stretched
from tests.cli.conftest import Moldau, Outcome
from tests.pages.blocks import PROMPT, commands_in, words_of

SERVES = (
    "server start", "cluster start", "zookeeper start", "registry start", "console", "mirror start",
)  # fmt: skip
LOOKS = (["doctor"], ["schemas", "diff"])
"""Their exit code is 1 if they find something, or a difference."""
PORTS = {
    "server start": "9092",
    "cluster start": "9092",
    "registry start": "8081",
    "console": "8090",
    "zookeeper start": "2181",
}
"""Where each listens if the command does not say."""
ELSEWHERE = ("python3 -m venv ", "pip install ", "make ")
"""What the tests of packages and the stages of CI do."""
FEED = re.compile(r"(?:printf|echo) (.*?) \| (moldau .*)")


class Step(NamedTuple):
    """A command line and what the page prints below it."""

    command: str
    printed: list[str]


def steps_of(code: str) -> list[Step]:
    """The commands of a console block."""
    steps: list[Step] = []
    for line in code.replace("\\\n", " ").splitlines():
        if line.startswith(PROMPT):
            steps.append(Step(line.removeprefix(PROMPT).strip(), []))
        else:
            steps[-1].printed.append(line)
    return steps


def shape(line: str) -> str:
    """A line without its numbers and its amounts of space."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.,:TZ-]*", "N", line)).strip()


class Terminal:
    """Use it in `with`. `ports` are the page's ports and those to take instead."""

    def __init__(self, folder: Path, moldau: Moldau, ports: Mapping[str, str]):
        self._folder, self._moldau, self._ports = folder, moldau, dict(ports)
        self._serving: dict[str, subprocess.Popen[str]] = {}
        self._stack = ExitStack()
        self.skipped: list[str] = []

    def __enter__(self) -> Self:
        self._stack.callback(self.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def here(self, text: str) -> str:
        """With the ports of this test."""
        text = text.replace("/var/lib/", f"{self._folder}/")
        return re.sub(r"\b\d{4,5}\b", lambda found: self._ports.get(found[0], found[0]), text)

    def play(self, code: str) -> None:
        """Run a block. Raises `AssertionError` for what is not as the page says."""
        for step in steps_of(code):
            if step.command.startswith(ELSEWHERE):
                self.skipped.append(step.command)
                continue
            printed = self._run(self.here(step.command))
            shown = [shape(line) for line in printed.splitlines()]
            missing = [line for line in step.printed if shape(self.here(line)) not in shown]
            assert not missing, f"{step.command} prints {printed!r}, not {missing}"

    def _run(self, command: str) -> str:
        feed = FEED.fullmatch(command)
        if feed is not None:
            [text] = shlex.split(feed[1])
            fed = ast.literal_eval(f'"{text}"') if command.startswith("printf") else f"{text}\n"
            return self._ended(words_of(feed[2]), fed.encode())
        words = words_of(command)
        if words[0] == "curl":
            with urllib.request.urlopen(f"http://{words[-1].removeprefix('http://')}", timeout=stretched(30)) as answer:
                return str(answer.read().decode())
        if words[0] == "cat":
            return Path(words[1]).read_text()
        assert words[0] == "moldau", command
        name = " ".join(words[1:3])
        serves = next((one for one in SERVES if name == one or words[1] == one), "")
        return self._serve(serves, words) if serves else self._ended(words)

    def _ended(self, words: list[str], stdin: bytes = b"") -> str:
        outcome: Outcome = self._moldau(*words[1:], stdin=stdin)
        looks = any(words[1 : 1 + len(name)] == name for name in LOOKS)
        assert outcome.code in ((0, 1) if looks else (0,)), (words, outcome)
        return outcome.out

    def _serve(self, name: str, words: list[str]) -> str:
        """Start it in the place of what has its port; returns the line that says that it listens."""
        port = PORTS.get(name)
        if port is not None and "--port" not in words:
            words = [*words, "--port", self._ports.get(port, port)]
        if name == "cluster start":
            self.stop()
        place = words[words.index("--port") + 1] if "--port" in words else name
        self._end(self._serving.pop(place, None))
        process = self._serving[place] = self._started(words)
        said = first_line(process, stretched(60))
        assert said.startswith("listening on "), (words, self.log())
        return said

    def _started(self, words: list[str]) -> "subprocess.Popen[str]":
        with open(self._folder / "log", "a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def play_sh(self, code: str) -> None:
        """Run a block without prompts."""
        for command in commands_in(self.here(code)):
            self._run(command)

    def refused(self, command: str) -> str:
        """What a server says that does not start, in one line."""
        process = self._started([*words_of(self.here(command)), "--port", self._ports["9092"]])
        assert process.communicate(timeout=stretched(60))[0] == "" and process.returncode == 1
        return " ".join(self.log().split()).replace(f"{self._folder}/", "")

    def log(self) -> str:
        return (self._folder / "log").read_text()[-3000:]

    def stop(self) -> None:
        """End all that serves, the latest first."""
        for process in reversed([*self._serving.values()]):
            self._end(process)
        self._serving.clear()

    def _end(self, process: "subprocess.Popen[str] | None") -> None:
        if process is not None:
            process.terminate()
            process.communicate(timeout=stretched(60))


def consecutive_ports(count: int, free_port: Callable[[], int], is_free: Callable[[int], bool]) -> list[str]:
    """Free ports with consecutive numbers, as text."""
    while True:
        first = free_port()
        if all(is_free(first + number) for number in range(count)):
            return [str(first + number) for number in range(count)]
