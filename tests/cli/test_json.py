"""Each command that prints information has `--json`."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from moldau.cli.app import PLACES
from moldau.cli.command_line import Group, parameters_of

WITHOUT = {
    "server start": "runs until it is stopped, and writes a log",
    "cluster start": "the same",
    "zookeeper start": "the same",
    "registry start": "the same",
    "console": "the same",
    "mirror start": "the same",
    "completion": "prints a script",
    "registry password": "prints a line of a properties file",
    "verifiable produce": "prints lines of JSON always",
    "verifiable consume": "prints lines of JSON always",
    "pipeline demo": "writes a report into a folder",
}


def commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, place in PLACES.items():
        found = getattr(importlib.import_module(place.module), place.name)
        if isinstance(found, Group):
            yield from ((f"{name} {one}", function) for one, function in found.commands.items())
        else:
            yield name, found


def test_each_command_prints_json_or_has_a_reason() -> None:
    without = {
        path for path, function in commands() if not any("--json" in one.names for one in parameters_of(function))
    }
    assert without == {*WITHOUT}
