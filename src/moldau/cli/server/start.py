"""`moldau server start`: settings from a file and the command line, handed to the broker.

It is reached without the table of all commands (`app.py`): the time until a broker listens counts.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from typing import Annotated, NoReturn

from moldau.cli.command_line import Argument, Option, UsageError
from moldau.errors import ConfigError

_LISTENER = re.compile(r"\s*([^:]+)://(.*):(\d*)\s*")
PORT_MAX = 65_535
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
DEFAULT_LISTENER = "PLAINTEXT://localhost:9092"


def start(
    file: Annotated[str | None, Argument("[FILE.properties]", help="A properties file with Kafka's settings.")] = None,
    host: Annotated[str | None, Option(metavar="HOST", help="The host of the first listener.")] = None,
    port: Annotated[
        int | None, Option(metavar="PORT", min=0, max=PORT_MAX, help="Its port; 0 takes a free one.")
    ] = None,
    data_dir: Annotated[
        str | None, Option(metavar="DIR", help="The folder of the log and the metadata; else moldau-data.")
    ] = None,
    settings: Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help="A setting; repeatable.")] = None,
    log_level: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=LEVEL",
            help="The log level of one part, from debug to error; repeatable. moldau.groups=debug logs every answer "
            "about a group.",
        ),
    ] = None,
    registry_port: Annotated[
        int | None, Option(metavar="PORT", min=0, max=PORT_MAX, help="Also run a schema registry, on this port.")
    ] = None,
    console_port: Annotated[
        int | None, Option(metavar="PORT", min=0, max=PORT_MAX, help="Also run the web console, on this port.")
    ] = None,
    accept_empty: Annotated[
        list[str] | None,
        Option(
            metavar="TOPIC-N",
            help="A lost partition (or a topic, or `all`) that starts empty; for one of several brokers; repeatable.",
        ),
    ] = None,
) -> int:
    """
    Start a broker and run it until SIGTERM or Ctrl-C. It prints `listening on HOST:PORT` when it is ready.

    Settings have Kafka's names; the page settings.md of the documentation explains all of them, and `moldau configs
    describe broker 1 --all` lists those of a running broker. Options win over the file. Without a file and without
    --host the broker listens on localhost:9092 only; `--host 0.0.0.0` listens on every interface.

    Examples:

      moldau server start

      moldau server start --port 0 --data-dir /var/lib/moldau

      moldau server start server.properties --set num.partitions=4
    """
    properties, levels = properties_of(file, host, port, data_dir, settings or ()), levels_of(log_level or ())
    from moldau.process import run

    beside = []
    if registry_port is not None:
        from moldau.cli.beside.schema_registry import registry_beside

        beside.append(registry_beside(registry_port))
    if console_port is not None:
        from moldau.cli.beside.console import console_beside

        beside.append(console_beside(console_port, registry_port or 0))
    return run(properties, levels, accept_empty or [], beside)


def properties_of(
    file: str | None = None,
    host: str | None = None,
    port: int | None = None,
    data_dir: str | None = None,
    settings: Sequence[str] = (),
) -> dict[str, str]:
    """The settings that the command line stands for, by Kafka's names. Raises `ConfigError`."""
    from moldau.config import older_names, read_properties
    from moldau.config.providers import resolved

    properties: dict[str, str] = {}
    if file is not None:
        properties = read_properties(file)
    for pair in settings:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {pair!r} is not of the form NAME=VALUE")
        properties[name.strip()] = value.strip()
    properties = dict(resolved(properties))
    if data_dir is not None:
        if "," in data_dir:
            raise ConfigError("--data-dir names one folder; give several with --set log.dirs=DIR,DIR")
        if both := sorted({pair.partition("=")[0].strip() for pair in settings} & {"log.dir", "log.dirs"}):
            raise ConfigError(f"--data-dir and --set {both[0]} both name the folders of the log: give one of them")
        properties.pop("log.dir", None)
        properties["log.dirs"] = data_dir
    older = older_names.listener(properties)
    if host is not None or port is not None or ("listeners" not in properties and older is None):
        listeners = properties.get("listeners", older or DEFAULT_LISTENER)
        controllers = properties.get("controller.listener.names", "CONTROLLER")
        properties["listeners"] = _listen(listeners, controllers, host, port)
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


def run_broker(arguments: Sequence[str]) -> int:
    """Run `start` with this command line; returns the exit code. A signal ends it cleanly from here on: at once while
    nothing is open yet, and as the broker does later. Raises `ConfigError`, also for a wrong command line."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    from moldau.cli.running import run_command

    try:
        return run_command(start, "moldau server start", arguments)
    except UsageError as wrong:
        raise ConfigError(str(wrong)) from None
