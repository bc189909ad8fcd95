"""Brokers of one cluster on the simulated network: registered and electing as in `several`, each listening, following
the controller, and forwarding to it. They have no logs: a partition is a line in the image."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from moldau.cluster.cluster import Cluster
from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.following import Following
from moldau.cluster.state.image import Endpoint, Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import broker_config
from moldau.handlers.between_brokers.forwarding import FORWARDED, ControllersHandlers, Forwarding
from moldau.handlers.between_brokers.table import PeerParts, handlers_between_brokers
from moldau.handlers.cluster.api_versions import ApiVersions
from moldau.handlers.table import BrokerParts
from moldau.metadata_store.store import MetadataStore
from moldau.net.limits import Limits
from moldau.net.server import Server
from moldau.peers.address import Address
from moldau.peers.introduction import Identity
from moldau.peers.link import Link, connect
from moldau.protocol.apis import API_VERSIONS
from moldau.replication.lag.asking import Committed
from moldau.replication.lag.reading import UNKNOWN_LAG, PartitionLag
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate, Handler
from moldau.requests.session import Authorizer
from moldau.runtime import Runtime
from moldau.simulation.network import current_host
from moldau.simulation.world import World
from moldau.simulation.zookeeper import ModelZooKeeper
from moldau.turns import Turns
from tests.cluster.several import SETTINGS, Member

PORT = 9092
CLIENTS_PORT = 9093
LISTENER = "PLAINTEXT"


async def nothing_behind(committed: Iterable[Committed]) -> list[PartitionLag]:
    """These brokers have no logs, so none can tell how far a group is behind in one."""
    return [UNKNOWN_LAG for _ in committed]


class ConnectedBroker(Member):
    """`image` is what it decides as the controller, `metadata.image` what it serves by."""

    def __init__(self, world: World, store: ModelZooKeeper, broker_id: int, authorizer: Authorizer | None = None):
        super().__init__(store, broker_id)
        self._authorizer = authorizer
        self.host = f"host{broker_id}"
        self.world = world
        self.membership._serve = self._serve

    async def start(self) -> "ConnectedBroker":
        await self.world.on(self.host, self._start())
        return self

    async def _start(self) -> None:
        runtime, config = Runtime(), broker_config({**SETTINGS, "node.id": str(self.broker_id)})[0]
        image = await self.membership.join(None)
        self.metadata = MetadataCache(config, image)
        self.locator = ControllerLocator()
        identity = self.identity = Identity(
            image.cluster_id, self.broker_id, lambda: self.membership.epoch, lambda: self.membership.secret
        )
        self.following = Following(
            self.metadata,
            ControllerLink(self.locator, identity, runtime),
            lambda: self.acting.stream,
            runtime,
        )
        turns = Turns(runtime)
        self.forwarding = Forwarding(ControllerLink(self.locator, identity, runtime), turns)
        none: Any = None
        as_controller = BrokerParts(cast(Cluster, self.acting), none, none, none, none, runtime, turns, none)
        controllers = ControllersHandlers(
            as_controller, lambda: self.is_controller, self.forwarding, turns, self.metadata
        )
        handlers: dict[int, Handler] = {API_VERSIONS.key: ApiVersions(self.metadata)}
        handlers |= {key: cast(Handler, controllers(api)) for key, api in FORWARDED.items()}
        peers = PeerParts(
            self.metadata,
            lambda: self.acting.stream,
            self.acting.assign_directories,
            self.acting.isr.alter,
            lambda wanted: {},
            nothing_behind,
            lambda one: dispatch.requests_of(one),
            runtime,
            LISTENER,
            lambda: self.membership.secret,
            lambda: self.following.received,
        )
        between_brokers = handlers_between_brokers(peers)
        dispatch = Dispatch(handlers, Gate(authorizer=self._authorizer), turns, between_brokers)
        self.server = Server(dispatch.connected, Limits())
        await self.server.start(self.host, PORT, LISTENER)
        await self.server.start(self.host, CLIENTS_PORT, "CLIENTS")
        await self.server.serve()
        await self.membership.register([Endpoint(LISTENER, LISTENER, self.host, PORT)])
        self.following.start()
        await self.following.until(lambda shown: self.broker_id in shown.brokers)

    async def _serve(self, store: MetadataStore) -> None:
        await asyncio.gather(self.acting.serve(store), self.locator.serve(store))

    def kill(self) -> None:
        """SIGKILL, between two steps of the loop."""
        self.world.kill(self.host)
        self.session.abandon()


class Brokers(dict[int, ConnectedBroker]):
    """The brokers by id. `authorizers` are those of some of them."""

    def __init__(self, world: World):
        super().__init__()
        self.authorizers: dict[int, Authorizer] = {}
        self.world = world
        self.store = ModelZooKeeper()

    async def start(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            authorizer = self.authorizers.get(broker_id)
            self[broker_id] = ConnectedBroker(self.world, self.store, broker_id, authorizer)
            await self[broker_id].start()

    @property
    def controller(self) -> ConnectedBroker:
        return next(broker for broker in self.values() if broker.is_controller)

    @property
    def others(self) -> list[ConnectedBroker]:
        """Those that are not the controller."""
        return [broker for broker in self.values() if not broker.is_controller]

    async def link(self, broker: ConnectedBroker) -> Link:
        """A client's connection."""
        return await connect(Address(broker.host, PORT), "client", 30_000)

    async def until(self, holds: Callable[[Image], bool], *brokers: ConnectedBroker) -> None:
        """Wait until these brokers, or all, serve by an image like that."""
        while not all(holds(broker.metadata.image) for broker in brokers or self.values()):
            await asyncio.sleep(0.01)


def played(scenario: Callable[[Brokers], Awaitable[None]], seed: int = 0) -> None:
    """Run a scenario in virtual time, on the host `client`."""

    async def whole(world: World) -> None:
        async with asyncio.timeout(600):
            await scenario(Brokers(world))

    contextvars.copy_context().run(current_host.set, "client")
    World(seed).run(whole)
