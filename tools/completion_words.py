"""Writes the words that `moldau completion` offers, from the commands. `moldau/cli/completing.py` describes the file;
`make docs` runs this, and `tests/test_documents.py` compares."""

import enum
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from moldau.cli.app import PLACES
from moldau.cli.command_line import HELP, Argument, Group, parameters_of
from moldau.cli.completing import WORDS
from moldau.cli.help import first_sentence
from moldau.cli.options import with_command_config

Line = tuple[str, str, str, str]
"""The path of commands, what may follow it, its values (if it takes any, behind an equals sign), what it is."""


def lines() -> Iterator[Line]:
    yield from (("", name, "", place.summary) for name, place in PLACES.items())
    yield "", "--version", "", "Print the version and end."
    yield from _help("")
    for name, place in PLACES.items():
        found: Group | Callable[..., Any] = getattr(importlib.import_module(place.module), place.name)
        if not isinstance(found, Group):
            yield from _following(name, found)
            continue
        yield from ((name, one, "", first_sentence(made.__doc__ or "")) for one, made in found.commands.items())
        yield from _help(name)
        for one, made in found.commands.items():
            yield from _following(f"{name} {one}", made)


def _following(path: str, function: Callable[..., Any]) -> Iterator[Line]:
    """The options of a command, and the values of its arguments where there are few."""
    for parameter in with_command_config(parameters_of(function)):
        choices = [str(one.value) for one in parameter.kind] if issubclass(parameter.kind, enum.Enum) else []
        if isinstance(parameter.about, Argument):
            yield from ((path, choice, "", parameter.about.help) for choice in choices)
            continue
        values = "" if parameter.kind is bool else f"={' '.join(choices)}"
        yield from ((path, name, values, parameter.about.help) for name in parameter.names)
    yield from _help(path)


def _help(path: str) -> Iterator[Line]:
    yield from ((path, name, "", "Show help and exit.") for name in HELP)


def text() -> str:
    return "".join("\t".join(line) + "\n" for line in lines())


if __name__ == "__main__":
    WORDS.write_text(text(), encoding="utf-8")
