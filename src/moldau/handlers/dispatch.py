"""A frame -> the handler of its API -> a reply.

Which APIs there are, and in which versions, is `protocol/apis.py`; who answers each is the table the broker is
assembled with. What is not in both closes the connection, as Kafka does; ApiVersions alone answers a version it does
not know, in version 0 and with the range it has (KIP-511). Produce and Fetch see their frames: they
are read and packed by hand.

A handler answers with the response's message, with steps that end in it (`turns`), or with an awaitable of either. What
is small is answered without awaiting. A wide request is read and its reply packed in the executor, and its handler runs
in turns; so does a handler that turns out to need more than one turn, however small its request was.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import GeneratorType
from typing import Any, TypeAlias

from moldau.errors import ProtocolViolation
from moldau.handlers.context import Context
from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, APIS, FETCH, PRODUCE, Api
from moldau.protocol.codec import FIXED_HEADER, RequestHeader
from moldau.protocol.primitives import skip_tagged_fields
from moldau.protocol.schema import is_wide, release
from moldau.runtime import Answer, Reply
from moldau.turns import Turns, turn

assert (PRODUCE.key, PRODUCE.low, PRODUCE.high) == (0, 0, 13)
assert (FETCH.key, FETCH.low, FETCH.high) == (1, 4, 18)
Handler: TypeAlias = Callable[[Any, Context], Any]
"""Takes the request's message, and answers with the response's, with steps that end in it, or an awaitable of those."""


class Dispatch:
    def __init__(
        self,
        produce: Callable[[int, int, int, memoryview], Answer],
        fetch: Callable[[int, int, int, memoryview], Answer],
        handlers: Mapping[int, Handler],
        turns: Turns,
    ):
        missing = APIS.keys() - handlers.keys() - {PRODUCE.key, FETCH.key}
        assert not missing, f"advertised but not handled: {missing}"
        self._produce = produce
        self._fetch = fetch
        self._handlers = handlers
        self._turns = turns

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
        api, version, body = APIS[header.key], header.version, header.body
        if not api.low <= version <= api.high:
            if api is not API_VERSIONS:
                raise ProtocolViolation(f"{api.name} version {version}")
            request: Any = api.request()
        else:
            if codec.is_wide(frame, body):
                return self._wide(api, header, peer, bytes(frame))
            request = codec.read_request(api, version, frame, body)
        response = self._ask(api, header, peer, request)
        if isinstance(response, api.response):
            return [_packed(api, header, response)]
        return self._later(api, header, response, [])

    def _ask(self, api: Api, header: RequestHeader, peer: Peer, request: Any) -> Any:
        """The response, or what it takes to have it: steps that are left after one turn, or an awaitable."""
        context = Context(header.key, header.version, header.correlation_id, header.client_id, peer.host)
        response = self._handlers[api.key](request, context)
        return turn(response) if type(response) is GeneratorType else response

    async def _wide(self, api: Api, header: RequestHeader, peer: Peer, frame: bytes) -> Reply:
        """`frame` waits for its turn in memory of its own. Raises `ProtocolViolation` if other frames leave no
        room for it."""
        turns = self._turns
        with turns.holding(len(frame)):
            async with turns:
                request = await turns.off_loop(partial(codec.read_request, api, header.version, frame, header.body))
                response = await turns.finish(self._ask(api, header, peer, request))
                messages = [request]
                del request
                if isinstance(response, api.response):
                    messages.append(response)
                    del response
                    return [await turns.off_loop(lambda: _packed_last(api, header, messages))]
        del frame  # the answer may take as long as a rebalance
        return await self._later(api, header, response, messages)

    async def _later(self, api: Api, header: RequestHeader, response: Any, messages: list[Any]) -> Reply:
        """The awaited answer may take as long as a rebalance: the queue of wide work continues meanwhile.
        `messages` are freed with the response."""
        if isinstance(response, Awaitable):
            response = turn(await response)
            if isinstance(response, api.response) and not any(map(is_wide, (response, *messages))):
                return [_packed(api, header, response)]
        async with self._turns:
            messages.append(await self._turns.finish(response))
            del response
            return [await self._turns.off_loop(lambda: _packed_last(api, header, messages))]


def _packed_last(api: Api, header: RequestHeader, messages: list[Any]) -> bytes:
    """Pack the last of the messages, which is the response, and free all of them. They are freed in the executor, and
    before the cyclic garbage collector, which would go through all their elements, is on again."""
    packed = _packed(api, header, messages[-1])
    release(messages)
    return packed


def _packed(api: Api, header: RequestHeader, response: Any) -> bytes:
    known = api.low <= header.version <= api.high
    return codec.write_reply(api, header.version if known else 0, header.correlation_id, response)
