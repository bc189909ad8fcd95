"""A frame -> the handler of its API -> a reply.

Which APIs there are, and in which versions, is `protocol/apis.py`; who answers each is the table the broker is
assembled with. What is not in both closes the connection, as Kafka does; ApiVersions alone answers a version it does
not know, in version 0 and with the range it has (KIP-511). Produce and Fetch see their frames: they
are read and packed by hand.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, TypeAlias

from moldau.errors import ProtocolViolation
from moldau.handlers.context import Context
from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, APIS, FETCH, PRODUCE, Api
from moldau.protocol.codec import FIXED_HEADER, RequestHeader
from moldau.protocol.primitives import skip_tagged_fields
from moldau.runtime import Answer, Reply

assert (PRODUCE.key, PRODUCE.low, PRODUCE.high) == (0, 0, 13)
assert (FETCH.key, FETCH.low, FETCH.high) == (1, 4, 18)
Handler: TypeAlias = Callable[[Any, Context], Any]
"""Takes the request's message, gives the response's or an awaitable of it."""


class Dispatch:
    def __init__(
        self,
        produce: Callable[[int, int, int, memoryview], Answer],
        fetch: Callable[[int, int, int, memoryview], Answer],
        handlers: Mapping[int, Handler],
    ):
        missing = APIS.keys() - handlers.keys() - {PRODUCE.key, FETCH.key}
        assert not missing, f"advertised but not handled: {missing}"
        self._produce = produce
        self._fetch = fetch
        self._handlers = handlers

    def __call__(self, frame: memoryview, peer: Peer) -> Answer:
        """Raises `ProtocolViolation` for what is no request of ours: its connection is closed."""
        if len(frame) >= FIXED_HEADER.size:
            key, version, correlation_id, length = FIXED_HEADER.unpack_from(frame)
            if key == 0 and 0 <= version <= 13:  # PRODUCE, whose client id nobody needs
                body = FIXED_HEADER.size + length if length > 0 else FIXED_HEADER.size
                if version >= PRODUCE.flexible:
                    body = skip_tagged_fields(frame, body)
                return self._produce(version, correlation_id, body, frame)
            if key == 1 and 4 <= version <= 18:  # FETCH
                body = FIXED_HEADER.size + length if length > 0 else FIXED_HEADER.size
                if version >= FETCH.flexible:
                    body = skip_tagged_fields(frame, body)
                return self._fetch(version, correlation_id, body, frame)
        header = codec.read_header(frame)
        key, version, correlation_id, client_id, body = header
        api = APIS[key]
        if not api.low <= version <= api.high:
            if api is not API_VERSIONS:
                raise ProtocolViolation(f"{api.name} version {version}")
            request: Any = api.request()
        else:
            request = codec.read_request(api, version, frame, body)
        context = Context(key, version, correlation_id, client_id, peer.host)
        response = self._handlers[key](request, context)
        if isawaitable(response):
            return _later(api, header, response)
        return [_reply(api, header, response)]


async def _later(api: Api, header: RequestHeader, response: Awaitable[Any]) -> Reply:
    return [_reply(api, header, await response)]


def _reply(api: Api, header: RequestHeader, response: Any) -> bytes:
    known = api.low <= header.version <= api.high
    return codec.write_reply(api, header.version if known else 0, header.correlation_id, response)
