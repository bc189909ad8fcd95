"""Connections of this broker to other brokers, each for one request at a time.

The requests of one connection are answered one after another, so requests at the same time get one each. A few of those
that are free are kept for the next requests.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from moldau.cluster.dialling import dialled
from moldau.cluster.state.image import BrokerImage
from moldau.peers.introduction import Identity
from moldau.peers.link import Link

KEPT = 4
"""The most free connections to one broker that are kept."""


class LinkPool:
    """`is_current` says whether a broker is still registered as it was: connections to others are not kept. `dial` has
    the parameters of `dialled`."""

    def __init__(
        self,
        identity: Identity,
        is_current: Callable[[BrokerImage], bool],
        dial: Callable[[BrokerImage, Identity, int], Awaitable[Link]] = dialled,
    ):
        self._identity = identity
        self._dial = dial
        self._is_current = is_current
        self._free: dict[BrokerImage, list[Link]] = {}
        self._closed = False

    @asynccontextmanager
    async def link_to(self, broker: BrokerImage, timeout_ms: int) -> AsyncIterator[Link]:
        """A connection to that broker that no other request uses. If the request fails it is closed. Raises
        `KafkaError`."""
        self._forget_replaced()
        link = self._taken(broker) or await self._dial(broker, self._identity, timeout_ms)
        is_whole = False
        try:
            yield link
            is_whole = True
        finally:
            self._forget_replaced()
            if is_whole and self._may_keep(link, broker):
                self._free.setdefault(broker, []).append(link)
            else:
                link.connection.close()

    def close(self) -> None:
        """Close the free connections now, and each of the others after its request."""
        self._closed = True
        for links in self._free.values():
            for link in links:
                link.connection.close()
        self._free.clear()

    def _taken(self, broker: BrokerImage) -> Link | None:
        links = self._free.get(broker, [])
        while links:
            link = links.pop()
            if not link.closed:
                return link
        return None

    def _may_keep(self, link: Link, broker: BrokerImage) -> bool:
        free = len(self._free.get(broker, ()))
        return not self._closed and not link.closed and free < KEPT and self._is_current(broker)

    def _forget_replaced(self) -> None:
        for broker in [broker for broker in self._free if not self._is_current(broker)]:
            for link in self._free.pop(broker):
                link.connection.close()
