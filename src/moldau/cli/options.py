"""Options that several commands share, and what they turn into."""

import dataclasses
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from moldau.cli.command_line import Option, Parameter
from moldau.errors import ConfigError

BOOTSTRAP = "localhost:9092"
CONNECT_MS = 5_000
_BROKERS = "bootstrap_server"
_ESCAPE = re.compile(r"\\(.)")
_MEANT = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def reachable(bootstrap_server: str) -> str:
    """Check that a broker answers: a command fails at once if none does; a long-running client would wait. Each command
    with a `BootstrapServer` calls it, after it has checked its other options."""
    import asyncio

    from moldau.client.routing import router_of
    from moldau.client.settings import ClientSettings, read_settings

    settings = read_settings(ClientSettings, "The command", (bootstrap_server,), {})
    brief = dataclasses.replace(settings, socket_connection_setup_timeout_ms=CONNECT_MS)

    async def dial() -> None:
        async with router_of(brief) as router:
            await router.any()

    asyncio.run(dial())
    return bootstrap_server


def brokers_of(zookeeper: str, bootstrap_server: str, settings: dict[str, Any]) -> str:
    """The brokers of a command's client, of which one answers, with the client's `settings`. If a ZooKeeper is given,
    they are those that are registered there, and `settings` name it in their place. Raises `ConfigError`,
    `KafkaError`."""
    from moldau.client.security.brokers import Brokers

    if not zookeeper:
        return reachable(Brokers(bootstrap_server, settings))
    brokers = Brokers(_registered(zookeeper, settings), dict(settings))
    settings["zookeeper.connect"] = zookeeper
    del settings["bootstrap.servers"]
    return brokers


def _registered(connect: str, settings: Mapping[str, Any]) -> str:
    import asyncio

    from moldau.client.routing import router_of
    from moldau.client.settings import read_settings
    from moldau.client.zookeeper.zookeeper_settings import ZooKeeperSettings

    given = {name: value for name, value in settings.items() if name != "bootstrap.servers"}
    found = read_settings(ZooKeeperSettings, "The command", ({**given, "zookeeper.connect": connect},), {})
    brief = dataclasses.replace(found, socket_connection_setup_timeout_ms=CONNECT_MS)

    async def look() -> str:
        async with router_of(brief) as router:
            assert router.registry is not None
            addresses = await router.registry.addresses()
            await router.any()
            return ",".join(map(str, addresses))

    return asyncio.run(look())


ZooKeeper = Annotated[
    str,
    Option(
        metavar="HOST:PORT/PATH",
        help="The ZooKeeper where brokers and groups are registered, instead of --bootstrap-server; or file:PATH.",
    ),
]
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

COMMAND_CONFIG = Parameter(
    "command_config",
    Option(
        "--command-config",
        envvar="MOLDAU_COMMAND_CONFIG",
        metavar="FILE",
        help="A properties file with settings of the client, as Java's has them; options win over it.",
    ),
    Path,
    False,
    None,
)
"""An option of each command that has a `BootstrapServer`."""
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


def with_command_config(parameters: list[Parameter]) -> list[Parameter]:
    """The parameters of a command; with `--command-config` if it connects to brokers."""
    return [*parameters, COMMAND_CONFIG] if any(one.name == _BROKERS for one in parameters) else parameters


def connecting(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a command's parameters: its brokers carry the settings of `--command-config`. Raises
    `ConfigError`."""
    file = values.pop(COMMAND_CONFIG.name, None)
    if file is not None:
        from moldau.client.security.brokers import Brokers, settings_in

        brokers = values[_BROKERS] = Brokers(values[_BROKERS], {}, str(file.absolute()))
        settings_in(brokers)
    return values


def client_settings(bootstrap_server: str, properties: list[str] | None, given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a client, with Kafka's names: those that the brokers carry, those of `--command-property`, and
    `given`, whose None stands for an option that was left out. Raises `ConfigError`."""
    from moldau.client.security.brokers import OF_JAVA, settings_in

    settings = {**settings_in(bootstrap_server), **pairs(properties or [], "--command-property")}
    settings |= {name.replace("_", "."): value for name, value in given.items() if value is not None}
    settings = {name: value for name, value in settings.items() if name not in OF_JAVA}
    return {**settings, "bootstrap.servers": str(bootstrap_server)}


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


def text_in(file: Path) -> str:
    """The text of a file, or of standard input for `-`. Raises `ConfigError` if it is not UTF-8, `OSError`."""
    is_input = str(file) == "-"
    try:
        return (sys.stdin.buffer.read() if is_input else file.read_bytes()).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{'standard input' if is_input else file} is not UTF-8 text") from None


def unescaped(text: str) -> str:
    """A separator or format as it is meant: \\t, \\n, \\r, \\0 and \\\\ stand for what they do in Python."""
    return _ESCAPE.sub(lambda m: _MEANT.get(m[1], m[0]), text)
