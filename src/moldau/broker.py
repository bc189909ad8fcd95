"""One broker, assembled on one screen: every part is built here, started in order, and taken down in reverse.

Start-up: lock the folder, open the metadata, recover the logs and the producers' state, listen, load the groups, and
only then accept; the line `listening on HOST:PORT` says so. A clean stop leaves the marker that lets the next start
skip recovery.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from moldau.cluster.cluster import Cluster
from moldau.cluster.embedded import FILE_NAME as STORE_FILE
from moldau.cluster.embedded import EmbeddedStore
from moldau.cluster.image import Image
from moldau.cluster.store import MetadataStore
from moldau.config import BrokerConfig, broker_config
from moldau.coordinators.coordinator import GroupCoordinator
from moldau.coordinators.exchange import GroupSettings
from moldau.errors import ConfigError, KafkaError, MoldauError, StorageError
from moldau.handlers.dispatch import Dispatch
from moldau.handlers.fetch import FetchHandler
from moldau.handlers.produce import ProduceHandler
from moldau.handlers.table import handlers
from moldau.log.folder import LogFolder
from moldau.names import OFFSETS_TOPIC, BrokerId
from moldau.net.server import Limits, Server
from moldau.replication.internal_topic import InternalTopic
from moldau.replication.partitions import Partitions
from moldau.replication.upkeep import Upkeep
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)

MINUTE_MS = 60_000


class Broker:
    """`store` is the cluster's metadata; without one it is embedded in the data folder. Belongs to the loop it starts
    on."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, store: MetadataStore | None = None):
        self.config = config
        self.runtime = runtime
        self.port = 0
        self.failed: asyncio.Event = asyncio.Event()
        """Set when the last log folder is lost: there is nothing left to serve."""
        self._store = store

    async def start(self) -> None:
        """Raises `StorageError`, `ConfigError`, `OSError` (the address is taken); whatever was begun is undone then."""
        async with contextlib.AsyncExitStack() as undo:
            await self._start(undo)
            self._undo = undo.pop_all()

    async def _start(self, undo: contextlib.AsyncExitStack) -> None:
        config, runtime = self.config, self.runtime
        local = BrokerId(config.node_id)
        folder = self.folder = LogFolder(Path(config.data_folder).absolute(), runtime)
        folder.on_failure = lambda _: self.failed.set()
        undo.push(lambda kind, *_: folder.close(clean=False) if kind else None)
        store = self._store or EmbeddedStore(folder.path)
        cluster = self.cluster = await Cluster.open(
            store, config, runtime, clean=folder.clean, cluster_id=folder.meta.get("cluster.id")
        )
        undo.push_async_callback(cluster.close)
        folder.claim(cluster.image.cluster_id, config.node_id)

        partitions = self.partitions = Partitions(local, cluster, folder, runtime)
        undo.push_async_callback(self._close_folder)
        for name in await partitions.load():
            if not name.startswith(STORE_FILE):
                logger.warning("%s in the data folder is no partition of this cluster; it is left alone", name)

        offsets = InternalTopic(OFFSETS_TOPIC, partitions, config.offsets_load_buffer_size, runtime)
        groups = self.groups = GroupCoordinator(_group_settings(config), offsets, runtime, self._offsets_partitions)
        undo.push_async_callback(groups.stop)
        self._lead_groups(cluster.image, [OFFSETS_TOPIC])
        cluster.subscribe(self._follow)
        cluster.subscribe(self._forget_topics)

        upkeep = Upkeep(cluster, partitions, folder, config, runtime)
        undo.push_async_callback(upkeep.stop)
        dispatch = Dispatch(
            ProduceHandler(partitions, runtime),
            FetchHandler(partitions, config.fetch_max_bytes),
            handlers(cluster, partitions, groups),
        )
        self.server = Server(dispatch, _limits(config))
        undo.push_async_callback(self.server.stop)
        listener = config.listener
        self.port = await self.server.start(listener.host or None, listener.port)
        advertised = config.advertised_listener
        await cluster.register(advertised.host or _reachable(listener.host), advertised.port or self.port)
        upkeep.start()
        await self.server.serve()

    async def _follow(self, image: Image, names: Sequence[str]) -> None:
        """The partitions first: the group coordinator reads its own from them."""
        await self.partitions.follow(image, names)
        self._lead_groups(image, names)

    def _lead_groups(self, image: Image, names: Sequence[str]) -> None:
        if OFFSETS_TOPIC in names:
            topic = image.topics.get(OFFSETS_TOPIC)
            leaders = [partition.leader for partition in topic.partitions] if topic else []
            self.groups.lead_only(number for number, leader in enumerate(leaders) if leader == self.config.node_id)

    def _forget_topics(self, image: Image, names: Sequence[str]) -> None:
        gone = [name for name in names if name not in image.topics]
        if gone:
            self.groups.forget_topics(gone)

    def _offsets_partitions(self) -> int:
        topic = self.cluster.image.topics.get(OFFSETS_TOPIC)
        return len(topic.partitions) if topic else self.config.offsets_topic_num_partitions

    async def _close_folder(self) -> None:
        watermarks = self.partitions.high_watermarks()
        await self.runtime.run(lambda: self.folder.close(clean=True, high_watermarks=watermarks))

    async def stop(self) -> None:
        """A clean stop: no more requests, groups down, logs flushed and closed, the marker written."""
        await self._undo.aclose()


def _reachable(host: str) -> str:
    """What clients are told when the listener names no host they could reach."""
    return host if host not in ("", "0.0.0.0", "::") else socket.gethostname()


def _limits(config: BrokerConfig) -> Limits:
    return Limits(
        config.socket_request_max_bytes,
        config.socket_send_buffer_bytes,
        config.socket_receive_buffer_bytes,
        config.connections_max_idle_ms,
        config.max_connections,
        config.max_connections_per_ip,
    )


def _group_settings(config: BrokerConfig) -> GroupSettings:
    return GroupSettings(
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
    )


async def serve(config: BrokerConfig) -> int:
    """Run a broker until SIGTERM, Ctrl-C or the loss of its disk. Returns the exit code."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    broker = Broker(config, Runtime())
    await broker.start()
    gc.collect()
    gc.freeze()
    print(f"listening on {config.listener.host or 'localhost'}:{broker.port}", flush=True)
    ends = [asyncio.ensure_future(asked.wait()), asyncio.ensure_future(broker.failed.wait())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await broker.stop()
    return 1 if broker.failed.is_set() else 0


def run(properties: Mapping[str, str]) -> int:
    """`moldau server start` with these settings. Returns the exit code; what is wrong is said in one sentence."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        config, warnings = broker_config(properties)
        for warning in warnings:
            logger.warning("%s", warning)
        try:
            import uvloop
        except ImportError:
            return asyncio.run(serve(config))
        return uvloop.run(serve(config))
    except (ConfigError, StorageError, KafkaError, MoldauError) as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.strerror or error}: {error.filename or properties.get('listeners', '')}", file=sys.stderr)
    return 1
