"""Requests of this broker to the other brokers of its cluster, by their ids."""

from collections.abc import Callable
from typing import Any

from moldau.cluster.link_pool import LinkPool
from moldau.cluster.ordered_link import OrderedLink
from moldau.cluster.state.image import BrokerImage, Image
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.protocol import hot_follower
from moldau.protocol.apis import FETCH, Api
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse


class BrokerLinks:
    def __init__(self, image: Callable[[], Image], identity: Identity):
        self._image = image
        self._identity = identity
        self._followed: dict[int, OrderedLink] = {}
        """To the brokers that this one follows."""
        self._is_closed = False
        self._pool = LinkPool(identity, lambda broker: image().brokers.get(broker.id) == broker)

    async def call(self, broker_id: int, api: Api, request: Any, timeout_ms: int) -> Any:
        """Send a request to that broker and return its reply. Raises `KafkaError`."""
        async with self._pool.link_to(self._broker(broker_id), timeout_ms) as link:
            return await link.call(api, request, timeout_ms)

    async def fetch(self, broker_id: int, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        """As `call`, for a follower: its requests reach the broker in the order of the calls, also while earlier ones
        wait there; requests and replies are written and read by hand. Raises `KafkaError`, after `close` always."""
        if self._is_closed:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the connections of this broker are closed")
        broker = self._broker(broker_id)
        link = self._followed.get(broker_id)
        if link is None:
            link = self._followed[broker_id] = OrderedLink(self._identity)
        to_leader = await link.link_to(broker, timeout_ms)
        return await to_leader.call(FETCH, request, timeout_ms, by_hand=hot_follower)  # type: ignore[no-any-return]

    def _broker(self, broker_id: int) -> BrokerImage:
        broker = self._image().brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not up")
        return broker

    def close(self) -> None:
        """Keep no connections from now on."""
        self._is_closed = True
        self._pool.close()
        for link in self._followed.values():
            link.close()
