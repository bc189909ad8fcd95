"""Runs one command with its command line, or prints its help."""

from collections.abc import Callable, Sequence
from typing import Any

from moldau.cli.command_line import HelpAsked, UsageError, call, parameters_of, read
from moldau.cli.options import connecting, with_command_config


def run_command(function: Callable[..., Any], path: str, texts: Sequence[str]) -> int:
    """Run a command with these texts as its command line; returns its exit code. Raises `UsageError`."""
    parameters = with_command_config(parameters_of(function))
    try:
        result = call(function, connecting(read(parameters, texts)))
    except HelpAsked:
        from moldau.cli.help import command_help

        print(command_help(path, function.__doc__ or "", parameters))
        return 0
    except UsageError as wrong:
        raise UsageError(f"{wrong} (`{path} --help` says more)") from None
    return result if isinstance(result, int) else 0
