"""`moldau server format`: make the metadata of a broker, with users, before its first start."""

from typing import Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.options import Json


def format_server(
    file: Annotated[str, Argument("[FILE.properties]", help="The broker's settings, as for server start.")] = "",
    add_scram: Annotated[
        list[str] | None,
        Option(
            "--add-scram",
            metavar="MECHANISM=[name=NAME,password=PASSWORD]",
            help="A user that logs in by SCRAM; repeatable. passwordfile=FILE reads the password from a file.",
        ),
    ] = None,
    data_dir: Annotated[
        str | None, Option("--data-dir", metavar="DIR", help="The folder of the log and the metadata.")
    ] = None,
    setting: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="One setting of the broker; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Make the metadata of a broker, or of the cluster that it begins, with users that can log in at its first start.
    Nothing is deleted: a broker that was started before, and is stopped, gets the users too.

    Examples:

      moldau server format server.properties --add-scram 'SCRAM-SHA-256=[name=admin,password=admin-secret]'
    """
    from moldau.cli.server.formatting import format_broker

    format_broker(file, add_scram or [], data_dir, setting or [], as_json=as_json)
