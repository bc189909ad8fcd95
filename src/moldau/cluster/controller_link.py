"""Requests of this broker to the controller, wherever it is.

A request that waits while the controller changes, also for its connection, fails at once: nobody else would answer it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.dialling import Redialling
from moldau.cluster.link_pool import LinkPool
from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.peers.introduction import Identity
from moldau.protocol.apis import Api
from moldau.protocol.codec import WIDE_BYTES, read_reply
from moldau.runtime import Runtime

T = TypeVar("T")


class ControllerLink:
    def __init__(self, locator: ControllerLocator, identity: Identity, runtime: Runtime):
        self.locator = locator
        self.identity = identity
        self._runtime = runtime
        self._pool = LinkPool(identity, lambda broker: broker == locator.controller, Redialling())

    async def call(self, api: Api, request: Any, timeout_ms: int, read: Callable[[Any], T]) -> T:
        """Send a request to the controller, and return what `read` makes of the reply; a large reply is read in the
        executor. Raises `KafkaError`: NOT_CONTROLLER if the cluster has no controller, if it is this broker, or if
        another broker is elected before the reply; CORRUPT_MESSAGE; the errors of the connection."""
        controller = self.locator.controller
        if controller is None or controller.id == self.identity.broker_id:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "no other broker is the controller of this cluster now")
        try:
            return await self._unless_moved(controller, self._exchange(controller, api, request, timeout_ms, read))
        except ProtocolViolation as wrong:
            sentence = f"the controller's reply to {api.name} cannot be read: {wrong}"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, sentence) from None

    def close(self) -> None:
        """Keep no connections from now on."""
        self._pool.close()

    async def _exchange(
        self, controller: BrokerImage, api: Api, request: Any, timeout_ms: int, read: Callable[[Any], T]
    ) -> T:
        async with self._pool.link_to(controller, timeout_ms) as link:
            frame = await link.post(api, request, timeout_ms)

            def read_it() -> T:
                return read(read_reply(api, link.versions.of(api), frame))

            return read_it() if len(frame) <= WIDE_BYTES else await self._runtime.run(read_it)

    async def _unless_moved(self, controller: BrokerImage, exchange: Coroutine[Any, Any, T]) -> T:
        asked = asyncio.ensure_future(exchange)
        moved = asyncio.ensure_future(self.locator.moved_from(controller))
        try:
            either: list[asyncio.Future[Any]] = [asked, moved]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"broker {controller.id} is not the controller any more")
        finally:
            moved.cancel()
            asked.cancel()
            asked.add_done_callback(_forget)


def _forget(asked: "asyncio.Future[Any]") -> None:
    """Nobody waits for the answer any more. The request may still fail: in the turn in which it is cancelled, its
    connection may be refused."""
    if not asked.cancelled():
        asked.exception()
