"""Where the controller is, as other brokers know it: for a broker whose session in the store is over.

Such a broker is not a member of the cluster until it reaches the store again. If it was the controller, it cannot read
its successor from the store, but its clients still ask it for metadata. So it asks the brokers that it knew, by
DescribeCluster: Metadata names any broker that takes administrators' requests.
"""

import asyncio
from collections.abc import Callable

from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.dialling import dialled
from moldau.cluster.state.image import BrokerImage, Image
from moldau.errors import KafkaError
from moldau.peers.introduction import Identity
from moldau.protocol.apis import DESCRIBE_CLUSTER
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest

ASK_MS = 1_000
PAUSE_S = 1.0


class SuccessorSearch:
    def __init__(self, locator: ControllerLocator, image: Callable[[], Image], identity: Identity):
        self._locator = locator
        self._image = image
        self._identity = identity

    async def look(self) -> None:
        """If the store does not say where the controller is, ask the others, and tell the locator. Pauses, unless it is
        another one than before: that one was asked, and is not the controller."""
        if self._locator.is_told:
            return
        brokers, refused, me = self._image().brokers, self._locator.controller, self._identity.broker_id
        others = [broker for broker in brokers.values() if broker.id != me]
        for controller in await asyncio.gather(*map(self._controller_of, others)):
            if controller in brokers and controller != me and brokers[controller] != refused:
                self._locator.found(brokers[controller])
                return
        await asyncio.sleep(PAUSE_S)

    async def _controller_of(self, broker: BrokerImage) -> int:
        """The controller's id as this broker knows it; -1 if it does not answer."""
        try:
            link = await dialled(broker, self._identity, ASK_MS)
        except KafkaError:
            return -1
        try:
            answer = await link.call(DESCRIBE_CLUSTER, DescribeClusterRequest(), ASK_MS)
            return int(answer.controller_id)
        except KafkaError:
            return -1
        finally:
            link.connection.close()
