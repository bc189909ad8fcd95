"""All commands of `moldau` but the fast path of `server start`, put together."""

from typing import Annotated

import typer

from moldau.cli import groups, log, pipeline, topics
from moldau.cli.consume import consume
from moldau.cli.log_import import import_files
from moldau.cli.produce import produce
from moldau.cli.version import version

app = typer.Typer(
    name="moldau",
    help="A commit log that speaks the Apache Kafka protocol.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
server = typer.Typer(name="server", help="The broker: start.", no_args_is_help=True)


@app.callback()
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


app.add_typer(server)
app.add_typer(topics.app)
app.add_typer(groups.app)
log.app.command("import")(import_files)
app.add_typer(log.app)
app.command()(produce)
app.command()(consume)
app.add_typer(pipeline.app, name="pipeline")
