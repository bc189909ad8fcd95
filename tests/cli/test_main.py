"""How every command begins and ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched
from moldau import __version__
from moldau.cli.output import print_table
from tests.cli.conftest import Moldau

COMMANDS = [
    ["topics", "list"],
    ["topics", "create"],
    ["topics", "describe"],
    ["topics", "delete"],
    ["groups", "list"],
    ["groups", "describe"],
    ["produce"],
    ["consume"],
    ["server", "start"],
    ["pipeline", "load"],
    ["pipeline", "compact"],
    ["pipeline", "vacuum"],
    ["pipeline", "history"],
    ["pipeline", "convert"],
]


def started(*arguments: str, **options: object) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen([sys.executable, "-m", "moldau", *arguments], env=environment, **options)  # type: ignore[call-overload,no-any-return]


def test_the_version_says_whether_the_columns_are_compiled(offline: Moldau) -> None:
    assert offline("--version").out.strip() in [
        f"moldau {__version__} (columns {how})" for how in ("compiled", "interpreted")
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_an_example(command: list[str], offline: Moldau) -> None:
    explained = offline(*command, "--help")
    assert explained.code == 0
    assert "xample" in explained.out and f"moldau {' '.join(command)}" in explained.out


@pytest.mark.parametrize("group", [[], ["topics"], ["groups"], ["server"], ["pipeline"]], ids=" ".join)
def test_a_group_without_a_command_shows_what_there_is(group: list[str], offline: Moldau) -> None:
    shown = offline(*group)
    assert shown.code == 2
    assert "Commands:" in shown.out + shown.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["topic"], "No such command 'topic'"),
        (["topics", "list", "--all"], "No such option: --all"),
        (["consume"], "Missing argument 'TOPIC'"),
        (["topics", "create", "t", "--partitions", "x"], "Invalid value for '--partitions'"),
        (["topics", "list", "-b", "nowhere:x"], "'nowhere:x' is not HOST:PORT"),
        (["topics", "list", "-b", "127.0.0.1:1"], "cannot connect to 127.0.0.1:1: Connection refused"),
        (["server", "start", "no-such-file.properties"], "cannot read no-such-file.properties"),
        (["server", "start", "--port", "x"], "argument --port: invalid int value: 'x'"),
        (["server", "start", "--set", "x"], "--set 'x' is not of the form NAME=VALUE"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], sentence: str, offline: Moldau) -> None:
    assert sentence in offline(*arguments).error


def test_ctrl_c_ends_a_command_without_a_word(broker: Broker, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "moldau", "produce", "interrupted", "-b", broker.address],
        input=b"one\n", check=True, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    consuming = started(
        "consume",
        "interrupted",
        "--from-beginning",
        "-b",
        broker.address,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with consuming:
        try:
            assert consuming.stdout is not None and consuming.stderr is not None
            assert consuming.stdout.readline() == b"one\n"
            consuming.send_signal(signal.SIGINT)
            assert consuming.wait(stretched()) == 130
            assert (consuming.stdout.read(), consuming.stderr.read()) == (b"", b"")
        finally:
            consuming.kill()


def test_a_reader_that_goes_away_ends_a_command_without_a_word(broker: Broker) -> None:
    lines = b"".join(b"%d\n" % number for number in range(20_000))  # more than a pipe holds
    with started("produce", "piped", "-b", broker.address, stdin=subprocess.PIPE) as producing:
        producing.communicate(lines)
    consuming = started(
        "consume", "piped", "--from-beginning", "-b", broker.address, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with consuming:
        assert consuming.stdout is not None and consuming.stderr is not None
        assert consuming.stdout.readline() == b"0\n"
        consuming.stdout.close()
        assert consuming.stderr.read() == b""
    assert consuming.returncode == 1


def test_tables_align_numbers_right_and_text_left_and_cut_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "COUNT", "ISR"], [["a" * 30, 5, [1, 2]], ["b", None, []]])
    assert capsys.readouterr().out.splitlines() == [
        f"NAME{' ' * 26}  COUNT  ISR",
        f"{'a' * 30}      5  1,2",
        f"b{' ' * 29}      -",
    ]
