"""`moldau zookeeper`: run Apache ZooKeeper, for clusters of several brokers."""

import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Group, Option
from moldau.zookeeper.ensemble import Ensemble
from moldau.zookeeper.java import find_java

SIZE_MAX = 9

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
    Run ZooKeeper until it is told to stop. It needs Java, and the jars that come with PySpark.

    When all servers answer it prints `listening on HOST:PORT`, with a comma between servers. A server that ends is
    started again; its log is in DIR. SIGTERM and Ctrl-C stop them all. An ensemble of three goes on if one is killed.

    Examples:

      moldau zookeeper start

      moldau zookeeper start --ensemble 3 --port 2181 --data-dir /var/lib/zookeeper
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    return asyncio.run(_serve(Ensemble(find_java(classpath or None), data_dir, host, port, ensemble)))


async def _serve(ensemble: Ensemble) -> int:
    """Until a signal comes, also while the servers start."""
    loop, serving = asyncio.get_running_loop(), asyncio.ensure_future(_started_and_kept(ensemble))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # `nohup` ignores SIGHUP
            loop.add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    return 0


async def _started_and_kept(ensemble: Ensemble) -> None:
    await ensemble.start()
    try:
        print(f"listening on {','.join(str(server.place) for server in ensemble.servers)}", flush=True)
        await ensemble.keep()
    finally:
        await ensemble.stop()
