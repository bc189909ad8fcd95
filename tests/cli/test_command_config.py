"""`--command-config`: every command that talks to a broker does it as the file says."""

from pathlib import Path

import pytest

from harness.certificates import Authority
from moldau import testing
from moldau.cli.command_line import Parameter
from tests.cli.conftest import Moldau
from tests.cli.test_main import ASKED, of_a_broker
from tests.client.security.conftest import authority, secured, served, server_certificate

__all__ = ["authority", "secured", "served", "server_certificate"]


@pytest.fixture
def file(tmp_path: Path, authority: Authority) -> Path:
    """The settings of a Java program that reaches the broker."""
    path = tmp_path / "client.properties"
    path.write_text(
        f"security.protocol=SSL\nssl.truststore.location={authority.trusted}\nssl.truststore.type=PEM\n"
        "bootstrap.servers=elsewhere:1\ngroup.id=readers\nkey.deserializer=com.example.Keys\nlinger.ms=1\n"
        "client.id=from-the-file\nretries=1\n"
    )
    return path


def test_commands_reach_a_broker_behind_tls(
    offline: Moldau, secured: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("-b", secured, "--command-config", str(file))
    assert offline("topics", "create", "behind", *asked).lines == ["created topic behind"]
    assert offline("produce", "behind", *asked, stdin=b"one\ntwo\n").code == 0
    monkeypatch.setenv("MOLDAU_COMMAND_CONFIG", str(file))
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", secured)
    assert offline("consume", "behind", "--partition", "0", "--offset", "0", "-n", "2", "--command-property",
                   "group.id=").lines == ["one", "two"]  # fmt: skip
    assert offline("cluster", "status").code == 0
    assert offline("configs", "describe", "topic", "behind").code == 0
    assert "behind" in offline("topics", "describe", "behind", "--json").out


def test_a_load_is_planned_and_an_audit_made_behind_a_login(offline: Moldau, tmp_path: Path) -> None:
    """What Spark's tasks read them by is the same text, which carries the file (tests/pipeline/test_secured.py)."""
    with testing.Broker(users={"alice": "alice-secret"}, tls=True) as broker:
        settings = broker.client_settings("alice")
        path = tmp_path / "client.properties"
        path.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
        asked = ("-b", broker.address, "--command-config", str(path))
        reports = ("--command-property", "audit.topic=_audit")
        assert offline("produce", "loaded", *reports, *asked, stdin=b"one\ntwo\n").code == 0
        load = ("pipeline", "load", "--topics", "loaded", "--warehouse", str(tmp_path / "warehouse"), "--dry-run")
        planned = offline(*load, "--json", *asked)
        assert planned.code == 0 and '"loaded"' in planned.out
        audited = offline("pipeline", "audit", "--topics", "loaded", "--json", *asked)
        assert '"origin"' in audited.out
        for said in (planned, audited):
            assert "alice-secret" not in said.out + said.err


@pytest.mark.parametrize(("path", "parameters"), [*of_a_broker()], ids=lambda one: one if isinstance(one, str) else "")
def test_every_command_protects_its_connections_as_the_file_says(
    path: str, parameters: list[Parameter], offline: Moldau, secured: str, file: Path, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other").trusted
    file.write_text(f"security.protocol=SSL\nssl.ca.location={other}\n")
    needed = [text for one in parameters if one.required for text in [*one.names[-1:], "x"]]
    asked = ASKED.get(path, needed)
    assert "is not trusted" in offline(*path.split(), *asked, "-b", secured, "--command-config", str(file)).error
    assert "--command-config" in offline(*path.split(), "--help").out


def test_a_file_of_no_use_is_one_sentence(offline: Moldau, tmp_path: Path) -> None:
    assert offline("topics", "list", "--command-config", str(tmp_path / "no")).error.startswith("cannot read")
    wrong = tmp_path / "wrong"
    wrong.write_text("security.protocol=SSL\nssl.ca.location=/nowhere\n")
    said = offline("topics", "list", "--command-config", str(wrong)).error
    assert said == "cannot use /nowhere, which ssl.ca.location names: No such file or directory"
    wrong.write_text("security.protocl=SSL\n")
    said = offline("topics", "list", "--command-config", str(wrong)).error
    assert said == "The command has no setting security.protocl; did you mean security.protocol?"
