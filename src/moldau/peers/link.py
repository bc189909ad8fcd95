"""A `Link`: a connection to one broker on which both ends have agreed on the version of every API.

`connect` dials and sends ApiVersions first (KIP-511); if the broker does not know our version, it sends an older one. A
link sends requests and reads replies; its owner decides which broker to connect to and whether to retry.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.net.connection import MAX_REPLY_BYTES, ClientConnection, dial, fresh
from moldau.peers.address import Address
from moldau.peers.negotiation import NO_LIMITS, IntendedBroker, Versions, read_versions, versions_request
from moldau.protocol.apis import API_VERSIONS, Api
from moldau.protocol.codec import read_reply, write_request_around
from moldau.protocol.primitives import Around
from moldau.runtime import Buffer

REQUEST_TIMEOUT_MS = 30_000


class ByHand(Protocol):
    """Writes the requests of one API, and reads its replies, where that is worth it; None for those left to the
    tables."""

    def write(self, version: int, correlation_id: int, client_id: str, request: Any) -> bytes | None:
        """A whole request, with its size in front."""

    def read_reply(self, version: int, frame: memoryview) -> Any:
        """The message of a reply frame."""


class Link:
    """A connection with agreed versions; made by `connect`. Belongs to the loop it was dialled on."""

    def __init__(self, connection: ClientConnection, versions: Versions, client_id: str):
        self.connection = connection
        self.versions = versions
        self._client_id = client_id

    @property
    def closed(self) -> bool:
        return self.connection.closed

    def post(
        self,
        api: Api,
        request: Any,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        memory: Callable[[int], memoryview] = fresh,
        around: Around = (),
        *,
        urgent: bool = False,
    ) -> asyncio.Future[memoryview]:
        """Send a request now, around the bytes of its detached records. The future holds the frame of its reply:
        `codec.read_reply` with `versions.of(api)`; a large reply is received into what `memory` returns, given the
        size. An `urgent` request is sent even while the connection holds others back."""
        correlation_id, pieces = self._pieces(api, request, around)
        return self.connection.send(correlation_id, pieces, timeout_ms, memory, urgent=urgent)

    def post_unanswered(self, api: Api, request: Any, around: Around = ()) -> None:
        """Send a request that gets no reply."""
        self.connection.send_unanswered(self._pieces(api, request, around)[1])

    def _pieces(self, api: Api, request: Any, around: Around) -> tuple[int, list[Buffer]]:
        number = self.connection.next_correlation_id()
        return number, write_request_around(api, self.versions.of(api), number, self._client_id, request, around)

    async def call(
        self,
        api: Api,
        request: Any,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        memory: Callable[[int], memoryview] = fresh,
        by_hand: ByHand | None = None,
        around: Around = (),
        *,
        urgent: bool = False,
    ) -> Any:
        """Send a request and return its reply; the arguments as for `post`. Raises `KafkaError(NETWORK_EXCEPTION |
        REQUEST_TIMED_OUT | CORRUPT_MESSAGE)`."""
        if by_hand is None:
            frame = await self.post(api, request, timeout_ms, memory, around, urgent=urgent)
        else:
            frame = await self._post_by_hand(api, request, timeout_ms, memory, by_hand)
            reply = by_hand.read_reply(self.versions.of(api), frame)
            if reply is not None:
                return reply
        try:
            reply = read_reply(api, self.versions.of(api), frame)
        except ProtocolViolation as violation:
            self.connection.close()
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"the broker's reply to {api.name} cannot be read: {violation}"
            ) from None
        self.heed(reply)
        return reply

    def heed(self, reply: Any) -> None:
        """Note for how long the broker reads no more requests, as a reply says if the client has used up a quota."""
        throttle_ms = getattr(reply, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self.connection.muted_for(throttle_ms / 1000)

    def _post_by_hand(
        self, api: Api, request: Any, timeout_ms: int, memory: Callable[[int], memoryview], by_hand: ByHand
    ) -> asyncio.Future[memoryview]:
        number = self.connection.next_correlation_id()
        packed = by_hand.write(self.versions.of(api), number, self._client_id, request)
        if packed is None:
            return self.post(api, request, timeout_ms, memory)
        return self.connection.send(number, [packed], timeout_ms, memory)


async def connect(
    address: Address,
    client_id: str,
    timeout_ms: int,
    max_reply_bytes: int = MAX_REPLY_BYTES,
    highest: Mapping[int, int] = NO_LIMITS,
    intended: IntendedBroker | None = None,
    tls: ssl.SSLContext | None = None,
) -> Link:
    """Dial, with TLS if a context is given, and agree on versions; `highest` limits the versions of some APIs (key ->
    version). Raises `KafkaError`: `RebootstrapRequired` if the address is that of another broker than the intended one,
    and that broker can tell; `SslHandshakeFailed`."""
    connection = await dial(address.host, address.port, timeout_ms=timeout_ms, max_reply_bytes=max_reply_bytes, tls=tls)
    try:
        version = API_VERSIONS.high
        while True:
            correlation_id = connection.next_correlation_id()
            request = versions_request(version, correlation_id, client_id, intended)
            answer = read_versions(version, await connection.send(correlation_id, [request], timeout_ms), highest)
            if isinstance(answer, Versions):
                return Link(connection, answer, client_id)
            version = answer
    except ProtocolViolation as violation:
        connection.close()
        raise KafkaError(
            ErrorCode.NETWORK_EXCEPTION, f"{address} does not speak Kafka's protocol: {violation}"
        ) from None
    except BaseException:
        connection.close()
        raise
