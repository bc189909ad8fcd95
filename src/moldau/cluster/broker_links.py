"""Requests of this broker to the other brokers of its cluster, by their ids."""

from collections.abc import Callable
from typing import Any

from moldau.cluster.link_pool import LinkPool
from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.peers.link import ByHand
from moldau.protocol import hot_follower
from moldau.protocol.apis import FETCH, Api
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse


class BrokerLinks:
    """`listener` is as in `LinkPool`."""

    def __init__(self, image: Callable[[], Image], identity: Identity, listener: str):
        self._image = image
        self._pool = LinkPool(identity, listener, lambda broker: image().brokers.get(broker.id) == broker)

    async def call(self, broker_id: int, api: Api, request: Any, timeout_ms: int, by_hand: ByHand | None = None) -> Any:
        """Send a request to that broker and return its reply. Raises `KafkaError`."""
        broker = self._image().brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not up")
        async with self._pool.link_to(broker, timeout_ms) as link:
            return await link.call(api, request, timeout_ms, by_hand=by_hand)

    async def fetch(self, broker_id: int, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        """As `call`, for a follower: its requests and replies are written and read by hand."""
        return await self.call(broker_id, FETCH, request, timeout_ms, hot_follower)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Keep no connections from now on."""
        self._pool.close()
