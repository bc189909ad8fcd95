"""A command line in this process, and one broker for the tests of a module."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from harness.brokers import Broker
from moldau.cli import main
from tests.client.conftest import fresh, group, topic

__all__ = ["fresh", "group", "topic"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    ours = Broker(tmp_path_factory.mktemp("broker"), {"num.partitions": "1"})
    ours.start()
    yield ours
    ours.stop()


@dataclass
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one sentence of a command that failed and printed nothing else."""
        assert self.code not in (0, 130), self
        assert self.out == ""
        assert self.err.startswith("error: ") and self.err.count("\n") == 1 and self.err.endswith("\n"), self.err
        return self.err.removeprefix("error: ").rstrip("\n")


Moldau = Callable[..., Outcome]


@pytest.fixture
def offline(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Moldau:
    """`offline("topics", "list")` runs that command; `stdin` is what it reads."""

    def run(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = main.run(list(arguments))
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def moldau(offline: Moldau, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Moldau:
    """The same with a broker to talk to."""
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", broker.address)
    return offline
