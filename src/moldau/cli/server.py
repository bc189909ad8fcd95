"""`moldau server start`: settings from a file and the command line, handed to the broker.

Read with argparse and not with the rest of the commands, which would cost a start more than the broker itself needs.
"""

import argparse
import re
import signal
from collections.abc import Mapping, Sequence
from typing import NoReturn

from moldau.errors import ConfigError

_EXAMPLES = """\
Settings have Kafka's names. The command line overrides the file. Without a file and without --host the broker
listens on localhost only; `--host 0.0.0.0` listens on every interface. When ready it prints `listening on HOST:PORT`;
SIGTERM and Ctrl-C stop it cleanly.

examples:
  moldau server start
  moldau server start --port 0 --data-dir /var/lib/moldau
  moldau server start server.properties --set num.partitions=4 --set log.retention.hours=24
"""
_LISTENER = re.compile(r"\s*([^:]+)://(.*):(\d*)\s*")
PORT_MAX = 65_535
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
DEFAULT_LISTENER = "PLAINTEXT://localhost:9092"


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument as one sentence."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (`{self.prog} --help` says more)")


def parser() -> argparse.ArgumentParser:
    options = Parser(
        "moldau server start",
        description="Start a broker and run it until SIGTERM or Ctrl-C.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    options.add_argument("file", nargs="?", metavar="FILE.properties", help="a properties file with Kafka's settings")
    options.add_argument("--host", help="the host of the first listener (localhost)")
    options.add_argument("--port", type=int, help="the port of the first listener; 0 takes a free one (9092)")
    options.add_argument("--data-dir", metavar="DIR", help="the folder of the log and the metadata (moldau-data)")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one setting; repeatable")
    options.add_argument(
        "--log-level",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="the log level of one part, from debug to error; moldau.groups=debug logs every answer about a group",
    )
    options.add_argument(
        "--registry-port",
        type=int,
        metavar="PORT",
        help="also run a schema registry, on this port of the broker's host; 0 takes a free one",
    )
    options.add_argument(
        "--console-port",
        type=int,
        metavar="PORT",
        help="also run the web console, on this port of the broker's host; 0 takes a free one",
    )
    options.add_argument(
        "--accept-empty",
        action="append",
        default=[],
        metavar="TOPIC-N",
        help="a lost partition (or a topic, or `all`) that starts empty; for one of several brokers",
    )
    return options


def properties_of(arguments: Sequence[str]) -> dict[str, str]:
    """The settings that the command line stands for, by Kafka's names. Raises `ConfigError`."""
    return _properties(parser().parse_args(arguments))


def _properties(given: argparse.Namespace) -> dict[str, str]:
    from moldau.config import older_names, read_properties
    from moldau.config.providers import resolved

    properties: dict[str, str] = {}
    if given.file is not None:
        properties = read_properties(given.file)
    for pair in given.set:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {pair!r} is not of the form NAME=VALUE")
        properties[name.strip()] = value.strip()
    properties = dict(resolved(properties))
    if given.port is not None and not 0 <= given.port <= PORT_MAX:
        raise ConfigError(f"--port must be 0 to {PORT_MAX}, not {given.port}")
    if given.data_dir is not None:
        if "," in given.data_dir:
            raise ConfigError("--data-dir names one folder; give several with --set log.dirs=DIR,DIR")
        if both := sorted({pair.partition("=")[0].strip() for pair in given.set} & {"log.dir", "log.dirs"}):
            raise ConfigError(f"--data-dir and --set {both[0]} both name the folders of the log: give one of them")
        properties.pop("log.dir", None)
        properties["log.dirs"] = given.data_dir
    older = older_names.listener(properties)
    if given.host is not None or given.port is not None or ("listeners" not in properties and older is None):
        listeners = properties.get("listeners", older or DEFAULT_LISTENER)
        controllers = properties.get("controller.listener.names", "CONTROLLER")
        properties["listeners"] = _listen(listeners, controllers, given.host, given.port)
    return properties


def _listen(listeners: str, controllers: str, host: str | None, port: int | None) -> str:
    """The listeners, with another host and port for the first that is not a controllers' listener."""
    controller_names = {name.strip().upper() for name in controllers.split(",")}
    chosen = []
    replaced = False
    for text in listeners.split(","):
        match = _LISTENER.fullmatch(text)
        if match is not None and not replaced and match[1].upper() not in controller_names:
            name = f"[{host}]" if host and ":" in host else host
            text = f"{match[1]}://{match[2] if host is None else name}:{match[3] if port is None else port}"
            replaced = True
        chosen.append(text)
    return ",".join(chosen)


def levels_of(pairs: Sequence[str]) -> Mapping[str, str]:
    """What `--log-level` says, by logger. Raises `ConfigError`."""
    levels: dict[str, str] = {}
    for pair in pairs:
        name, _, level = pair.partition("=")
        if name.partition(".")[0] != "moldau" or level.upper() not in LEVELS:
            raise ConfigError(
                f"--log-level {pair!r} is not of the form moldau.PART=LEVEL; levels are {', '.join(LEVELS).lower()}"
            )
        levels[name] = level.upper()
    return levels


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)


def start(arguments: Sequence[str]) -> int:
    """Run a broker until it is stopped; returns the exit code. A signal ends it cleanly from here on: at once while
    nothing is open yet, and as the broker does later."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    given = parser().parse_args(arguments)
    properties, levels = _properties(given), levels_of(given.log_level)
    from moldau.process import run

    beside = []
    for option, port in (("--registry-port", given.registry_port), ("--console-port", given.console_port)):
        if port is not None and not 0 <= port <= PORT_MAX:
            raise ConfigError(f"{option} must be 0 to {PORT_MAX}, not {port}")
    if given.registry_port is not None:
        from moldau.cli.beside.schema_registry import registry_beside

        beside.append(registry_beside(given.registry_port))
    if given.console_port is not None:
        from moldau.cli.beside.console import console_beside

        beside.append(console_beside(given.console_port, given.registry_port or 0))
    return run(properties, levels, given.accept_empty, beside)
