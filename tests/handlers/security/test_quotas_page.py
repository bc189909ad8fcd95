"""docs/quotas.md: its examples run in their order, and its settings exist."""

import re
from pathlib import Path

import pytest

from harness.pages import DOCS
from moldau.cli import main
from moldau.cluster.state.quotas import OF_ADDRESSES, OF_CLIENTS
from moldau.config.broker import SETTINGS
from moldau.testing import Broker

PAGE: Path = DOCS / "quotas.md"


def test_every_example_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^moldau (quotas .*)$", PAGE.read_text(), re.MULTILINE)
    assert examples and len(commands) >= 6
    with Broker() as broker:
        monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", broker.bootstrap_servers)
        for command in commands:
            assert main.run(command.split()) == 0, command
        assert "connection_creation_rate" in capsys.readouterr().out
        names: dict[str, object] = {"__name__": "example"}
        for example in examples:
            exec(compile(example.replace("localhost:9092", broker.bootstrap_servers), str(PAGE), "exec"), names)


def test_the_tables_name_every_quota_and_settings_that_exist() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert named - SETTINGS.keys() == OF_CLIENTS.keys() | OF_ADDRESSES.keys()
