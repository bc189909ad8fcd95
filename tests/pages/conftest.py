"""Marks the tests that use Spark, and gives terminals for pages."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.listening import free_port
from tests.cli.conftest import Moldau, offline
from tests.pages.terminal import Terminal, consecutive_ports
from tests.spark import pytest_itemcollected, quick_jvms

__all__ = ["offline", "pytest_itemcollected", "quick_jvms"]
BROKERS = ("9092", "9093", "9094")
OTHERS = ("2181", "8081", "8090", "9404")


def is_free(port: int) -> bool:
    with socket.socket() as taken:
        return taken.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def terminal(offline: Moldau, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """In the folder of the test, with the ports of the pages replaced by free ones."""
    monkeypatch.chdir(tmp_path)
    ports = dict(zip(BROKERS, consecutive_ports(len(BROKERS), free_port, is_free), strict=True))
    ports |= {name: str(free_port()) for name in OTHERS}
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", f"localhost:{ports['9092']}")
    with Terminal(tmp_path, offline, ports) as made:
        yield made
