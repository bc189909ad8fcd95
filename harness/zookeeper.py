"""`moldau zookeeper start` as a process of its own, and what its servers say of themselves."""

import os
import signal
import socket
import sys
from pathlib import Path

from harness.brokers import SOURCE, first_line, started
from harness.patience import stretched, wait_until


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "moldau", "zookeeper", "start", *arguments]


class ZooKeeper:
    """Use it with `with`: it is stopped at the end. `addresses` are those that it listens on."""

    def __init__(self, folder: Path, size: int = 1, port: int = 0):
        self.folder = folder
        self.log = folder.parent / f"{folder.name}.log"
        given = ("--port", str(port), "--data-dir", str(folder), "--ensemble", str(size))
        with self.log.open("a") as stderr:
            self.process = started(command(*given), {**os.environ, "PYTHONPATH": str(SOURCE)}, stderr)
        line = first_line(self.process)
        if not line.startswith("listening on "):
            self.stop()
            raise RuntimeError(f"ZooKeeper did not start: {self.log.read_text()[-4000:]}")
        self.addresses = line.split()[-1].split(",")

    def __enter__(self) -> "ZooKeeper":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(stretched(60))
        finally:
            self.process.kill()
            if self.process.stdout is not None:
                self.process.stdout.close()

    @property
    def connect(self) -> str:
        """As `zookeeper.connect` wants it."""
        return ",".join(self.addresses)

    def servers(self) -> dict[str, int]:
        """The process of each server, by address."""
        return {address: _process_of(self.folder / f"server-{n + 1}") for n, address in enumerate(self.addresses)}

    def leader(self) -> str:
        """The address of the leader; there is one before long."""
        found: list[str] = []

        def look() -> bool:
            found[:] = [address for address in self.addresses if mode(address) == "leader"]
            return bool(found)

        assert wait_until(look), "no leader"
        return found[0]


def mode(address: str) -> str:
    """`standalone`, `leader`, `follower`; empty if it does not serve."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 5) as connection:
            connection.sendall(b"srvr")
            said = connection.makefile("rb").read().decode()
    except OSError:
        return ""
    return said.partition("Mode: ")[2].partition("\n")[0]


def _process_of(folder: Path) -> int:
    """The Java process of a server, by its command line; 0 if there is none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(folder / "zoo.cfg").encode() in words:
                return int(entry.name)
    return 0
