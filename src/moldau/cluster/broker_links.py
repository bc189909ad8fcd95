"""Requests of this broker to the other brokers of its cluster, by their ids.

The requests of one connection are answered one after another, so each gets a connection of its own; some are kept for
the next ones.
"""

from collections.abc import Callable
from typing import Any

from moldau.cluster.image import BrokerImage, Image
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.address import Address
from moldau.peers.introduction import Identity, link_to_broker
from moldau.peers.link import Link
from moldau.protocol.apis import Api

DIAL_MS = 5_000
KEPT = 4
"""Connections to one broker that are kept without a request."""


class BrokerLinks:
    """`listener` is the name of the listener that brokers connect to; a broker without it is reached by its first
    one."""

    def __init__(self, image: Callable[[], Image], identity: Identity, listener: str):
        self._image = image
        self._identity = identity
        self._listener = listener
        self._idle: dict[BrokerImage, list[Link]] = {}

    async def call(self, broker_id: int, api: Api, request: Any, timeout_ms: int) -> Any:
        """Send a request to that broker and return its reply. Raises `KafkaError`."""
        broker = self._image().brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not up")
        link = await self._taken(broker, timeout_ms)
        is_whole = False
        try:
            answer = await link.call(api, request, timeout_ms)
            is_whole = True
            return answer
        finally:
            self._put_back(link, broker, is_whole)

    def close(self) -> None:
        for links in self._idle.values():
            for link in links:
                link.connection.close()
        self._idle.clear()

    async def _taken(self, broker: BrokerImage, timeout_ms: int) -> Link:
        links = self._idle.get(broker, [])
        while links:
            link = links.pop()
            if not link.closed:
                return link
        endpoint = broker.endpoint(self._listener) or broker.endpoints[0]
        address = Address(endpoint.host, endpoint.port)
        return await link_to_broker(address, broker.id, self._identity, min(timeout_ms, DIAL_MS))

    def _put_back(self, link: Link, broker: BrokerImage, is_whole: bool) -> None:
        up = self._image().brokers
        for other in [other for other in self._idle if up.get(other.id) != other]:
            for idle in self._idle.pop(other):
                idle.connection.close()
        links = self._idle.setdefault(broker, []) if up.get(broker.id) == broker else []
        if is_whole and up.get(broker.id) == broker and len(links) < KEPT and not link.closed:
            links.append(link)
        else:
            link.connection.close()
