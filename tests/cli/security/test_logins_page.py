"""docs/logins.md: its settings start a broker, and its commands do what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.config import broker_config
from moldau.config.properties import parse_properties
from tests.cli.conftest import Moldau

from .test_users import login

PAGE = (Path(__file__).parents[3] / "docs" / "logins.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SETTINGS = [parse_properties(text) for kind, text in BLOCKS if kind == "properties"]
COMMANDS = [
    shlex.split(line.replace("\\\n", " "))
    for kind, text in BLOCKS
    if not kind
    for line in re.split(r"(?<!\\)\n", text)
    if line
]
OURS = [command[1:] for command in COMMANDS if command[0] == "moldau" and command[1:3] != ["server", "start"]]


def test_the_commands_of_the_page_work_on_a_broker_with_its_settings(offline: Moldau, tmp_path: Path) -> None:
    broker = Broker(tmp_path, {**SETTINGS[0], "listeners": "CLIENTS://127.0.0.1:0"})
    server = tmp_path / "server.properties"
    server.write_text("".join(f"{name}={value}\n" for name, value in broker.settings.items()))
    (tmp_path / "alice").write_text("alice-secret")
    real = {"server.properties": str(server), "admin.properties": login(tmp_path, "admin", "admin-secret")}
    started = False
    for command in OURS:
        words = [real.get(word, word) for word in command]
        if command[:2] == ["server", "format"]:
            done = offline(*words, "--data-dir", str(broker.data))
        else:
            if not started:
                broker.start()
                started = True
            more = ["--password-file", str(tmp_path / "alice")] if command[:2] == ["users", "add"] else []
            done = offline(*words, *more, "-b", broker.address)
        assert done.code == 0, (command, done.err)
    assert started
    broker.stop()


def test_the_settings_of_the_page_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "one")
    (tmp_path / "secrets.properties").write_text("trust.password=two")
    (tmp_path / "tokens").write_text("three")
    for given in SETTINGS[1:]:
        settings = {name: re.sub("/etc/moldau|/run/secrets", str(tmp_path), text) for name, text in given.items()}
        listeners = {"listeners": "CLIENTS://:0,BROKERS://:0", **SETTINGS[0], **settings}
        listeners["listeners"] = "CLIENTS://:0,BROKERS://:0"
        listeners["listener.security.protocol.map"] = "CLIENTS:SASL_SSL,BROKERS:SASL_SSL"
        config, warnings = broker_config(listeners)
        assert warnings == []
        if "config.providers" in settings:
            assert (config.ssl_key_password, config.ssl_truststore_password) == ("one", "two")
            assert config.delegation_token_secret_key == "three"
