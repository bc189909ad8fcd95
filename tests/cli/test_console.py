"""`moldau console` and the console beside a broker: what they print, with their exit codes."""

import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from harness.listening import free_port
from harness.patience import stretched
from tests.cli.conftest import Moldau
from tests.cli.test_main import started

NOWHERE = "127.0.0.1:1"


def test_a_broker_runs_a_registry_and_a_console_beside_itself(tmp_path: Path) -> None:
    registry_port, metrics_port = free_port(), free_port()
    beside = ("--registry-port", str(registry_port), "--console-port", "0", "--set", f"metrics.port={metrics_port}")
    command = ("server", "start", "--port", "0", *beside, "--data-dir", str(tmp_path / "data"))
    with started(*command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [str(process.stdout.readline()) for _ in range(3)]
            assert lines[1].startswith("schema registry listening on http://localhost:")
            assert lines[2].startswith("console listening on http://localhost:")
            with urlopen(f"{lines[2].split()[-1]}/topics?internal=1", timeout=stretched(20)) as page:
                assert "_schemas" in page.read().decode()
            with urlopen(f"{lines[2].split()[-1]}/schemas", timeout=stretched(20)) as page:
                assert "Compatibility level" in page.read().decode()
            with urlopen(lines[2].split()[-1], timeout=stretched(20)) as page:
                assert "/pulse/requests" in page.read().decode()
        finally:
            process.terminate()
        assert process.wait(stretched(30)) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--tls-key", "key.pem"], "--tls-key needs --tls-certificate"),
        (["--command-property", "security.protocol=SASL_SSL"], "users of the console log in with a password"),
        (["--command-property", "no.such=1"], "the console has no setting no.such"),
        (["--port", "0"], f"cannot connect to {NOWHERE}"),
    ],
)
def test_a_console_that_cannot_start_says_why(offline: Moldau, options: list[str], sentence: str) -> None:
    assert offline("console", "-b", NOWHERE, *options).error.startswith(sentence)


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_a_console_port_is_a_port(offline: Moldau, port: str) -> None:
    refused = offline("server", "start", "--console-port", port)
    assert refused.code == 2
    assert refused.error.startswith(f"Invalid value for '--console-port': {port} is not from 0 to 65535")
