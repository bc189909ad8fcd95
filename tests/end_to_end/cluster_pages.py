"""Plays the recipes of docs/cluster-operations.md: its blocks are given to a shell, in a folder of their own.

The page's ports become free ones. After each block, servers that it has started are waited for, and those that it has
killed. A line `# error: TEXT` behind a command says that it fails, and how.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.brokers import SOURCE
from harness.listening import free_port
from harness.patience import stretched, wait_until
from tests.end_to_end.pages import DOCS

BASE, ZOOKEEPER = 9091, 2181
BROKERS = range(1, 7)
SERVES = "listening on "
PID_FILE = re.compile(r"(\S+)\.pid")


class ClusterPage:
    """Use it with `with`: servers that are left are killed at the end. `connect` is a ZooKeeper that runs already."""

    def __init__(self, page: str, folder: Path, connect: str | None = None):
        self.sections = _sections((DOCS / page).read_text())
        self._folder = folder
        self._ports = {BASE: _free_ports(), ZOOKEEPER: free_port()}
        self._connect = connect
        commands = folder / "bin"
        commands.mkdir()
        moldau = commands / "moldau"
        moldau.write_text(f'#!/bin/sh\nexec {sys.executable} -m moldau "$@"\n')
        moldau.chmod(0o755)
        self._environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PATH": f"{commands}:{os.environ['PATH']}"}

    def __enter__(self) -> "ClusterPage":
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self._pids().values():
            if _runs(pid):
                os.kill(pid, signal.SIGKILL)

    @property
    def addresses(self) -> str:
        """Those of all brokers that the page starts, whether they run or not."""
        return ",".join(f"localhost:{self._ports[BASE] + number}" for number in BROKERS)

    def play(self, section: str) -> None:
        """Everything in the section of that name. Raises `AssertionError` for what does not work."""
        for kind, text in self.sections[section]:
            if kind == "properties":
                self._write(text)
            else:
                self._run(text)

    def _write(self, text: str) -> None:
        name = re.match(r"# (\S+)\n", text)
        assert name is not None
        (self._folder / name[1]).write_text(self._placed(text))

    def _run(self, block: str) -> None:
        text = self._placed(block)
        for name, value in re.findall(r"^export (\w+)=(.*)\n", text, re.MULTILINE):
            self._environment[name] = value
        before, said = self._pids(), self._said()
        failure = re.search(r"^# error: (.*)$", text, re.MULTILINE)
        done = subprocess.run(
            ["bash", "-ec", text],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=stretched(300),
        )
        assert (done.returncode != 0) == (failure is not None), f"{block}\n{done.stdout}{done.stderr}{self._logs()}"
        assert failure is None or failure[1] in done.stderr, f"{block}\n{done.stderr}"
        for name, pid in before.items():
            if re.search(rf"^kill .*\b{name}\.pid", block, re.MULTILINE):
                assert wait_until(lambda pid=pid: not _runs(pid), 60), f"{name} is not stopped by {block}"  # type: ignore[misc]
        for name, pid in self._pids().items():
            if before.get(name) != pid:
                counts = said.get(name, 0)
                assert wait_until(
                    lambda name=name, counts=counts, pid=pid: self._said()[name] > counts or not _runs(pid),  # type: ignore[misc]
                    60,
                ), name
                assert _runs(pid), f"{name} has ended: {self._logs()}"

    def _placed(self, text: str) -> str:
        """With the ports of this test."""
        for number in BROKERS:
            text = text.replace(str(BASE + number), str(self._ports[BASE] + number))
        if self._connect is not None:
            text = text.replace(f"localhost:{ZOOKEEPER}", self._connect)
        return text.replace(str(BASE), str(self._ports[BASE])).replace(str(ZOOKEEPER), str(self._ports[ZOOKEEPER]))

    def _pids(self) -> Mapping[str, int]:
        return {one.stem: int(one.read_text()) for one in self._folder.glob("*.pid")}

    def _said(self) -> dict[str, int]:
        """How often each server has said that it listens."""
        return {one.stem: one.read_text().count(SERVES) for one in self._folder.glob("*.log")}

    def _logs(self) -> str:
        return "".join(f"\n{one.name}: {one.read_text()[-1500:]}" for one in self._folder.glob("*.log"))


def _sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """The blocks below each heading of the second level."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    block = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return {name: block.findall(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _free_ports() -> int:
    """A number after which the ports of all brokers are free."""
    while True:
        first = free_port()
        if all(_is_free(first + number) for number in BROKERS):
            return first


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _runs(pid: int) -> bool:
    """A process whose parent has gone may stay as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
