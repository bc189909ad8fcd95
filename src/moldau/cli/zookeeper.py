"""`moldau zookeeper`: run Apache ZooKeeper, for clusters of several brokers, and show what is in it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.options import Json, pairs
from moldau.cli.output import print_json
from moldau.cli.until_signal import until_signal
from moldau.errors import ConfigError, StorageError
from moldau.notices import log_to_stderr
from moldau.zookeeper.ensemble import Ensemble
from moldau.zookeeper.java import find_java

if TYPE_CHECKING:
    from moldau.metadata_store.store import Node

SIZE_MAX = 9
CONNECT_S = 10.0

app = Group("zookeeper")


@app.command()
def start(
    host: Annotated[str, Option(help="The host that clients connect to.")] = "localhost",
    port: Annotated[
        int, Option(min=0, max=65_535 - SIZE_MAX, help="The port of the first server; 0 takes free ones.")
    ] = 2181,
    data_dir: Annotated[Path, Option(metavar="DIR", help="The folder of the data.")] = Path("moldau-zookeeper"),
    ensemble: Annotated[int, Option(min=1, max=SIZE_MAX, help="The number of servers.")] = 1,
    classpath: Annotated[str, Option(metavar="JARS", help="ZooKeeper's jars, instead of those of PySpark.")] = "",
) -> int:
    """
    Run ZooKeeper until SIGTERM or Ctrl-C. It needs Java, and the jars that come with PySpark.

    When all servers answer it prints `listening on HOST:PORT`, with a comma between servers. A server that ends is
    started again; its log is in DIR. An ensemble of three continues if one is killed.

    Examples:

      moldau zookeeper start

      moldau zookeeper start --ensemble 3 --port 2181 --data-dir /var/lib/zookeeper
    """
    log_to_stderr()
    return asyncio.run(until_signal(Ensemble(find_java(classpath or None), data_dir, host, port, ensemble)))


@app.command()
def show(
    path: Annotated[str, Argument("PATH", help="The path of a node, such as /brokers/ids.")],
    connect: Annotated[
        str, Option(metavar="HOST:PORT,...", help="HOST:PORT,HOST:PORT/CHROOT of ZooKeeper; or file:PATH.")
    ] = "localhost:2181",
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="A setting `zookeeper.*`, as brokers have it; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Show one node of ZooKeeper: its data, its version and its children. Needs the extra `cluster`.

    As the setting `zookeeper.connect`, --connect may also name a file that several brokers share. TLS is set by
    `--set zookeeper.ssl.client.enable=true` and what belongs to it; the user is that of the JAAS file that KAFKA_OPTS
    in the environment names.

    Examples:

      moldau zookeeper show /

      moldau zookeeper show /brokers/ids --connect zk1:2181,zk2:2181/kafka --json
    """
    node, children = asyncio.run(_read(path, connect, pairs(settings or [], "--set")))
    if as_json:
        text = node.data.decode(errors="replace")
        owner = {"session": node.owner} if node.owner else {}
        print_json({"path": path, "data": text, "version": node.version, "children": children, **owner})
        return
    print(f"{path}: version {node.version}" + (f", of session {node.owner:#x}" if node.owner else ""))
    if node.data:
        print(node.data.decode(errors="replace"))
    for name in children:
        print(f"{path.rstrip('/')}/{name}")


async def _read(path: str, connect: str, settings: Mapping[str, str]) -> tuple["Node", list[str]]:
    from moldau.metadata_store.opening import session_in
    from moldau.metadata_store.store import children_of, node_at
    from moldau.runtime import Runtime

    session = await session_in(connect, CONNECT_S, Runtime(), settings=settings)
    try:
        node = await session.read(node_at(path))
        if node is None:
            raise StorageError(f"{connect} has no node {path}")
        return node, await session.read(children_of(path))
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from None
    finally:
        await session.close()
