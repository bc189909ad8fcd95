"""How a command line is read, what is said about a wrong one, and what the help says."""

import enum
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import pytest

from harness.brokers import SOURCE, Broker
from moldau.cli.app import PLACES, run_app
from moldau.cli.command_line import Argument, Group, HelpAsked, Option, UsageError, call, parameters_of, read
from moldau.cli.help import command_help
from tests.cli.conftest import Moldau


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


def paint(
    thing: Annotated[str, Argument("THING")],
    more: Annotated[list[Path] | None, Argument("[FILE...]", help="Files.")] = None,
    coats: Annotated[int, Option("--coats", "-c", min=1, max=9, help="How many coats.")] = 1,
    thinner: Annotated[float | None, Option(help="Litres of it.", metavar="LITRES")] = None,
    color: Annotated[Color, Option(help="The color.")] = Color.RED,
    tags: Annotated[list[str] | None, Option("--tag", "-t", help="Repeatable.", metavar="TAG")] = None,
    place: Annotated[str, Option(envvar="PAINT_PLACE", callback=str.upper, help="Where.")] = "home",
    dry: Annotated[bool, Option("--dry", "-d", help="Only talk.")] = False,
    very: Annotated[bool, Option("--very", "-v", help="Loudly.")] = False,
) -> None:
    """
    Paint a thing. A second sentence.

    Examples:

      moldau paint a-fence --coats 2 --color blue --place 'the garden' --thinner 0.5 -t a | moldau dry

      moldau paint a-gate
    """


DEFAULTS = {
    "thing": "fence",
    "more": None,
    "coats": 1,
    "thinner": None,
    "color": Color.RED,
    "tags": None,
    "place": "HOME",
    "dry": False,
    "very": False,
}


def reading(*texts: str) -> dict[str, object]:
    return read(parameters_of(paint), texts)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("fence", {}),
        ("--coats 3 fence", {"coats": 3}),
        ("fence --coats=3", {"coats": 3}),
        ("-c3 fence", {"coats": 3}),
        ("fence -c 3", {"coats": 3}),
        ("-dvc3 fence", {"dry": True, "very": True, "coats": 3}),
        ("fence a --dry b", {"more": [Path("a"), Path("b")], "dry": True}),
        ("fence -- --dry -", {"more": [Path("--dry"), Path("-")]}),
        ("fence -", {"more": [Path("-")]}),
        ("--color blue fence", {"color": Color.BLUE}),
        ("-t a -tb --tag=c=d fence", {"tags": ["a", "b", "c=d"]}),
        ("--thinner -0.5 fence", {"thinner": -0.5}),
        ("--place= fence", {"place": ""}),
        ("--tag --dry fence", {"tags": ["--dry"]}),
    ],
)
def test_options_stand_anywhere_and_in_every_form(line: str, changed: dict[str, object]) -> None:
    assert reading(*line.split()) == DEFAULTS | changed


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "Missing argument 'THING'"),
        ("fence --coat 3", "No such option: --coat; did you mean --coats?"),
        ("fence -x", "No such option: -x"),
        ("fence --coats", "Option '--coats' requires an argument"),
        ("fence -dc", "Option '--coats' requires an argument"),
        ("fence --coats x", "Invalid value for '--coats': 'x' is not a whole number"),
        ("fence --coats 10", "Invalid value for '--coats': 10 is not from 1 to 9"),
        ("fence --thinner x", "Invalid value for '--thinner': 'x' is not a number"),
        ("fence --thinner nan", "Invalid value for '--thinner': 'nan' is not a number"),
        ("fence --thinner inf", "Invalid value for '--thinner': 'inf' is not a number"),
        ("fence --color pink", "Invalid value for '--color': 'pink' is not one of red, blue"),
        ("fence --dry=yes", "Option '--dry' does not take a value"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(UsageError) as wrong:
        reading(*line.split())
    assert str(wrong.value) == sentence


class Frame(NamedTuple):
    """What several commands have."""

    wood: Annotated[str, Option(help="Of what.")] = "oak"
    gilt: Annotated[bool, Option(help="With gold.")] = False


def test_parameters_that_several_commands_share_are_one() -> None:
    def hang(
        picture: Annotated[str, Argument("PICTURE")],
        frame: Frame = Frame(),
        high: Annotated[bool, Option("--high")] = False,
    ) -> tuple[str, Frame, bool]:
        return picture, frame, high

    parameters = parameters_of(hang)
    assert [one.name for one in parameters] == ["picture", "wood", "gilt", "high"]
    assert call(hang, read(parameters, ["sea", "--gilt"])) == ("sea", Frame("oak", True), False)
    assert call(hang, read(parameters, ["sea", "--wood", "ash", "--high"])) == ("sea", Frame("ash", False), True)


def test_an_argument_too_many_and_a_missing_option_are_said() -> None:
    def one(thing: Annotated[str, Argument("THING")], size: Annotated[int, Option(min=0)]) -> None: ...

    for texts, sentence in (
        (["a", "b", "--size", "1"], "Got unexpected extra argument (b)"),
        (["a"], "Missing option '--size'"),
        (["a", "--size", "-1"], "Invalid value for '--size': -1 is not at least 0"),
    ):
        with pytest.raises(UsageError) as wrong:
            read(parameters_of(one), texts)
        assert str(wrong.value) == sentence


def test_the_environment_stands_in_for_a_missing_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAINT_PLACE", "work")
    assert reading("fence")["place"] == "WORK"
    assert reading("fence", "--place", "garden")["place"] == "GARDEN"
    monkeypatch.setenv("PAINT_PLACE", "")
    assert reading("fence")["place"] == "HOME"


def test_help_shows_each_option_and_examples_that_a_shell_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(HelpAsked):
        reading("--coats", "2", "-h")
    text = command_help("moldau paint", paint.__doc__ or "", parameters_of(paint))
    assert text.splitlines()[0] == "Usage: moldau paint [OPTIONS] THING [FILE...]"
    example = text.partition("Examples:\n\n")[2].partition("\n\n")[0]
    assert example.splitlines() == [
        "    moldau paint a-fence --coats 2 --color blue \\",
        "        --place 'the garden' --thinner 0.5 -t a \\",
        "        | moldau dry",
        "    moldau paint a-gate",
    ]
    squeezed = " ".join(text.split())
    assert "-c, --coats INTEGER How many coats. [1 to 9; default: 1]" in squeezed
    assert "--color red|blue The color. [default: red]" in squeezed
    assert "--thinner LITRES Litres of it. --color" in squeezed and "-t, --tag TAG Repeatable." in squeezed
    assert "[environment: PAINT_PLACE; default: home]" in squeezed


def commands() -> list[list[str]]:
    found = []
    for name, place in PLACES.items():
        there = getattr(importlib.import_module(place.module), place.name)
        found += [[name, command] for command in there.commands] if isinstance(there, Group) else [[name]]
    return found


def test_help_fits_a_terminal_of_eighty_columns_and_says_first_what_a_command_does(
    offline: Moldau, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    groups = dict.fromkeys((command[0],) for command in commands() if len(command) == 2)
    for command in ([], *groups, *commands()):
        shown = offline(*command, "--help")
        assert [line for line in shown.lines if len(line) > 80] == [], command
        usage, _, first, *_ = shown.lines
        assert usage.startswith(" ".join(["Usage: moldau", *command])), command
        assert re.match(r"  [A-Z`]", first), command
        assert "Examples:\n\n    " in shown.out, command


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_and_each_of_its_parameters_is_explained(command: list[str], offline: Moldau) -> None:
    shown = offline(*command, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert "xample" in shown.out and f"moldau {' '.join(command)}" in shown.out
    [usage, *_] = shown.lines
    assert usage.startswith(f"Usage: moldau {' '.join(command)} [OPTIONS]")
    rows = [line for line in shown.lines if line.startswith(("  -", "  --"))]
    assert len(rows) >= 1 and rows[-1].startswith("  -h, --help")


def test_each_command_is_listed_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n  {name} " in listed for name in PLACES)
    assert run_app(["groups", "-h"]) == 0
    assert "Move the committed offsets of a group that has no members." in capsys.readouterr().out


HEAVY = (
    "typer",
    "click",
    "rich",
    "pydantic",
    "pyarrow",
    "argparse",
    "moldau.client.producing.producer",
    "moldau.client.consuming.consumer",
)
SHORT = f"""
import sys
from moldau.cli.main import run
code = run(["topics", "list"])
ours = [name for name in sys.modules if name.startswith("moldau.")]
print(code, len([name for name in ours if name.startswith("moldau.protocol.messages.")]))
print(*[name for name in sys.modules if name in {HEAVY}])
"""


def test_a_short_command_imports_little(broker: Broker) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MOLDAU_BOOTSTRAP_SERVER": broker.address}
    done = subprocess.run([sys.executable, "-c", SHORT], env=environment, capture_output=True, text=True, check=True)
    *_, numbers, heavy = done.stdout.split("\n")[:-1]
    code, messages = map(int, numbers.split())
    assert code == 0 and heavy == ""
    assert messages <= 6, "those of Metadata and ApiVersions, and what the routing of any client needs"
