"""The commands of docs/registry.md, from top to bottom in a fresh folder, and what the page shows below them."""

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE, first_line
from harness.pages import ShownCommand, commands
from harness.patience import stretched
from moldau.serializers import RegistryUnauthorized, Schema, SchemaRegistry
from moldau.testing import Broker
from moldau.transport.authority import CertificateAuthority

PAGE = commands("registry.md")
ADDRESS = "http://localhost:8081"
START = "moldau registry start"
TYPED = "ann-secret\n"


def of(*beginnings: str) -> list[ShownCommand]:
    return [one for one in PAGE if one.line.startswith(beginnings)]


@contextlib.contextmanager
def registry(broker: Broker, command: str) -> Iterator[str]:
    """The address of a registry that the page's command starts, on a free port."""
    arguments = [word for word in shlex.split(command)[1:] if word not in ("-b", "localhost:9092")]
    whole = [sys.executable, "-m", "moldau", *arguments, "-b", broker.address, "--port", "0"]
    with subprocess.Popen(whole, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            said = first_line(process)
            assert said.startswith("listening on http"), said
            yield said.removeprefix("listening on ").strip()
        finally:
            process.terminate()
        assert process.wait(stretched(30)) == 0


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE), **more}


def output_of(line: str, url: str, folder: Path) -> str:
    """What a shell shows of a command; `moldau` is the one of this source."""
    line = line.replace(ADDRESS, url).replace("password ann", "password ann --password-file -")
    done = subprocess.run(
        ["bash", "-c", f'moldau() {{ {shlex.quote(sys.executable)} -m moldau "$@"; }}; {line}'], cwd=folder,
        env=environment(MOLDAU_SCHEMA_REGISTRY=url), input=TYPED, capture_output=True, text=True, timeout=stretched(60),
    )  # fmt: skip
    assert done.returncode in (0, 1), done
    return done.stdout + done.stderr


@pytest.mark.check
def test_the_commands_show_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [plain, secured] = of(START)
    used = of("cat ", "moldau schemas ", "curl ")
    users = of("moldau registry password", "echo ")
    assert len(used) == 8 and len(users) == 2 and len(PAGE) == 12, "a command of the page is not run here"
    with Broker() as broker:
        with registry(broker, plain.line) as url:
            for shown in used:
                if shown.line.startswith("cat "):
                    (tmp_path / shown.line.split()[1]).write_text(shown.output)
                elif not shown.line.startswith("curl ") or has_curl():
                    assert output_of(shown.line, url, tmp_path).strip() == shown.output.strip(), shown.line
        for shown in users:
            output_of(shown.line, "", tmp_path)
        authority = CertificateAuthority.new("authority")
        made = authority.for_host(["localhost"], called="registry")
        (tmp_path / "registry.pem").write_bytes(made.key + made.certificate)
        (tmp_path / "authority.pem").write_bytes(authority.certificate)
        with registry(broker, secured.line) as url:
            trusted = str(tmp_path / "authority.pem")
            ann = SchemaRegistry(url, basic_auth_user_info="ann:ann-secret", ssl_ca_location=trusted)
            assert ann.version("orders-value").id == 1
            with pytest.raises(RegistryUnauthorized, match="40301"):
                ann.register("payments-value", Schema('"int"'))


def has_curl() -> bool:
    return subprocess.run(["bash", "-c", "type curl"], capture_output=True).returncode == 0
