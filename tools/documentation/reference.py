"""Pages of the reference that are made from code: commands and error codes."""

import importlib
import os
from collections.abc import Callable
from typing import Any

from moldau.cli.app import PLACES
from moldau.cli.command_line import Group, parameters_of
from moldau.cli.help import command_help
from moldau.cli.options import with_command_config
from moldau.error_codes import ErrorCode

ERRORS = """# Error codes

Kafka's. Each is an exception of its own in `moldau.errors`, a subclass of `KafkaError` with the name in camel case:
`UNKNOWN_TOPIC_OR_PARTITION` is `UnknownTopicOrPartition`.

"""


def commands_page() -> str:
    """The help of every command, as it is printed."""
    os.environ["COLUMNS"] = "100"  # of a terminal, for the help
    pieces = [
        "# Commands",
        "What each command says with `--help`. [commands.md](../docs/commands.md) has what holds for all.",
    ]
    for name, place in PLACES.items():
        found = getattr(importlib.import_module(place.module), place.name)
        pieces.append(f"## moldau {name}")
        if isinstance(found, Group):
            pieces.append(place.summary)
            for one, function in found.commands.items():
                pieces += [f"### moldau {name} {one}", _help(f"moldau {name} {one}", function)]
        else:
            pieces.append(_help(f"moldau {name}", found))
    return "\n\n".join(pieces) + "\n"


def _help(path: str, function: Callable[..., Any]) -> str:
    text = command_help(path, function.__doc__ or "", with_command_config(parameters_of(function)))
    return f"```text\n{text}\n```"


def errors_page() -> str:
    """Every error code with its number, its exception and what it means."""
    rows = ["| code | name | may be retried | what it means |", "|---|---|---|---|"]
    for code in ErrorCode:
        rows.append(f"| {code.value} | {code.name} | {'yes' if code.retriable else 'no'} | {code.sentence} |")
    return ERRORS + "\n".join(rows) + "\n"
