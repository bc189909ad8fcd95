"""One broker, assembled on one screen: every part is built here, started in order, and taken down in reverse.

It runs on any event loop and `Runtime`, also simulated ones; `process.py` runs it as a process of its own.

Start-up: lock the folder, open the metadata, recover the logs and the producers' state, listen, load the groups, and
only then accept. A clean stop leaves the marker that lets the next start skip recovery.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.cluster import Cluster
from moldau.cluster.copies import Copies
from moldau.cluster.opening import open_embedded
from moldau.cluster.state.image import Endpoint, Image
from moldau.config import BrokerConfig
from moldau.config.listeners import bound_host
from moldau.coordinators.assembly import Coordinators
from moldau.descriptors import share_out
from moldau.errors import MoldauError, StartInterrupted, StorageError
from moldau.handlers.table import BrokerParts, FollowerParts, Handlers
from moldau.handlers.telemetry.lazily import LazyTelemetry
from moldau.log.compaction.cleaner import Candidate, Cleaner
from moldau.log.folders.accepting import AcceptedNames
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import LogFolders
from moldau.metadata_store.embedded import FILE_NAME as STORE_FILE
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.metadata_store.store import MetadataStore
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, BrokerId
from moldau.net.limits import Limits, limits_of
from moldau.net.ports import Connected
from moldau.net.server import Server
from moldau.net.watchdog import Watchdog
from moldau.protocol.codec import request_name
from moldau.replication.replicas import Replicas
from moldau.replication.upkeep import Upkeep
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate
from moldau.requests.urgency import is_urgent
from moldau.runtime import Runtime
from moldau.turns import Turns

if TYPE_CHECKING:
    from moldau.cluster.joined import JoinedCluster
    from moldau.cluster.membership import SharedStore
    from moldau.handlers.security.guards import Guards
    from moldau.handlers.security.quota_guard import QuotaGuard
    from moldau.metrics.endpoint import MetricsEndpoint
    from moldau.replication.exchange import ReplicaExchange
    from moldau.replication.throttling import Throttles

logger = logging.getLogger(__name__)


class Broker:
    """`store` is a session in the store of the cluster's metadata; without one they are embedded in a data folder.
    `shared` is the store of a cluster that the broker joins as one of several. `descriptors` is how many files and
    sockets may be open together, None if they need not be counted. `gate` is passed by every request. `accept_empty`
    names lost partitions of one of several brokers that may start empty: TOPIC-N, TOPIC, or `all`. Belongs to the loop
    it starts on."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        store: MetadataStore | None = None,
        descriptors: int | None = None,
        gate: Gate | None = None,
        shared: "SharedStore | None" = None,
        accept_empty: Collection[str] = (),
    ):
        self.config = config
        self.runtime = runtime
        self.ports: dict[str, int] = {}
        """The port of each listener that is open, by the listener's name, in the order of the settings."""
        self.failed: asyncio.Event = asyncio.Event()
        """Set when the last log folder, or the folder with the metadata, has failed: the broker cannot serve anything
        any more."""
        self._store = store
        self._embedded: EmbeddedStore | None = None
        self._shared = shared
        self._accept_empty = AcceptedNames(accept_empty)
        self._joined: JoinedCluster | None = None
        self._throttles: Throttles | None = None
        self._guards: Guards | None = None
        self._quotas: QuotaGuard | None = None
        self.metrics: MetricsEndpoint | None = None
        self.cluster: Cluster
        self._gate = gate
        self._shares = share_out(descriptors)
        self._loaded = False
        self._interrupted = self._cut_short = False
        self._loading: LogFolders | None = None
        self._joining: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Raises `StorageError`, `ConfigError`, `OSError` (the address is taken), `StartInterrupted`; everything that
        was started is undone first."""
        async with contextlib.AsyncExitStack() as undo:
            await self._open(undo)
            if self._interrupted:
                raise StartInterrupted("the broker was asked to stop before it listened")
            await self._serve(undo)
            self._undo = undo.pop_all()

    async def work_stopped(self, work: Callable[[Cluster], Awaitable[None]]) -> None:
        """Open the stored state, do this work, and close it again; nothing is served. Raises as `start`."""
        async with contextlib.AsyncExitStack() as undo:
            await self._open(undo)
            await work(self.cluster)

    def interrupt(self) -> None:
        """Stop before `start` has returned: `start` raises `StartInterrupted`, at once if it waits for the cluster's
        store, or once the partitions being opened are open; or continues if no long step is left."""
        self._interrupted = True
        if self._joining is not None:
            self._joining.cancel()
        if self._loading is not None:
            self._loading.interrupt()

    async def _open(self, undo: contextlib.AsyncExitStack) -> None:
        """Open the stored state: the folders, the metadata, the partitions."""
        config, runtime = self.config, self.runtime
        loop = asyncio.get_running_loop()
        if config.is_guarded:
            from moldau.handlers.security.guards import Guards  # a broker without security needs none of it

            self._guards = await runtime.run(partial(Guards, config, runtime, self._shared is None))
            undo.push_async_callback(self._guards.close)
        paths = [Path(path).absolute() for path in config.data_folders]
        folders = self.folders = LogFolders(
            paths, runtime, self._shares.open_files, self._shares.held, of_several=self._shared is not None
        )
        undo.push_async_callback(self._close_folders)
        folders.check_identity()
        if self._shared is None:
            await self._open_alone(undo)
        else:
            await self._join(undo, self._shared)
        cluster = self.cluster

        replicas = self.replicas = Replicas(BrokerId(config.node_id), cluster, folders, runtime)
        self._loading = folders
        if self._interrupted:
            folders.interrupt()
        try:
            threads = cluster.metadata.config.num_recovery_threads_per_data_dir
            accepted = None
            if self._joined is not None:
                self._accept_empty.check(replicas.assigned())
                accepted = self._accept_empty.__contains__
            strays = await replicas.load(threads, accepted)
        except StartInterrupted:
            self._cut_short = True
            raise
        for path in strays:
            if not Path(path).name.startswith(STORE_FILE):
                repair = f". If it belongs to it, run `{folders.repair_command}`" if folders.repair_command else ""
                logger.warning("%s is not a partition of this cluster; it is kept but not served%s", path, repair)
        self._loaded = True

        def lost(_: LogFolder) -> None:  # may be called from another thread
            loop.call_soon_threadsafe(self._folder_failed)

        folders.on_failure = lost
        undo.push_async_callback(self._left)

    async def _open_alone(self, undo: contextlib.AsyncExitStack) -> None:
        """Open the metadata of a cluster that has no other broker."""
        config, runtime, folders = self.config, self.runtime, self.folders
        embedded, store = None, self._store
        if store is None:
            embedded = self._embedded = await runtime.run(partial(open_embedded, folders, config.node_id, runtime))
            store = EmbeddedSession(embedded, runtime, closes_store=True)
        directories = folders.directories
        cluster = self.cluster = await Cluster.open(
            store,
            config,
            runtime,
            clean=all(directories.values()),
            cluster_id=folders.cluster_id,
            directories=directories,
            place=folders.place,
            made_in=folders.directory_of,
            in_the_way=folders.in_the_way,
        )
        undo.push_async_callback(cluster.close)
        folders.claim(cluster.image.cluster_id, config.node_id)
        if embedded is not None:
            copies = Copies(embedded, folders, runtime)
            copies.start()
            undo.push_async_callback(copies.stop)

    async def _join(self, undo: contextlib.AsyncExitStack, shared: "SharedStore") -> None:
        """Open a session in the store of a cluster of several brokers, and read its metadata."""
        from moldau.cluster.joined import JoinedCluster  # a broker alone needs none of it

        for folder in self.folders.folders:
            if self.runtime.disk.exists(folder.path / STORE_FILE):
                raise StorageError(
                    f"{folder.path} belongs to a broker that was alone: its topics are in {STORE_FILE} and would be "
                    "missing from the cluster. Give this broker an empty folder, or run `moldau cluster adopt "
                    f"{folder.path} --zookeeper {self.config.zookeeper_connect}`, which begins a new cluster with it"
                )
        guards = self._guards
        protection = (guards.to_brokers, guards.log_in) if guards is not None else ()
        joined = JoinedCluster(self.config, self.runtime, shared, self._replaced, self.folders, *protection)
        self._joined = joined
        self._joining = asyncio.ensure_future(joined.join(self.folders.cluster_id))
        try:
            await self._joining
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            raise StartInterrupted("the broker was asked to stop before it had joined its cluster") from None
        self.cluster = joined
        undo.push_async_callback(joined.close)
        self.folders.claim(joined.image.cluster_id, self.config.node_id, self.config.zookeeper_connect)

    async def _serve(self, undo: contextlib.AsyncExitStack) -> None:
        """Start what serves requests (coordinators, upkeep, cleaner, dispatch), then the listeners."""
        config, runtime = self.config, self.runtime
        folders, cluster, replicas, joined = self.folders, self.cluster, self.replicas, self._joined
        coordinators = self.coordinators = Coordinators(
            config, cluster.metadata, cluster.producer_ids, replicas, runtime, joined.links if joined else None
        )
        undo.push_async_callback(coordinators.stop)
        await coordinators.follow(cluster.image, [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
        cluster.metadata.subscribe(self._follow)
        cluster.metadata.subscribe(coordinators.forget_topics)
        upkeep = self.upkeep = Upkeep(cluster.metadata, replicas, folders, config, runtime)
        undo.push_async_callback(upkeep.stop)
        cleaner = self.cleaner = Cleaner(self._cleaning_candidates, lambda: cluster.metadata.config, runtime)
        undo.push_async_callback(cleaner.stop)
        exchange = None if joined is None else self._exchange(joined, coordinators)
        throttles = self._throttles
        followers = FollowerParts(exchange.consider, throttles.leader) if exchange and throttles else None
        turns = self.turns = Turns(runtime)
        telemetry = self.telemetry = LazyTelemetry(cluster, replicas, runtime, joined.links if joined else None)
        undo.push_async_callback(telemetry.stop)
        parts = BrokerParts(
            cluster,
            replicas,
            lambda: coordinators.groups,
            lambda: coordinators.transactions,
            lambda: coordinators.markers,
            runtime,
            turns,
            lambda: coordinators.coordinator_anywhere,
            followers,
            lambda: telemetry.telemetry,
        )
        dispatch = self.dispatch = self._dispatch(parts)
        self.watchdog = Watchdog(request_name, runtime.stopwatch)
        connected: Connected = dispatch.connected
        if self._guards is not None:
            connected = await self._guards.connected(dispatch, cluster)
            certificates = self._guards.watch(cluster.metadata)
            await certificates.start()
            undo.push_async_callback(certificates.stop)
            upkeep.jobs += self._guards.jobs(cluster)
        self.server = Server(connected, self._limits(), self.watchdog, runtime.stopwatch, urgent=is_urgent)
        cluster.metadata.subscribe(self._limit)
        undo.push_async_callback(self.server.stop)
        await cluster.registration.register(await self._open_listeners(), list(folders.directories))
        if joined is not None:
            undo.push_async_callback(joined.unfollow)
            await joined.follow()
        if exchange is not None:
            exchange.start()
            undo.push_async_callback(exchange.stop)
            replicas.exchange_by(exchange)
        upkeep.start()
        cleaner.start()
        replicas.moves.resume(cleaner.offsets)
        undo.push_async_callback(replicas.moves.stop)
        if self.metrics is not None:
            await self.metrics.start(config.metrics_host, config.metrics_port, undo)
        await self.server.serve()

    def _exchange(self, joined: "JoinedCluster", coordinators: Coordinators) -> "ReplicaExchange":
        """Fetches for the followers here, and proposals of the leaders here."""
        from moldau.replication.exchange import ReplicaExchange  # a broker alone needs none of it
        from moldau.replication.leader_session import follower_settings
        from moldau.replication.throttling import Throttles

        me, image = BrokerId(self.config.node_id), joined.metadata
        throttles = self._throttles = Throttles(me, image.config)
        return ReplicaExchange(
            joined.links.fetch,
            joined.alter_isr,
            lambda: (me, joined.membership.epoch),
            lambda: {broker.id: broker.epoch for broker in image.image.brokers.values() if not broker.leaving},
            joined.may_lead,
            coordinators.lead_again,
            follower_settings(self.config),
            self.runtime,
            throttles.follower,
        )

    def _dispatch(self, parts: BrokerParts) -> Dispatch:
        gate = self._gate or Gate()
        if self._guards is not None:
            self._guards.protect(gate, self.cluster.metadata)
        if self._joined is None:
            handlers = Handlers(parts)
            return Dispatch(handlers, gate, parts.turns, imports=handlers.imports())
        from moldau.handlers.between_brokers.of_member import member_dispatch

        return member_dispatch(parts, self._joined, gate)

    async def _open_listeners(self) -> list[Endpoint]:
        """Bind every listener; returns the addresses to register, of those that are advertised: first the one for other
        brokers."""
        self._limit(self.cluster.image, ())
        if self.config.metrics_port >= 0:
            from moldau.metrics.assembly import metrics_of  # most brokers serve none

            self.metrics = metrics_of(self)
        endpoints = []
        listeners = self.config.client_listeners
        for one in listeners:
            name, protocol, host, port, advertised = one
            tls = self._guards.tls.get(name) if self._guards is not None else None
            bound = self.ports[name] = await self.server.start(bound_host(one, listeners), port, name, tls)
            if advertised is not None:
                told = _reachable(advertised.host or host)
                endpoints.append(Endpoint(name, protocol, told, advertised.port or bound))
        return sorted(endpoints, key=lambda endpoint: endpoint.name != self.config.inter_broker_listener)

    def _replaced(self, conflict: BrokerConflict) -> None:
        """Another broker has this one's id now."""
        logger.error("%s", conflict)
        self.failed.set()

    def _folder_failed(self) -> None:
        if self.folders.lost:
            self.failed.set()
        else:
            if self.replicas.exchange is not None:
                self.replicas.exchange.folder_failed()
            task = asyncio.ensure_future(self._serve_what_is_left())
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def _serve_what_is_left(self) -> None:
        try:
            await self.cluster.registration.serve_only(list(self.folders.directories))
        except MoldauError as error:
            logger.error("the metadata cannot be updated with a log folder that went offline: %s", error)
            self.failed.set()

    async def _left(self) -> None:
        await asyncio.gather(*self._leaving)

    def _cleaning_candidates(self) -> Iterator[Candidate]:
        return (Candidate(replica.log, replica.last_stable_offset) for replica in self.replicas)

    async def _follow(self, image: Image, names: Sequence[str]) -> None:
        """Apply a change of the metadata to the partitions first: the coordinators read their state from them."""
        await self.replicas.follow(image, names)
        if self._joined is not None:
            self._joined.directories.note(image, names)
        if self._throttles is not None:
            self._throttles.follow(self.cluster.metadata.config)
        await self.coordinators.follow(image, names)

    def _limit(self, image: Image, _: Sequence[str]) -> None:
        if self._quotas is None and image.quotas:
            from moldau.handlers.security.quota_guard import QuotaGuard  # most brokers have no quotas

            self._quotas = QuotaGuard(self.dispatch.gate, self.cluster, self.runtime)
        self.server.limit(self._limits(), None if self._quotas is None else self._quotas.follow(image))

    def _limits(self) -> Limits:
        return limits_of(self.cluster.metadata.config, self._shares.connections)

    async def _close_folders(self) -> None:
        """The last step of a stop. If loading failed, no log is closed cleanly: the next start recovers them. If
        loading was interrupted, the loaded logs are closed, and the others stay as the last stop left them."""
        if self._loaded or self._cut_short:
            watermarks = self.replicas.high_watermarks() if self._loaded else None
            await self.folders.shut(watermarks, self._joined.membership.epoch if self._joined else -1)
        else:
            await self.runtime.run(lambda: self.folders.close(clean=False))

    @property
    def controls(self) -> bool:
        """Whether this broker is the controller of its cluster."""
        return self._joined is None or self._joined.acting.stream is not None

    @property
    def port(self) -> int:
        """The port of the first listener, 0 while none is open."""
        return next(iter(self.ports.values()), 0)

    @property
    def folder(self) -> LogFolder:
        """The first of the log folders; most brokers have only one."""
        return self.folders.folders[0]

    async def stop(self) -> None:
        """A clean stop: leaderships handed over, no more requests, groups down, metadata closed, logs flushed and
        closed, the marker written."""
        if self._joined is not None and not self.failed.is_set():
            await self._joined.hand_over()
        await self._undo.aclose()

    def abort(self) -> None:
        """Close the listeners and break all connections at once, as the end of the process would."""
        self.server.abort()
        if self.metrics is not None:
            self.metrics.abort()
        if self._joined is not None:
            self._joined.disconnect()

    def abandon(self) -> None:
        """Release files and locks after the loop has ended without `stop`: as a killed process, it writes nothing."""
        if self._embedded is not None:
            self._embedded.abandon()
        self.folders.close(clean=False)


def _reachable(host: str) -> str:
    """The host that is advertised to clients if the listener's host is not one they could reach."""
    return host if host not in ("", "0.0.0.0", "::") else socket.gethostname()
