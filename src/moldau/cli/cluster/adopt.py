"""`moldau cluster adopt`: a broker that was alone becomes the first of a cluster of several."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import moldau.config
from moldau.cli.command_line import Argument, Option
from moldau.cli.log.files import FilesOnly
from moldau.cli.options import Json, pairs
from moldau.cli.output import note, print_json
from moldau.cluster.adopting import has_cluster, write_cluster
from moldau.errors import ConfigError, StorageError
from moldau.files.cluster_adoption import ClusterAdoption, LoneBroker
from moldau.metadata_store.store import MetadataStore, StoreConflict
from moldau.names import counted, how_to_install
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.config import BrokerConfig


def adopt(
    folders: Annotated[list[Path], Argument("DIR...", help="Every log folder of one stopped broker.")],
    zookeeper: Annotated[
        str,
        Option(
            metavar="HOST:PORT,.../CHROOT",
            help="HOST:PORT/CHROOT of the new cluster's ZooKeeper, where nothing exists yet; or file:PATH, a new file.",
        ),
    ],
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="A setting `zookeeper.*`, as the broker will have it; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """
    Make a stopped single broker the first broker of a new cluster. It keeps its topics, records, settings, groups and
    their offsets, transactions, and producer ids. Needs the extra `cluster`, except with file:PATH.

    Its metadata goes to ZooKeeper, or to the file, which must not have another cluster. From then on the broker starts
    with `zookeeper.connect`, and more brokers can join. If the command is interrupted, run it again.

    Examples:

      moldau cluster adopt moldau-data --zookeeper localhost:2181

      moldau cluster adopt /disk1/moldau /disk2/moldau --zookeeper zk1:2181,zk2:2181,zk3:2181/moldau
    """
    with ClusterAdoption(folders, FilesOnly()) as adoption:
        lone = adoption.read(zookeeper)
        if lone is None:
            note("these folders were adopted before")
            if as_json:
                print_json({"adopted": False})
            return
        asyncio.run(_write(lone, zookeeper, settings or (), lambda: adoption.note(zookeeper)))
        adoption.finish()
    topics, cluster_id = lone.image.topics.values(), lone.image.cluster_id
    partitions = sum(len(one.partitions) for one in topics)
    if as_json:
        ours = {"cluster_id": cluster_id, "broker": lone.node_id, "topics": len(topics), "partitions": partitions}
        print_json({"adopted": True, **ours})
    else:
        what = f"{counted(len(topics), 'topic')}, {counted(partitions, 'partition')}"
        print(f"cluster {cluster_id}: broker {lone.node_id} with {what}")
    dirs = ",".join(str(folder) for folder in folders)
    note(
        f"start it with: moldau server start --set log.dirs={dirs} --set broker.id={lone.node_id} "
        f"--set zookeeper.connect={zookeeper}"
    )


async def _write(lone: LoneBroker, connect: str, settings: Sequence[str], before_last: Callable[[], None]) -> None:
    """Write the metadata into ZooKeeper, unless they are there already. Raises `ConfigError`, `StorageError`."""
    needed = {"zookeeper.connect": connect, "broker.id": str(lone.node_id)}
    config, warnings = moldau.config.broker_config({**pairs(list(settings), "--set"), **needed})
    for warning in warnings:
        note(f"warning: {warning}")
    session = await _opened(config)
    try:
        if not (lone.was_noted and await has_cluster(session, lone.image.cluster_id)):
            await write_cluster(session, lone.image, lone.node_id, lone.producer_id, before_last)
    except StoreConflict as conflict:
        raise StorageError(f"another process is changing {connect} ({conflict}): run it again") from None
    finally:
        await session.close()


async def _opened(config: "BrokerConfig") -> MetadataStore:
    from moldau.metadata_store.shared_file_session import SharedFileSession, shared_file

    file = shared_file(config)
    if file is not None:
        return await SharedFileSession.open(file, config.zookeeper_session_timeout_ms / 1000, Runtime())
    try:
        from moldau.metadata_store.zookeeper import ZooKeeperSession
        from moldau.metadata_store.zookeeper_access import access_of
    except ImportError:
        raise ConfigError(f"this needs kazoo: {how_to_install('cluster')}") from None
    return await ZooKeeperSession.open(access_of(config, os.environ), Runtime())
