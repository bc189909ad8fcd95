"""Requests of this broker to the controller, wherever it is.

The requests of one connection are answered one after another, so each gets a connection of its own; some are kept for
the next ones. A request that waits while the controller changes fails at once: nobody else would answer it.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.image import BrokerImage
from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.peers.address import Address
from moldau.peers.introduction import Identity, link_to_broker
from moldau.peers.link import Link
from moldau.protocol.apis import Api
from moldau.protocol.codec import WIDE_BYTES, read_reply
from moldau.runtime import Runtime

DIAL_MS = 5_000
KEPT = 4
"""Connections that are kept without a request."""
T = TypeVar("T")


class ControllerLink:
    """`listener` is the name of the listener that brokers connect to; a controller without it is reached by its first
    one."""

    def __init__(self, locator: ControllerLocator, identity: Identity, listener: str, runtime: Runtime):
        self.locator = locator
        self.identity = identity
        self._listener = listener
        self._runtime = runtime
        self._idle: list[Link] = []
        self._controller: BrokerImage | None = None
        """The one at the other end of the idle connections."""

    async def call(self, api: Api, request: Any, timeout_ms: int, read: Callable[[Any], T]) -> T:
        """Send a request and return what `read` makes of its reply; a large reply is read in the executor. Raises
        `KafkaError`: NOT_CONTROLLER if there is no controller, or another one meanwhile; else the connection's."""
        controller = self.locator.controller
        if controller is None or controller.id == self.identity.broker_id:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "no other broker is the controller of this cluster now")
        link = await self._taken(controller, timeout_ms)
        is_whole = False
        try:
            frame = await self._answer(link, controller, api, request, timeout_ms)

            def read_it() -> T:
                return read(read_reply(api, link.versions.of(api), frame))

            result = read_it() if len(frame) <= WIDE_BYTES else await self._runtime.run(read_it)
            is_whole = True
            return result
        except ProtocolViolation as wrong:
            sentence = f"the controller's reply to {api.name} cannot be read: {wrong}"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, sentence) from None
        finally:
            self._put_back(link, controller, is_whole)

    def close(self) -> None:
        self._forget_idle(None)

    async def _answer(self, link: Link, controller: BrokerImage, api: Api, request: Any, timeout_ms: int) -> memoryview:
        reply = link.post(api, request, timeout_ms)
        moved = asyncio.ensure_future(self.locator.moved_from(controller))
        try:
            either: list[asyncio.Future[Any]] = [reply, moved]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if reply.done():
                return reply.result()
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"broker {controller.id} is not the controller any more")
        finally:
            moved.cancel()
            reply.cancel()

    async def _taken(self, controller: BrokerImage, timeout_ms: int) -> Link:
        """A connection to it that no other request uses."""
        if controller != self._controller:
            self._forget_idle(controller)
        while self._idle:
            link = self._idle.pop()
            if not link.closed:
                return link
        endpoint = controller.endpoint(self._listener) or controller.endpoints[0]
        address = Address(endpoint.host, endpoint.port)
        return await link_to_broker(address, controller.id, self.identity, min(timeout_ms, DIAL_MS))

    def _put_back(self, link: Link, controller: BrokerImage, is_whole: bool) -> None:
        if is_whole and controller == self._controller and len(self._idle) < KEPT and not link.closed:
            self._idle.append(link)
        else:
            link.connection.close()

    def _forget_idle(self, controller: BrokerImage | None) -> None:
        self._controller = controller
        while self._idle:
            self._idle.pop().connection.close()
