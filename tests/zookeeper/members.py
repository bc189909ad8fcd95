"""Brokers of one cluster without sockets or logs, registered in a real ZooKeeper, one of which is the controller."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from harness.patience import stretched
from moldau.cluster.controlling.acting import Acting
from moldau.cluster.membership import Membership, SharedStore
from moldau.cluster.state.image import Endpoint, Image
from moldau.config import broker_config
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import Runtime

NEVER_MS = "3600000"


class Members:
    """`image` is what the controller knows."""

    def __init__(self) -> None:
        self.controller: Acting

    @property
    def image(self) -> Image:
        return self.controller.metadata.image

    async def shown(self, condition: Callable[[Image], bool]) -> Image:
        """Wait until the controller has an image like that."""
        while not condition(self.image):
            await asyncio.sleep(0.01)
        return self.image


@contextlib.asynccontextmanager
async def members(connect: str, count: int, **settings: str) -> AsyncIterator[Members]:
    """That many brokers, with the ids from 1 on and the hosts `host1`, ...; the first is the controller. `settings` are
    by Kafka's names with underscores. Nobody follows the controller, which must not take that for silence."""
    given = {"replica.lag.time.max.ms": NEVER_MS} | {name.replace("_", "."): value for name, value in settings.items()}
    found, memberships = Members(), list[Membership]()
    access = ZooKeeperAccess(connect, stretched(20.0))
    try:
        for number in range(1, count + 1):
            config, _ = broker_config({"node.id": str(number), **given})
            acting = Acting(config, Runtime())
            shared = SharedStore(lambda: ZooKeeperSession.open(access, Runtime()), access.timeout_s)
            membership = Membership(number, None, shared, Runtime(), acting.serve, lambda _: None)
            memberships.append(membership)
            await membership.join(None)
            await membership.register([Endpoint("PLAINTEXT", "PLAINTEXT", f"host{number}", 9092)])
            if number == 1:
                found.controller = acting
                while acting.stream is None:
                    await asyncio.sleep(0.01)
        await found.shown(lambda image: len(image.brokers) == count)
        yield found
    finally:
        for membership in memberships:
            await membership.close()
