"""One connection to another broker, for requests that must reach it in the order in which they are sent."""

import asyncio

from moldau.cluster.dialling import dialled
from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.peers.link import Link


class OrderedLink:
    """The connection is made when it is needed, and again when it has broken or the broker has registered anew."""

    def __init__(self, identity: Identity):
        self._identity = identity
        self._order = asyncio.Lock()
        self._epoch = -1
        self._link: Link | None = None
        self._is_closed = False

    async def link_to(self, broker: BrokerImage, timeout_ms: int) -> Link:
        """The connection, to be sent a request before anything else is awaited. Raises `KafkaError`, after `close`
        always."""
        async with self._order:
            if self._link is None or self._link.closed or self._epoch != broker.epoch:
                self._drop()
                self._link = await dialled(broker, self._identity, timeout_ms)
                self._epoch = broker.epoch
            if self._is_closed:  # perhaps while the connection was made
                self._drop()
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the connection to broker {broker.id} was closed")
            return self._link

    def close(self) -> None:
        """Close the connection for good, or as soon as it is made."""
        self._is_closed = True
        self._drop()

    def _drop(self) -> None:
        if self._link is not None:
            self._link.connection.close()
            self._link = None
