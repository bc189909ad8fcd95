"""How every command begins and ends."""

import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched
from moldau import __version__
from moldau.cli.app import PLACES
from moldau.cli.command_line import Group, Parameter, parameters_of
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
    ["doctor"],
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
        (["server", "start", "--port", "x"], "Invalid value for '--port': 'x' is not a whole number"),
        (["server", "start", "--port", "80000"], "Invalid value for '--port': 80000 is not from 0 to 65535"),
        (
            ["server", "start", "--set", "listeners=A://h:65536"],
            "listeners has the port 65536 in 'A://h:65536': a port",
        ),
        (["topics", "lsit"], "No such command 'lsit'; did you mean list?"),
        (["server", "start", "--set", "x"], "--set 'x' is not of the form NAME=VALUE"),
        (["pipeline", "rejected", "--topics", "t", "--warehouse", "w", "-n", "3"], "--max-messages needs --records"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], sentence: str, offline: Moldau) -> None:
    assert sentence in offline(*arguments).error


@pytest.mark.parametrize(
    "arguments",
    [
        ["server", "start", "--set", "num.partitions=many"],
        ["cluster", "start", "--embedded", "--set", "num.partitions=many"],
        ["registry", "start", "--tls-key", "key.pem"],
        ["mirror", "start", "--from", "a:1", "--to", "b:1", "--topics", "t", "--instance", "a b"],
        ["console", "--tls-key", "key.pem"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_wrong_setting_of_what_runs_until_it_is_stopped_is_exit_code_2(
    arguments: list[str], offline: Moldau, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = offline(*arguments)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err


def test_text_that_is_not_utf8_is_said(offline: Moldau, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.cli.app.run_app", lambda arguments: arguments[0].encode())
    ended = offline("\udcff")
    assert (ended.code, ended.error) == (2, "an argument is not UTF-8")
    monkeypatch.setattr("moldau.cli.app.run_app", lambda _: b"\xff".decode())
    ended = offline("topics")
    assert (ended.code, ended.error) == (1, "the input is not UTF-8 text")


def test_a_wrong_setting_of_a_command_that_ends_is_exit_code_1(offline: Moldau) -> None:
    assert offline("topics", "list", "-b", "nowhere:x").code == 1


NOWHERE = "127.0.0.1:1"
ASKED = {
    "consume": ["t"],
    "produce": ["t"],
    "cluster add-broker": ["1"],
    "cluster drain-broker": ["1"],
    "cluster reassign": [str(Path(__file__).parent / "cluster" / "moving" / "plan.json")],
    "cluster replace-broker": ["1", "2"],
    "cluster unregister": ["1"],
    "client-metrics alter": ["s", "--metrics", "*"],
    "client-metrics read": ["t"],
    "configs alter": ["topic", "t", "--config", "a=b"],
    "configs describe": ["topic", "t"],
    "groups reset-offsets": ["g", "--all-topics", "--to-latest"],
    "pipeline load": ["--topics", "t", "--warehouse", "w"],
    "groups delete-offsets": ["g", "t"],
    "groups describe": ["g"],
    "topics alter": ["t", "-p", "2"],
    "topics delete-records": ["t", "--before", "2"],
    "perf consume": ["t"],
    "perf latency": ["t"],
    "perf produce": ["t"],
    "verifiable consume": ["t", "--group-id", "g"],
    "verifiable produce": ["t"],
    "transactions abort": ["--topic", "t", "--partition", "0", "--start-offset", "0"],
    "transactions find-hanging": ["--topic", "t"],
    "transactions describe-producers": ["--topic", "t", "--partition", "0"],
    "quotas set": ["producer_byte_rate=1", "--user", "ann"],
    "quotas remove": ["--user", "ann"],
    "acls add": ["--principal", "User:ann", "--topic", "t"],
    "acls remove": ["--topic", "t"],
    "acls explain": ["--principal", "User:ann", "--topic", "t", "--operation", "Read"],
    "log import": [str(Path(__file__)), "--topic", "t"],
}
"""Commands that talk to a broker and need more than what is required of each of their kind."""
IN_VAIN = {
    "consume": (["t", "--offset", "3"], "--offset needs --partition"),
    "produce": (["t", "--format", "json", "--headers"], "--format json has keys"),
    "groups reset-offsets": (["g", "--all-topics"], "give one of --to-earliest"),
    "groups reset-offsets of two forms": (["g", "--to-current", "--export", "--json"], "give --export or --json"),
    "pipeline load": (["--topics", "t"], "--warehouse is missing"),
    "pipeline load of nothing": (["--warehouse", "w"], "give one of --topics and --pattern"),
    "top": (["--once", "--json", "--rows", "3"], "--rows cannot be combined with --json"),
    "topics alter": (["t"], "give --partitions"),
    "topics delete-records": (["t"], "give topics and --before"),
    "client-metrics alter": (["s"], "give --metrics, --interval or --match"),
    "groups describe": (["g", "--all"], "give groups, or --all"),
    "perf produce": (["t", "-n", "5", "--warmup-records", "5"], "--warmup-records leaves nothing"),
}
"""What is wrong with the options alone."""


def of_a_broker() -> Iterator[tuple[str, list[Parameter]]]:
    """Each command that has --bootstrap-server, and its parameters; without the doctor, whose finding it is that no
    broker answers, and the registry, which waits for one."""
    for name, place in PLACES.items():
        found = getattr(importlib.import_module(place.module), place.name)
        commands = {f"{name} {one}": made for one, made in found.commands.items()} if isinstance(found, Group) else {}
        for path, function in (commands or {name: found}).items():
            parameters = parameters_of(function)
            if path not in ("doctor", "registry start") and any(
                "--bootstrap-server" in one.names for one in parameters
            ):
                yield path, parameters


@pytest.mark.parametrize(("path", "parameters"), [*of_a_broker()], ids=lambda one: one if isinstance(one, str) else "")
def test_every_command_says_at_once_that_no_broker_answers(
    path: str, parameters: list[Parameter], offline: Moldau
) -> None:
    needed = [text for one in parameters if one.required for text in [*one.names[-1:], "x"]]
    said = offline(*path.split(), *ASKED.get(path, needed), "-b", NOWHERE).error
    assert said == f"cannot connect to {NOWHERE}: Connection refused"


@pytest.mark.parametrize("path", IN_VAIN)
def test_options_are_checked_before_a_broker_is_asked(path: str, offline: Moldau) -> None:
    options, sentence = IN_VAIN[path]
    assert offline(*path.partition(" of ")[0].split(), *options, "-b", NOWHERE).error.startswith(sentence)


def test_the_help_of_a_group_names_all_its_commands() -> None:
    for name, place in PLACES.items():
        group = getattr(importlib.import_module(place.module), place.name)
        missing = [one for one in getattr(group, "commands", {}) if not re.search(rf"\b{one}\b", place.summary)]
        assert not missing, f"moldau {name}: the summary forgets {missing}"


def test_a_file_in_place_of_a_folder_is_said(tmp_path: Path, offline: Moldau) -> None:
    file = tmp_path / "file"
    file.touch()
    said = offline("cluster", "start", "--embedded", "--data-dir", str(file)).error
    assert said == f"{file} is not a folder"


def test_a_topic_is_named_once(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic, "-p", "3")
    assert moldau("topics", "create", topic).error == f"topic {topic} exists already"
    assert moldau("topics", "alter", topic, "-p", "2").error == f"topic {topic} has 3 partitions, and 2 is not more"


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


def test_names_in_tables_are_no_commands_to_a_terminal_and_end_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Any client may give its group such a name."""
    print_table(["GROUP", "MEMBERS"], [["\x1b]0;title\x07\x1b[2Jž", ["a\nb", "\u202ec\x9b"]]])
    assert capsys.readouterr().out.splitlines()[1:] == [r"\x1b]0;title\x07\x1b[2Jž  a\nb,\u202ec\x9b"]


def test_tables_align_numbers_right_and_text_left_and_cut_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "COUNT", "ISR"], [["a" * 30, 5, [1, 2]], ["b", None, []]])
    assert capsys.readouterr().out.splitlines() == [
        f"NAME{' ' * 26}  COUNT  ISR",
        f"{'a' * 30}      5  1,2",
        f"b{' ' * 29}      -",
    ]
