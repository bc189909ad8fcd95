"""This broker's membership in its cluster: one session in the store after the other, and its node `/brokers/ids/N`.

The node exists as long as its session. A broker id belongs to one running broker: the node of another session is left
alone, and given one time-out to go, since a broker that was killed leaves its node for as long. After a session is over
the broker opens another, and registers in it anew.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from moldau.cluster.beginning import BrokerConflict, id_in_use, new_cluster_id
from moldau.cluster.secret import cluster_secret
from moldau.cluster.state import layout
from moldau.cluster.state.image import BrokerImage, Endpoint, Image
from moldau.cluster.state.reading import read_image
from moldau.errors import StorageError
from moldau.metadata_store.store import (
    Create,
    MetadataStore,
    NodeExists,
    OutcomeUnknown,
    SessionOver,
    Set,
    StoreConflict,
    node_at,
)
from moldau.notices import Notices
from moldau.runtime import Runtime
from moldau.tasks import ended

RETRY_S = 0.5
CONFLICTS_MAX = 20
"""A store without a cluster in which none can be begun has something else after so many attempts."""
LOOK_S = 0.25
"""How often a node of an earlier session is looked at until it is gone."""
KEPT_MAX = 10
TICK_S = 2.0
"""ZooKeeper ends sessions in steps of its `tickTime`."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


@dataclass(frozen=True)
class SharedStore:
    """The store of a cluster: `open` begins a session, whose nodes go `timeout_s` after its broker has died."""

    open: Callable[[], Awaitable[MetadataStore]]
    timeout_s: float
    secret: bytes = b""
    """The secret in the file that the cluster's brokers share; empty without one."""


class Membership:
    """`serve` is called with each session once this broker is registered in it, and returns when the session is over;
    `give_up` when another broker has taken this one's id meanwhile. Belongs to the loop it is used on."""

    def __init__(
        self,
        broker_id: int,
        rack: str | None,
        shared: SharedStore,
        runtime: Runtime,
        serve: Callable[[MetadataStore], Awaitable[None]],
        give_up: Callable[[BrokerConflict], None],
    ):
        self._broker_id = broker_id
        self._rack = rack
        self._shared = shared
        self._runtime = runtime
        self._serve = serve
        self._give_up = give_up
        self._store: MetadataStore | None = None
        self._endpoints: tuple[Endpoint, ...] = ()
        self._directories: tuple[str, ...] = ()
        self._kept: dict[str, list[int]] = {}
        """The broker epochs since which each log folder has lost nothing: this process has not ended since its first
        registration, and a controller may have missed some."""
        self._version = 0
        self._going_on: asyncio.Task[None] | None = None
        self.epoch = -1
        """The broker epoch: another one for every registration."""
        self._is_registered = False
        self.secret = b""
        """The cluster's, as it was when the current session began."""

    @property
    def store(self) -> MetadataStore:
        """The current session, or the last one."""
        assert self._store is not None, "not joined"
        return self._store

    @property
    def registered_epoch(self) -> int:
        """The broker epoch; -1 while this broker is registered in no session, as far as it knows."""
        return self.epoch if self._is_registered else -1

    async def join(self, cluster_id: str | None, why_not_begin: Callable[[], str | None] = lambda: None) -> Image:
        """Open the first session, begin a cluster if the store has none, and read its metadata, without the topics
        that cannot be read: the controller names them. `why_not_begin` is asked only if there is no cluster,
        and says why this broker may not begin one. A session that ends meanwhile is followed by another one. Raises
        `StorageError`."""
        while True:
            self._store = store = await self._shared.open()
            try:
                return await self._begun(store, cluster_id, why_not_begin)
            except SessionOver as over:
                logger.warning("%s: the start continues in a new session", over)
                await self._close_last()
            except BaseException:
                await store.close()
                raise

    async def _begun(
        self, store: MetadataStore, cluster_id: str | None, why_not_begin: Callable[[], str | None]
    ) -> Image:
        """The metadata of the cluster, which is begun if there is none."""
        refused = ""
        for conflicts in count():
            image = await store.read(read_image({}))
            if image is not None:
                self.secret = await cluster_secret(store, self._runtime, self._shared.secret)
                return image
            if await store.read(node_at(layout.ADOPTION)) is not None:
                raise StorageError(
                    "a broker that was alone is being made the first of this cluster: when that was cut off, run "
                    "`moldau cluster adopt` again"
                )
            if (why := why_not_begin()) is not None:
                raise StorageError(why)
            if conflicts == CONFLICTS_MAX:
                raise StorageError(
                    f"ZooKeeper has {refused} but no {layout.CLUSTER_ID}: name an empty chroot in zookeeper.connect"
                )
            try:
                await store.multi(layout.new_cluster(cluster_id or new_cluster_id(self._runtime)))
            except StoreConflict as conflict:  # another broker was faster
                refused = conflict.path
            except OutcomeUnknown:
                continue
        raise AssertionError("unreachable")

    async def register(
        self,
        endpoints: Sequence[Endpoint],
        directories: Sequence[str] = (),
        kept_since: Mapping[str, int] | None = None,
    ) -> None:
        """Register this broker as up: its listeners (at least one), and the ids of the log folders it serves; from now
        on it is a member until `close`. `kept_since` has the broker epoch since which a folder has lost nothing, -1 if
        that cannot be shown. Raises `BrokerConflict` if another broker with its id stays up, `StorageError`."""
        self._endpoints, self._directories = tuple(endpoints), tuple(directories)
        self._kept = {one: [epoch] for one, epoch in (kept_since or {}).items() if epoch >= 0}
        while True:
            try:
                await self._register()
                break
            except SessionOver as over:  # it was long ago that it was opened: the logs were read meanwhile
                logger.warning("%s: this broker registers in a new session", over)
                await self._close_last()
                self._store = await self._shared.open()
        self._going_on = asyncio.ensure_future(self._go_on())

    async def serve_only(self, directories: Sequence[str]) -> None:
        """This broker serves only these log folders from now on. If its session is over, the next registration says
        so. Raises `StorageError`."""
        self._directories = tuple(directories)
        while self.epoch >= 0:
            store, node = self.store, self._node(self._version)
            try:
                await store.multi([node])
                self._version += 1
                return
            except SessionOver:
                return
            except (StoreConflict, OutcomeUnknown):  # another registration, or nobody knows whether it was written
                with contextlib.suppress(SessionOver):
                    registered = await store.read(node_at(node.path))
                    if registered is None or registered.owner != store.session_id:
                        return
                    self._version = registered.version

    async def close(self) -> None:
        """End the session: the node goes."""
        await ended(self._going_on)
        await self.store.close()

    async def _close_last(self) -> None:
        """Close a session that is over. One that cannot be closed ends as that of a process that was killed."""
        with contextlib.suppress(StorageError):
            await self.store.close()

    def _node(self, version: int | None) -> Create | Set:
        me = BrokerImage(self._broker_id, self._endpoints, self._rack, self._directories)
        kept = {one: self._kept[one][-KEPT_MAX:] for one in self._directories if one in self._kept}
        return layout.broker(me, self._runtime.clock.now_ms(), version, kept)

    async def _register(self) -> None:
        store, loop, waited_from = self.store, asyncio.get_running_loop(), None
        while True:
            node = self._node(None)
            with contextlib.suppress(NodeExists, OutcomeUnknown):
                await store.multi([node])
            registered = await store.read(node_at(node.path))
            if registered is not None and registered.owner == store.session_id:
                self._version, self.epoch, self._is_registered = registered.version, registered.czxid, True
                for directory in self._directories:
                    self._kept.setdefault(directory, []).append(self.epoch)
                return
            if registered is None:
                continue
            if waited_from is None:
                waited_from = loop.time()
                logger.info("broker %d is registered by another session: waiting for its end", self._broker_id)
            if loop.time() > waited_from + self._shared.timeout_s + TICK_S:
                raise await store.read(id_in_use(self._broker_id))
            await asyncio.sleep(LOOK_S)

    async def _go_on(self) -> None:
        while True:
            try:
                await self._serve(self.store)
            except Exception:  # the session goes on, and with it what others rely on: that nobody was elected instead
                logger.exception("internal error: this broker rejoins its cluster")
                await asyncio.sleep(RETRY_S)
                continue
            self._is_registered = False
            logger.warning("the session in the cluster's store has expired: this broker registers in a new session")
            while True:
                try:
                    await self._close_last()
                    self._store = await self._shared.open()
                    self.secret = await cluster_secret(self._store, self._runtime, self._shared.secret)
                    await self._register()
                    break
                except BrokerConflict as conflict:
                    self._give_up(conflict)
                    return
                except StorageError as error:
                    notices.error("", "%s. This broker is not a member of its cluster until the store answers", error)
                except StoreConflict as conflict:
                    notices.error("", "this broker is not a member of its cluster until it can register: %s", conflict)
                except Exception:
                    logger.exception("internal error: this broker is not a member of its cluster; it tries again")
                await asyncio.sleep(RETRY_S)
