"""`moldau server start`: what the command line stands for, and a start and stop of the real thing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import SOURCE, first_line
from moldau.cli.command_line import parameters_of, read
from moldau.cli.server.start import DEFAULT_LISTENER, levels_of, properties_of, start
from moldau.errors import ConfigError
from tests.cli.test_main import started

LIGHT = """
import sys
import moldau.cli.main, moldau.process
moldau.process.run = lambda *settings: 0
assert moldau.cli.main.run(["server", "start", "--port", "0"]) == 0
print(*sorted(set(sys.modules) & {"argparse", "typer", "click", "rich", "pyarrow", "moldau.cli.app", "moldau.client"}))
"""


def properties(*texts: str) -> dict[str, str]:
    """The settings that the command line stands for."""
    values = read(parameters_of(start), texts)
    return properties_of(*(values[name] for name in ("file", "host", "port", "data_dir")), values["settings"] or ())


def test_without_anything_it_listens_on_localhost_only() -> None:
    assert properties() == {"listeners": DEFAULT_LISTENER}


def test_host_port_and_folder_become_kafkas_settings() -> None:
    assert properties("--host", "0.0.0.0", "--port", "0", "--data-dir", "d") == {
        "listeners": "PLAINTEXT://0.0.0.0:0",
        "log.dirs": "d",
    }
    assert properties("--host", "::1")["listeners"] == "PLAINTEXT://[::1]:9092"
    with pytest.raises(ConfigError, match=r"--set log\.dirs"):
        properties("--data-dir", "/a,/b")
    with pytest.raises(ConfigError, match=r"--data-dir and --set log\.dirs both name"):
        properties("--data-dir", "/a", "--set", "log.dirs=/b,/c")


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.dir=/a\nlisteners=CONTROLLER://:9093,PLAINTEXT://here:9092\n")
    chosen = properties(str(file), "--port", "7", "--data-dir", "/b", "--set", "num.partitions = 3")
    assert chosen == {
        "num.partitions": "3",
        "log.dirs": "/b",
        "listeners": "CONTROLLER://:9093,PLAINTEXT://here:7",
    }
    assert properties(str(file))["listeners"] == "CONTROLLER://:9093,PLAINTEXT://here:9092"


def test_host_and_port_are_those_of_the_first_listener_that_is_not_a_controllers() -> None:
    given = ["--port", "7", "--set", "listeners=QUORUM://:9093,INSIDE://a:1,OUTSIDE://b:2"]
    assert properties(*given, "--set", "controller.listener.names=quorum")["listeners"] == (
        "QUORUM://:9093,INSIDE://a:7,OUTSIDE://b:2"
    )


def test_an_address_by_its_older_names_goes_before_localhost() -> None:
    assert "listeners" not in properties("--set", "hostname=a", "--set", "port=1")
    assert properties("--set", "port=1", "--port", "7")["listeners"] == "PLAINTEXT://:7"


def test_a_value_may_have_an_equals_sign_and_a_setting_must() -> None:
    assert properties("--set", "a=b=c")["a"] == "b=c"
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        properties("--set", "=b")


def test_a_start_imports_nothing_that_it_does_not_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIGHT],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.stdout.strip() == ""


def test_it_says_where_it_listens_and_leaves_on_a_signal(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with started(
            "server", "start", "--port", "0", "--data-dir", str(tmp_path / "data"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            assert first_line(process).startswith("listening on localhost:")  # type: ignore[arg-type]
            process.send_signal(number)
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [("num.partitons=3", "num.partitions"), ("num.partitions=many", "num.partitions")],
)
def test_a_setting_that_is_none_is_refused_in_one_sentence(setting: str, sentence: str, tmp_path: Path) -> None:
    with started(
        "server",
        "start",
        "--port",
        "0",
        "--data-dir",
        str(tmp_path),
        "--set",
        setting,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = str(process.stderr.read())
    assert process.returncode == 2, "not 1, after which a service manager starts it again"
    assert said.startswith("error: ") and said.count("\n") == 1
    assert sentence in said


def test_levels_of_the_log_are_named_by_part() -> None:
    assert levels_of(["moldau.groups=debug", "moldau=WARNING"]) == {"moldau.groups": "DEBUG", "moldau": "WARNING"}
    for wrong in ("moldau.groups", "moldau.groups=loud", "asyncio=debug", "=debug"):
        with pytest.raises(ConfigError, match=r"moldau\.PART=LEVEL"):
            levels_of([wrong])
