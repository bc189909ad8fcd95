"""One connection to another broker, for requests that must reach it in the order in which they are sent."""

import asyncio

from moldau.cluster.dialling import dialled
from moldau.cluster.state.image import BrokerImage
from moldau.peers.introduction import Identity
from moldau.peers.link import Link


class OrderedLink:
    """`listener` is the name of the listener that brokers connect to. The connection is made when it is needed, and
    again when it has broken or the broker has registered anew."""

    def __init__(self, identity: Identity, listener: str):
        self._identity = identity
        self._listener = listener
        self._order = asyncio.Lock()
        self._epoch = -1
        self._link: Link | None = None

    async def link_to(self, broker: BrokerImage, timeout_ms: int) -> Link:
        """The connection, to be sent a request before anything else is awaited. Raises `KafkaError`."""
        async with self._order:
            if self._link is None or self._link.closed or self._epoch != broker.epoch:
                self.close()
                self._link = await dialled(broker, self._listener, self._identity, timeout_ms)
                self._epoch = broker.epoch
            return self._link

    def close(self) -> None:
        if self._link is not None:
            self._link.connection.close()
            self._link = None
