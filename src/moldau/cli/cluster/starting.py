"""`moldau cluster start`: run a cluster of brokers on this machine."""

import asyncio
import re
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Option, UsageError
from moldau.cli.options import pairs
from moldau.cli.until_signal import until_signal
from moldau.config import broker_config, read_properties
from moldau.notices import log_to_stderr
from moldau.zookeeper.ensemble import Ensemble
from moldau.zookeeper.java import find_java
from moldau.zookeeper.local_cluster import ZOOKEEPER_FOLDER, LocalCluster

OF_ONE_BROKER = {"broker.id", "node.id", "zookeeper.connect", "log.dir", "log.dirs"}
BROKERS_MAX = 9
PORT_MAX = 65_535 - BROKERS_MAX
FIRST_PORT = 9092
_LISTENER = re.compile(r"\s*[\w.-]+://(\[[^]]*\]|[^:,]*):(\d{1,5})\s*(?:,|$)", re.ASCII)


def start(
    file: Annotated[
        Path | None, Argument("[FILE.properties]", help="Settings of all brokers, as for server start.")
    ] = None,
    brokers: Annotated[int, Option(min=1, max=BROKERS_MAX, help="The number of brokers.")] = 3,
    host: Annotated[
        str | None, Option(help="The host that clients connect to. Without it that of `listeners`, else localhost.")
    ] = None,
    port: Annotated[
        int | None,
        Option(
            min=0,
            max=PORT_MAX,
            help="The port of the first broker; 0 takes free ones. Without it that of `listeners`, else 9092.",
        ),
    ] = None,
    data_dir: Annotated[Path, Option(metavar="DIR", help="The folder of all data.")] = Path("moldau-cluster"),
    settings: Annotated[
        list[str] | None, Option("--set", metavar="NAME=VALUE", help="A setting of all brokers; repeatable.")
    ] = None,
    embedded: Annotated[bool, Option("--embedded", help="Use a file in DIR instead of ZooKeeper.")] = False,
) -> int:
    """
    Run a cluster on this machine until SIGTERM or Ctrl-C: ZooKeeper and several brokers, each a process of its own. It
    needs Java, the jars that come with PySpark, and the extra `cluster`; with --embedded, none of them.

    When all brokers serve it prints `listening on HOST:PORT,HOST:PORT,...`. A process that ends is started again; the
    logs are in DIR.

    Examples:

      moldau cluster start

      moldau cluster start --embedded

      moldau cluster start server.properties

      moldau cluster start --brokers 5 --data-dir /var/lib/moldau --set num.partitions=5
    """
    log_to_stderr()
    given, of_file = pairs(settings or [], "--set"), {} if file is None else read_properties(str(file))
    for name in sorted((given.keys() | of_file.keys()) & OF_ONE_BROKER):
        where = f"--set {name}" if name in given else f"{name} in {file}"
        raise UsageError(f"{where} belongs to one broker: this command chooses a value for each of its brokers")
    listeners = given.get("listeners", of_file.get("listeners", ""))
    host, port = first_address(listeners, host, port)
    broker_config({**of_file, **given, "broker.id": "1"})  # refuses what no broker takes, before anything is started
    zookeeper = None if embedded else Ensemble(find_java(), data_dir / ZOOKEEPER_FOLDER, "localhost", 0, 1)
    return asyncio.run(until_signal(LocalCluster(zookeeper, data_dir, host, port, brokers, settings or (), file)))


def first_address(listeners: str, host: str | None, port: int | None) -> tuple[str, int]:
    """Where the first broker listens: at `host` and `port` where they are given, else where the first listener says. A
    port that leaves no room for the other brokers' raises `UsageError`."""
    named = _LISTENER.match(listeners)
    if port is None:
        port = int(named[2]) if named else FIRST_PORT
        if port > PORT_MAX:
            raise UsageError(
                f"listeners names port {port}, and the ports behind it are for the other brokers: at most {PORT_MAX}"
            )
    return host or (named[1].strip("[]") if named else "") or "localhost", port
