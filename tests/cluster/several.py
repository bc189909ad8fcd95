"""Brokers of one cluster without sockets or logs: each has a session in a model ZooKeeper, is registered, and stands
for controller."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.controlling.acting import Acting
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.controlling.log_ends import WantedLog
from moldau.cluster.membership import Membership, SharedStore
from moldau.cluster.state import layout
from moldau.cluster.state.eligibility import LogEnd
from moldau.cluster.state.image import Endpoint, Image, PartitionImage
from moldau.config import broker_config
from moldau.runtime import Runtime
from moldau.simulation.world import World
from moldau.simulation.zookeeper import ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession

SETTINGS = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
TIMEOUT_S = 6.0


class Member:
    """One broker. `session` is its session now."""

    def __init__(self, store: ModelZooKeeper, broker_id: int):
        config, _ = broker_config({**SETTINGS, "node.id": str(broker_id)})
        self.broker_id = broker_id
        self.acting = Acting(config, Runtime(), self._log_ends)
        self.logs: dict[int, LogEnd] = {}
        """How far the logs of brokers go, as they answer to this one."""
        self.session: ModelSession
        self.given_up: list[BrokerConflict] = []
        self._store = store
        self.membership = Membership(
            broker_id,
            config.broker_rack,
            SharedStore(self._open, TIMEOUT_S),
            Runtime(),
            self.acting.serve,
            self.given_up.append,
        )

    async def _open(self) -> ModelSession:
        self.session = ModelSession(self._store, TIMEOUT_S)
        return self.session

    async def join(self, kept_since: int = -1) -> "Member":
        await self.membership.join(None)
        await self.register(kept_since)
        return self

    async def register(self, kept_since: int = -1) -> None:
        """Its only log folder has lost nothing since that registration; -1: it may have."""
        here = Endpoint("PLAINTEXT", "PLAINTEXT", f"host{self.broker_id}", 9092)
        folder = f"folder-{self.broker_id}"
        await self.membership.register([here], [folder], {folder: kept_since})

    async def _log_ends(self, broker_id: int, epoch: int, wanted: Sequence[WantedLog]) -> dict[WantedLog, LogEnd]:
        return dict.fromkeys(wanted, self.logs[broker_id]) if broker_id in self.logs else {}

    def die(self) -> None:
        """SIGKILL: its session ends after the time-out."""
        assert self.membership._going_on is not None
        self.membership._going_on.cancel()
        self.session.abandon()

    @property
    def image(self) -> Image:
        """What it has decided, if it is the controller."""
        return self.acting.metadata.image

    @property
    def is_controller(self) -> bool:
        return self.acting.stream is not None


class Members(dict[int, Member]):
    """The brokers by id."""

    def __init__(self) -> None:
        super().__init__()
        self.store = ModelZooKeeper()

    def made(self, broker_id: int) -> Member:
        """A broker that has not joined."""
        return Member(self.store, broker_id)

    async def join(self, broker_id: int, kept_since: int = -1) -> Member:
        member = await self.made(broker_id).join(kept_since)
        self[broker_id] = member
        return member

    async def controller(self, is_it: Callable[[Member], bool] = lambda member: True) -> Member:
        """Wait for a controller like that."""
        while True:
            found = next((member for member in self.values() if member.is_controller and is_it(member)), None)
            if found is not None:
                return found
            await asyncio.sleep(0.01)

    async def shown(self, condition: Callable[[Image], bool]) -> Image:
        """Wait until the controller has an image like that."""
        while True:
            controller = await self.controller()
            if condition(controller.image):
                return controller.image
            await asyncio.sleep(0.01)


async def place(controller: Member, name: str, *partitions: PartitionImage, **settings: str) -> None:
    """Make a topic with these partitions, and these settings by Kafka's names with underscores."""
    configs = [(key.replace("_", "."), value) for key, value in settings.items()]
    await controller.acting.topics.create([NewTopic(name, len(partitions), configs=configs)])
    old = controller.image.topics[name]
    new = old._replace(partitions=partitions)
    steps = [layout.topic_node(new, 0), *layout.topic_changed(old, new, 1)]
    await controller.acting.queue.made(partial(controller.acting.queue.commit, steps))


async def followed_by(controller: Member, *brokers: int) -> None:
    """These brokers ask the controller for changes every second, and have applied all; until it is cancelled."""
    while True:
        for broker in brokers:
            stream = controller.acting.stream
            assert stream is not None
            await stream.follow(broker, -1, 1, stream.position - 1, stream.position, 0)
        await asyncio.sleep(1)


def play(scenario: Callable[[Members], Awaitable[None]]) -> None:
    """Run a scenario in virtual time."""

    async def whole(_: World) -> None:
        members = Members()
        async with asyncio.timeout(600):
            await scenario(members)
            for member in members.values():
                await member.membership.close()

    World(0).run(whole)
