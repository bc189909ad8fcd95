"""The help of a command or a group, as text for a terminal."""

import enum
import inspect
import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moldau.cli.command_line import Argument, Option, Parameter

COLUMNS_MAX, LEFT_MAX = 100, 32
_BEFORE_AN_OPTION = re.compile(r" (?=--?[a-z]|\| )")
_GOES_ON = " \\"
_KINDS = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}


def command_help(path: str, text: str, parameters: Sequence[Parameter]) -> str:
    """The help of one command; `text` is its docstring."""
    arguments = [p for p in parameters if isinstance(p.about, Argument)]
    options = [p for p in parameters if isinstance(p.about, Option)]
    usage = " ".join([path, "[OPTIONS]", *(p.about.metavar for p in arguments if isinstance(p.about, Argument))])
    pieces = [f"Usage: {usage}", textwrap.indent(_fitted(inspect.cleandoc(text)), "  ")]
    if arguments:
        pieces.append("Arguments:\n" + _table([(_left(p), _right(p)) for p in arguments]))
    rows = [(_left(p), _right(p)) for p in options]
    pieces.append("Options:\n" + _table([*rows, ("-h, --help", "Show this message and exit.")]))
    return "\n\n".join(pieces)


def group_help(
    path: str,
    text: str,
    commands: Mapping[str, str],
    examples: Sequence[str],
    options: Sequence[tuple[str, str]] = (),
) -> str:
    """The help of a group: `commands` maps each name to a line about it."""
    about = "\n\n".join([text, f"`{path} COMMAND --help` has the options of a command and examples.", "Examples:"])
    shown = "\n\n".join([about, *(f"  {one}" for one in examples)])
    return "\n\n".join(
        [
            f"Usage: {path} [OPTIONS] COMMAND [ARGS]...",
            textwrap.indent(_fitted(shown), "  "),
            "Options:\n" + _table([*options, ("-h, --help", "Show this message and exit.")]),
            "Commands:\n" + _table(list(commands.items())),
        ]
    )


def first_example(text: str) -> str:
    """The first example of a docstring."""
    return text.partition("Examples:\n")[2].strip().partition("\n")[0]


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, in one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()).partition(". ")[0].removesuffix(".") + "."


def _fitted(text: str) -> str:
    """The paragraphs, as wide as the terminal. Those that are indented are examples: they stand below each other, and
    one that is too long goes on behind a backslash, so that a shell takes it, too."""
    width, pieces = _columns() - 2, list[str]()
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith(" "):
            pieces.append("\n\n" + textwrap.fill(paragraph, width, break_on_hyphens=False, break_long_words=False))
            continue
        between = "\n" if pieces[-1].strip("\n").startswith(" ") else "\n\n"
        pieces.append(between + "\n".join(_continued(line, width) for line in paragraph.split("\n")))
    return "".join(pieces).strip("\n")


def _continued(line: str, width: int) -> str:
    """A line of shell, which goes on in a further line before an option, or a command, that has no room any more."""
    lines = [""]
    for part in _BEFORE_AN_OPTION.split(line):
        if lines[-1] and len(lines[-1]) + len(part) + len(" " + _GOES_ON) > width:
            lines[-1] += _GOES_ON
            lines.append("     ")
        lines[-1] += f" {part}" if lines[-1] else part
    return "\n".join(lines)


def _columns() -> int:
    return min(shutil.get_terminal_size().columns, COLUMNS_MAX)


def _left(parameter: Parameter) -> str:
    about = parameter.about
    if isinstance(about, Argument):
        return about.metavar
    if parameter.kind is bool:
        return ", ".join(parameter.names)
    metavar = about.metavar or (
        "|".join(str(one.value) for one in parameter.kind)
        if issubclass(parameter.kind, enum.Enum)
        else _KINDS[parameter.kind]
    )
    return f"{', '.join(parameter.names)} {metavar}"


def _right(parameter: Parameter) -> str:
    """The help, and in brackets what else is to be known."""
    about, notes = parameter.about, []
    if isinstance(about, Option):
        if about.envvar:
            notes.append(f"environment: {about.envvar}")
        if about.min is not None:
            notes.append(f"at least {about.min}" if about.max is None else f"{about.min} to {about.max}")
    if parameter.required:
        notes.append("required")
    elif parameter.default not in (None, False, ""):
        notes.append(f"default: {_shown(parameter.default)}")
    return f"{about.help}  [{'; '.join(notes)}]" if notes else about.help


def _shown(value: Any) -> str:
    return str(value.value) if isinstance(value, enum.Enum) else str(value)


def _table(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns; a long left cell stands on a line of its own."""
    columns = _columns()
    width = min(max((len(left) for left, _ in rows), default=0), LEFT_MAX)
    lines = []
    for left, right in rows:
        wrapped = textwrap.wrap(right, max(columns - width - 4, 20), break_on_hyphens=False) or [""]
        if len(left) > width:
            lines.append(f"  {left}")
            left = ""
        lines += [
            f"  {cell:{width}}  {text}".rstrip()
            for cell, text in zip([left, *[""] * (len(wrapped) - 1)], wrapped, strict=True)
        ]
    return "\n".join(lines)
