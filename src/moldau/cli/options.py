"""Options that several commands share, and what they turn into."""

import re
from pathlib import Path
from typing import Annotated, Any

from moldau.cli.command_line import Option
from moldau.errors import ConfigError

BOOTSTRAP = "localhost:9092"
_ESCAPE = re.compile(r"\\(.)")
_MEANT = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def reachable(bootstrap_server: str) -> str:
    """Check that a broker answers: a command fails at once if none does; a long-running client would wait. Each command
    with a `BootstrapServer` calls it, after it has checked its other options."""
    import asyncio

    from moldau.client.routing import Router

    async def dial() -> None:
        async with Router(bootstrap_server, "moldau", connect_timeout_ms=5_000) as router:
            await router.any()

    asyncio.run(dial())
    return bootstrap_server


BootstrapServer = Annotated[
    str,
    Option(
        "--bootstrap-server",
        "-b",
        envvar="MOLDAU_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="The brokers to connect to first, separated by commas.",
    ),
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]

CommandConfig = Annotated[
    Path | None,
    Option("--command-config", help="A properties file with settings of the client; options win over it."),
]
CommandProperty = Annotated[
    list[str] | None,
    Option("--command-property", metavar="NAME=VALUE", help="A setting of the client; repeatable."),
]

StorageOption = Annotated[
    list[str] | None,
    Option("--storage-option", metavar="KEY=VALUE", help="An option of the object store of a URL; repeatable."),
]

ChangedConfig = Annotated[
    list[str] | None, Option("--config", metavar="NAME=VALUE", help="A setting to change; repeatable.")
]
DeletedConfig = Annotated[
    list[str] | None,
    Option("--delete-config", metavar="NAME", help="A setting to reset to its default; repeatable."),
]


def changes(changed: list[str] | None, deleted: list[str] | None) -> dict[str, str | None]:
    """The changes of the two options above: name -> value, None to delete it. Raises `ConfigError`."""
    wanted: dict[str, str | None] = dict(pairs(changed or [], "--config"))
    for name in deleted or []:
        if name in wanted:
            raise ConfigError(f"{name} is both in --config and in --delete-config")
        wanted[name] = None
    return wanted


def client_settings(
    bootstrap_server: str, file: Path | None, properties: list[str] | None, given: dict[str, Any]
) -> dict[str, Any]:
    """The settings of a client, with Kafka's names: those of the file, of the two options above, and `given`, whose
    None stands for an option that was left out. Commands write and read bytes, so serializers of a Java program are
    left out. Raises `ConfigError`."""
    settings: dict[str, Any] = {}
    if file is not None:
        from moldau.config.properties import read_properties

        settings |= read_properties(file)
    settings |= pairs(properties or [], "--command-property")
    for part in ("key", "value"):
        settings.pop(f"{part}.serializer", None)
        settings.pop(f"{part}.deserializer", None)
    settings |= {name.replace("_", "."): value for name, value in given.items() if value is not None}
    return {**settings, "bootstrap.servers": bootstrap_server}


def pairs(texts: list[str], option: str) -> dict[str, str]:
    """`name=value` for each. Raises `ConfigError`."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {text!r} is not of the form NAME=VALUE")
        values[name] = value
    return values


def partitioning(text: str) -> str:
    """How tables are to be partitioned. Raises `ConfigError`."""
    from moldau.pipeline.tables.columns import PARTITION_COLUMNS

    if text not in PARTITION_COLUMNS:
        raise ConfigError(f"--partition-by {text!r} is none of {', '.join(PARTITION_COLUMNS)}")
    return text


def unescaped(text: str) -> str:
    """A separator or format as it is meant: \\t, \\n, \\r, \\0 and \\\\ stand for what they do in Python."""
    return _ESCAPE.sub(lambda m: _MEANT.get(m[1], m[0]), text)
