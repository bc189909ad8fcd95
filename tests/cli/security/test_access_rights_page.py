"""The examples of docs/access-rights.md: its broker is started, its commands are run in their order."""

import json
import re
import shlex
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau import Admin
from moldau.config.properties import read_properties
from moldau.errors import TopicAuthorizationFailed
from tests.cli.conftest import Moldau

PAGE = (Path(__file__).parents[3] / "docs" / "access-rights.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SERVER, ADMIN = (text for kind, text in BLOCKS if kind == "properties")
COMMANDS = [line for kind, text in BLOCKS if not kind for line in text.splitlines()]
PRINTED, LINE = ([text for kind, text in BLOCKS if kind == name] for name in ("text", "json"))


def test_every_example_of_the_page_runs(offline: Moldau, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.properties").write_text(SERVER)
    Path("admin.properties").write_text(ADMIN)
    Path("ann.properties").write_text(ADMIN.replace("admin", "ann"))
    settings = {**read_properties(Path("server.properties")), "listeners": "CLIENTS://localhost:0"}
    settings["audit.log.file"] = str(tmp_path / settings["audit.log.file"])
    broker = Broker(tmp_path, settings)
    broker.start()
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", broker.address)
    try:
        ours = [shlex.split(one) for one in COMMANDS if one.startswith("moldau ")]
        assert len(ours) == 7
        for words in ours:
            done = offline(*words[1:])
            assert done.code == 0, (words, done)
        assert done.lines == PRINTED[0].splitlines()
        assert len(offline("acls", "list", "--command-config", "admin.properties").lines) == 7
        ann = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        login = {"sasl.username": "ann", "sasl.password": "ann-secret"}
        with Admin(broker.address, client_id="app", **_underscored({**ann, **login})) as admin:
            with pytest.raises(TopicAuthorizationFailed):
                admin.describe_topics(["salaries"])
    finally:
        broker.stop()
    [written] = map(json.loads, Path("audit.jsonl").read_text().splitlines())
    example = json.loads(LINE[0])
    assert {**written, "time": ""} == {**example, "time": ""}


def _underscored(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in settings.items()}
