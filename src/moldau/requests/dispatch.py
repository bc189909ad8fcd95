"""The frames of a connection -> calls -> the gate -> handlers -> replies: one way for all APIs.

`protocol/apis.py` says which APIs are supported, and in which versions; the handlers are those the broker is assembled
with. Any other key or version closes the connection, as in Kafka; ApiVersions alone answers a version that it does not
support, in version 0 and with the range that it does (KIP-511). APIs between brokers are answered only on the listener
for brokers, on connections that were introduced as those of a broker of the same cluster.

A handler answers with the response's message, with steps that end in it (`turns`), or with an awaitable of either. A
small request is answered without awaiting. A wide request is read and its reply packed in the executor, and its handler
runs in turns; so does a handler that needs more than one turn, however small its request is.

The first request of an API waits until the modules of its handler are imported, in the executor: on the loop, that of
FindCoordinator held all other clients for 8 ms on an idle machine, and once for 268 ms on a busy one.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from types import GeneratorType
from typing import Any, NamedTuple

from moldau.errors import ProtocolViolation
from moldau.net.server import Handle, Peer
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, BETWEEN_BROKERS, INTRODUCE
from moldau.protocol.hot_topics import Wide
from moldau.protocol.primitives import skip_tagged_fields
from moldau.protocol.schema import release
from moldau.replies import Answer, Muting, Reply, Unanswered, size_of
from moldau.requests.gate import Gate, Handler, Judged, Pending
from moldau.requests.routes import Route, new_route
from moldau.requests.session import ANONYMOUS, Call, Session
from moldau.runtime import out_of_descriptors
from moldau.turns import Turns, turn

_new = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost
NO_RESPONSE: tuple[Any, ...] = (Judged, Pending, GeneratorType, Awaitable)
"""The types of a handler's answers that are not a response yet."""


class BetweenBrokers(NamedTuple):
    """The handlers of the APIs between brokers, by key, and the name of the only listener that has them."""

    listener: str
    handlers: Mapping[int, Handler]


class Dispatch:
    """All connections of a broker go through one `Dispatch`: it knows the routes, the gate, and the queue of wide
    requests."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        gate: Gate,
        turns: Turns,
        between_brokers: BetweenBrokers | None = None,
        imports: Mapping[int, Callable[[], object]] | None = None,
    ):
        """`imports`: what to call in the executor before the first request of an API, by key."""
        self.gate = gate
        self.noted: list[float] | None = None
        """Where -1 - the key of each request is appended, if somebody counts them (`net/measured.py`)."""
        self.not_imported = dict(imports or {})
        self.routes: dict[int, Route] = {}
        """Those that were asked for, by key and version in one number."""
        self._handlers = handlers
        self._between_brokers = between_brokers
        self._routes_between_brokers: dict[int, Route] = {}
        self._turns = turns

    def connected(self, peer: Peer, listener: str) -> Handle:
        """A new connection: returns the function that answers its frames."""
        return self.requests_of(Session(listener, peer, peer.principal or ANONYMOUS, authorizer=self.gate.authorizer))

    def requests_of(self, session: Session) -> Handle:
        """The function that answers the frames of that session."""
        return Requests(self, session).answer

    def route(self, kind: int, session: Session) -> Route | None:
        """The route for a key and version; None if the version is not supported on that connection."""
        if kind >> 16 in BETWEEN_BROKERS:
            return self._route_between_brokers(kind, session)
        route = self.routes.get(kind)
        if route is None and (route := new_route(kind, self._handlers)) is not None:
            self.routes[kind] = route
        return route

    def _route_between_brokers(self, kind: int, session: Session) -> Route | None:
        between = self._between_brokers
        if between is None or session.listener != between.listener:
            return None
        if session.introduction is None and kind >> 16 != INTRODUCE.key:
            return None
        route = self._routes_between_brokers.get(kind)
        if route is None and (route := new_route(kind, between.handlers, BETWEEN_BROKERS)) is not None:
            self._routes_between_brokers[kind] = route
        return route

    async def first(self, key: int, frame: bytearray, answer: Handle) -> Reply | Muting | Unanswered:
        """Import what that API needs, and answer its request then. `frame` is a copy, as for `wide`."""
        with self._turns.holding(len(frame)):
            async with self._turns:
                if key in self.not_imported:
                    try:
                        await self._turns.off_loop(self.not_imported[key])
                    except OSError as error:
                        if out_of_descriptors(error):  # clients connect again, and another request tries again
                            raise ProtocolViolation(f"its code cannot be read: {error.strerror}") from None
                        raise
                    del self.not_imported[key]
        noted = [] if self.noted is None else self.noted
        count = len(noted)
        try:
            answered = answer(memoryview(frame))
        finally:
            del noted[count:]  # it was noted when it came
        return await answered if isinstance(answered, Awaitable) else answered

    async def wide(self, route: Route, call: Call, frame: Any, at: int) -> Reply | Muting | Unanswered:
        """Read and answer a wide request. `frame` has been copied, and waits for its turn. Raises `ProtocolViolation`
        if the frames already waiting leave no room for it."""
        turns = self._turns
        with turns.holding(len(frame)):
            async with turns:
                request = await turns.off_loop(partial(route.read_wide, frame, call.version, at))
                response = await turns.finish(turn(self.gate(request, call, route.handler)))
                if not isinstance(response, NO_RESPONSE):
                    messages = [request, response]
                    del request, response
                    return await turns.off_loop(lambda: _packed_last(route, call, messages))
            if type(response) is Judged:
                return await self.judged_later(route, call, request, response)
            if route.views_frame:
                return await self.later(route, call, request, response)
        del frame  # the answer may take as long as a rebalance
        return await self.later(route, call, request, response)

    def judged(self, route: Route, call: Call, request: Any, judged: Judged) -> Answer:
        """The answer to a client that is throttled or accounted for."""
        response = turn(judged.answer)
        if type(response) is Pending:
            return self.unanswered(route, call, response, judged)
        if isinstance(response, NO_RESPONSE):
            return self.judged_later(route, call, request, judged._replace(answer=response))
        return _charged(route, call, request, response, judged)

    async def judged_later(self, route: Route, call: Call, request: Any, judged: Judged) -> Reply | Muting | Unanswered:
        """The same for an answer that must be awaited, or that takes more than one turn."""
        response = judged.answer
        while isinstance(response, Awaitable | GeneratorType):
            response = await response if isinstance(response, Awaitable) else await self._turns.run(response)
        if type(response) is Pending:
            return self.unanswered(route, call, response, judged)
        if route.is_wide(response) or route.is_wide(request):
            return await self._charged_wide(route, call, request, response, judged)
        return _charged(route, call, request, response, judged)

    async def _charged_wide(
        self, route: Route, call: Call, request: Any, response: Any, judged: Judged
    ) -> Reply | Muting:
        """What `_charged` returns; a wide reply is packed in the executor."""
        pack = partial(route.pack, call.version, call.correlation_id, request)
        async with self._turns:
            reply: Reply = await self._turns.off_loop(partial(pack, response, judged.throttle_ms))
            sent, ms = judged.settled(response, size_of(reply))
            if sent is not response or ms != judged.throttle_ms:
                reply = await self._turns.off_loop(partial(pack, sent, ms))
        return Muting(reply, ms) if ms else reply

    async def later(self, route: Route, call: Call, request: Any, response: Any) -> Reply | Unanswered:
        """The reply to an answer that must be awaited. That may take as long as a rebalance; the queue of wide work
        continues meanwhile."""
        if isinstance(response, Awaitable):
            response = turn(await response)
            if not (isinstance(response, NO_RESPONSE) or route.is_wide(response) or route.is_wide(request)):
                return route.pack(call.version, call.correlation_id, request, response)
        if type(response) is Pending:
            return self.unanswered(route, call, response)
        async with self._turns:
            messages = [request, await self._turns.finish(response)]
            del request, response
            return await self._turns.off_loop(lambda: _packed_last(route, call, messages))

    def unanswered(self, route: Route, call: Call, pending: Pending, judged: Judged | None = None) -> Unanswered:
        """The answer to a request whose response is still awaited. A wide reply is packed in the executor, when it is
        the next one to leave."""
        request, response = pending

        def packed(answer: Any) -> Reply | Muting | Unanswered:
            if route.is_wide(answer) or route.is_wide(request):
                wide = (
                    self.later(route, call, request, answer)
                    if judged is None
                    else self._charged_wide(route, call, request, answer, judged)
                )
                return Unanswered(asyncio.get_running_loop().create_task(wide), _as_it_is, admits)
            if judged is not None:
                return _charged(route, call, request, answer, judged)
            return route.pack(call.version, call.correlation_id, request, answer)

        admits = _same_api(call.key)
        return _new(Unanswered, (response, packed, admits))


def _charged(route: Route, call: Call, request: Any, response: Any, judged: Judged) -> Reply | Muting:
    """The reply to a client that is throttled or accounted for. It carries the time for which its connection is muted.
    The accounting has to know how long it is, so it is packed once more for a client that the accounting throttles."""
    reply = route.pack(call.version, call.correlation_id, request, response, judged.throttle_ms)
    sent, ms = judged.settled(response, size_of(reply))
    if sent is not response or ms != judged.throttle_ms:
        reply = route.pack(call.version, call.correlation_id, request, sent, ms)
    return Muting(reply, ms) if ms else reply


def _as_it_is(reply: Any) -> Any:
    return reply


@cache
def _same_api(key: int) -> Callable[[memoryview], bool]:
    """Whether a frame is a request of that API."""
    begins = key.to_bytes(2, "big")
    return lambda frame: frame[:2] == begins


def _packed_last(route: Route, call: Call, messages: list[Any]) -> Reply:
    """Pack the reply to a request and its response, and free both. They are freed in the executor, and before the
    cyclic garbage collector is enabled again: it would traverse all their elements."""
    request, response = messages
    packed = route.pack(call.version, call.correlation_id, request, response)
    del request, response
    release(messages)
    return packed


class Requests:
    """The requests of one connection.

    Nearly all of them come with the same client id. The header is therefore unpacked together with a client id of that
    length, and only a different client id is decoded again.
    """

    __slots__ = ("_at", "_client_id", "_dispatch", "_gate", "_length", "_note", "_routes", "_session", "_unpack")

    def __init__(self, dispatch: Dispatch, session: Session):
        self._dispatch = dispatch
        self._session = session
        self._gate = dispatch.gate.__call__  # a bound method costs less to call than its instance
        self._routes = dispatch.routes
        # A forwarded request is counted by the broker that its client is connected to.
        self._note = None if dispatch.noted is None or session.is_forwarded else dispatch.noted.append
        self._expect(None)

    def _expect(self, client_id: str | None) -> None:
        """Set the session's client id, and prepare the header layout for it."""
        self._session.client_id = client_id
        encoded = b"" if client_id is None else client_id.encode()
        self._client_id = encoded
        self._length = -1 if client_id is None else len(encoded)
        header = struct.Struct(f">iih{len(encoded)}s")  # key and version, correlation id, client id's length, client id
        self._unpack = header.unpack_from
        self._at = header.size

    def answer(self, frame: memoryview) -> Answer:
        """Raises `ProtocolViolation` for a frame that is not a request of a supported API and version."""
        try:
            kind, correlation_id, length, client_id = self._unpack(frame)
        except struct.error:
            kind, correlation_id, length, client_id = 0, 0, -2, b""
        if client_id != self._client_id or length != self._length:
            header = codec.read_header(frame)
            self._expect(header.client_id)
            kind, correlation_id = header.key << 16 | header.version, header.correlation_id
        route, note = self._routes.get(kind), self._note
        if route is None:
            # Importing a handler here would hold up every other connection (see above).
            if (key := kind >> 16) in self._dispatch.not_imported:
                if note is not None:
                    note(~key)
                return self._dispatch.first(key, bytearray(frame), self.answer)
            route = self._dispatch.route(kind, self._session)
            if route is None:
                return self._unsupported(frame)
        key, version, flexible, read, handler, at_once, pack, _, _, _, _ = route
        if note is not None:
            note(~key)
        at = skip_tagged_fields(frame, self._at) if flexible else self._at
        session = self._session
        call = _new(Call, (session, key, version, correlation_id, session.client_id, len(frame)))
        try:
            request = read(frame, version, at)
        # To read it here would hold up the loop. It is read from a copy: the frame is gone when this returns.
        except Wide:
            return self._dispatch.wide(route, call, route.copy(frame), at)
        answer = self._gate(request, call, handler)
        # First, because nearly all answers end here: comparing one type costs less than the checks below.
        if type(answer) is at_once:
            return pack(version, correlation_id, request, answer)
        # Not awaited: that would cost a task, and hold back the requests of this API behind it (Produce with acks=all).
        if type(answer) is Pending:
            return self._dispatch.unanswered(route, call, answer)
        # Before the kinds that may be inside it: whatever the answer is, it is accounted for, or its connection muted.
        if type(answer) is Judged:
            return self._dispatch.judged(route, call, request, answer)
        # Most handlers with steps need a single turn: then they end here, without a task.
        if type(answer) is GeneratorType:
            answer = turn(answer)
        # Also the usual end of routes that have no type in `at_once`: they import their response with the first one.
        if not isinstance(answer, NO_RESPONSE):
            return pack(version, correlation_id, request, answer)
        # A task is needed only here: an awaitable, or steps that are not done, end in a later turn of the loop.
        return self._dispatch.later(route, call, request, answer)

    def _unsupported(self, frame: memoryview) -> Answer:
        """Answer a request whose version is not supported. ApiVersions is answered in version 0; for every other API
        this raises `ProtocolViolation`."""
        header, api = codec.read_header(frame), API_VERSIONS
        if header.key != api.key:
            raise ProtocolViolation(codec.request_name(frame))
        route = self._dispatch.route(api.key << 16, self._session)
        assert route is not None, "ApiVersions is supported from version 0 on"
        if self._note is not None:
            self._note(~api.key)
        call = Call(self._session, api.key, header.version, header.correlation_id, header.client_id, len(frame))
        request = api.request()
        answer = self._gate(request, call, route.handler)
        if type(answer) is Judged:
            answer = answer.answer
        return route.pack(0, header.correlation_id, request, answer)
