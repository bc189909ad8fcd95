"""All commands of `moldau` but the fast path of `server start`, put together.

Those of `log` import most of the storage engine: they are only put in where one of them was given.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from moldau.cli import configs, groups, pipeline, topics, transactions
from moldau.cli.consume import consume
from moldau.cli.produce import produce
from moldau.cli.version import version

server = typer.Typer(name="server", help="The broker: start.", no_args_is_help=True)


def moldau(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and end.", is_eager=True)] = False,
) -> None:
    """A commit log that speaks the Apache Kafka protocol."""
    if show_version:
        print(version())
        raise typer.Exit


@server.command("start", context_settings={"ignore_unknown_options": True, "help_option_names": []})
def start(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> int:
    """Start a broker and run it until it is told to stop."""
    from moldau.cli.server import start as start_server

    return start_server(arguments or [])


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The whole command line, for these arguments."""
    app = typer.Typer(
        name="moldau",
        help="A commit log that speaks the Apache Kafka protocol.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(moldau)
    app.add_typer(server)
    app.add_typer(topics.app)
    app.add_typer(configs.app)
    app.add_typer(groups.app)
    app.add_typer(transactions.app)
    app.add_typer(_log(arguments))
    app.command()(produce)
    app.command()(consume)
    app.add_typer(pipeline.app, name="pipeline")
    return app


def _log(arguments: Sequence[str]) -> typer.Typer:
    group = typer.Typer(
        name="log", help="The files of a stopped broker: dump, verify, repair, adopt, import.", no_args_is_help=True
    )
    if list(arguments[:1]) == ["log"]:
        from moldau.cli.log import adopt, dump, import_files, repair, verify

        commands: list[Callable[..., Any]] = [dump, verify, repair, adopt]
        for command in commands:
            group.command(command.__name__)(command)
        group.command("import")(import_files)
    return group
