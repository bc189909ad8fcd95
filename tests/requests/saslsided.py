"""A server that lets nobody in who has not logged in, over real sockets, and a client of raw frames."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.patience import stretched
from moldau.handlers.security import sasl
from moldau.net.server import Server
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, HEARTBEAT, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.heartbeat import HeartbeatResponse
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.requests.authentication import ServerLogin, guarded
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.transport.sasl.exchange import Authenticated
from moldau.transport.sasl.plain import PlainServer
from moldau.turns import Turns

ALICE, BOB = b"\0alice\0secret", b"\0bob\0secret"


PASSWORDS = {"alice": "secret", "bob": "secret"}


class Expiring(PlainServer):
    """PLAIN with credentials that expire."""

    def __init__(self, expires_ms: int | None, passwords: Mapping[str, str] = PASSWORDS):
        super().__init__(passwords)
        self._expires_ms = expires_ms

    def answer(self, message: bytes) -> bytes:
        answer = super().answer(message)
        assert self.authenticated is not None
        self.authenticated = Authenticated(self.authenticated.user, self._expires_ms)
        return answer


@dataclass
class TwoUsers:
    """Logins of alice and bob, by two names of one mechanism; `now` is their clock."""

    mechanisms: tuple[str, ...] = ("PLAIN", "OTHER")
    receive_bytes_max: int = 1_000
    failure_delay_ms: int = 0
    timeout_ms: int = 60_000
    longest_ms: int = 0
    expires_ms: int | None = None
    now: int = 1_000_000
    set_back_ms: int = 0
    principals: list[str] = field(default_factory=list)
    make: Callable[[], ServerLogin] | None = None

    def begin(self, mechanism: str) -> ServerLogin:
        return Expiring(self.expires_ms) if self.make is None else self.make()

    def session_ms(self, mechanism: str) -> int:
        return self.longest_ms

    def now_ms(self) -> int:
        return self.now - self.set_back_ms

    def elapsed_ms(self) -> int:
        return self.now


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    async def ask(self, api: Api, version: int, request: Any) -> Any:
        self.writer.write(codec.write_request(api, version, 7, "test", request))
        return codec.read_reply(api, version, await self.frame())

    async def frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return await self.ask(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))

    async def authenticate(self, message: bytes = ALICE, version: int = 2) -> Any:
        return await self.ask(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=message))

    async def heartbeat(self) -> Any:
        return await self.ask(HEARTBEAT, 0, HEARTBEAT.request())

    async def log_in(self, message: bytes = ALICE) -> Any:
        assert (await self.handshake()).error_code == 0
        return await self.authenticate(message)

    async def is_closed(self) -> bool:
        """Whether the server closes without another byte; waits for either."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True


@asynccontextmanager
async def serving(logins: TwoUsers) -> AsyncIterator[Callable[[], Awaitable[RawClient]]]:
    """Clients of a listener with these logins."""

    def heartbeat(request: Any, call: Call) -> HeartbeatResponse:
        logins.principals.append(call.session.principal)
        return HeartbeatResponse()

    handlers = {
        SASL_HANDSHAKE.key: sasl.handshake,
        SASL_AUTHENTICATE.key: sasl.authenticate,
        API_VERSIONS.key: lambda request, call: ApiVersionsResponse(),
        HEARTBEAT.key: heartbeat,
    }
    dispatch = Dispatch(handlers, Gate(), Turns(Runtime()))
    server = Server(guarded(dispatch, {"SASL": logins}, dispatch.connected))
    port, plain = await server.start("127.0.0.1", 0, "SASL"), await server.start("127.0.0.1", 0, "PLAINTEXT")
    await server.serve()
    clients = []

    async def dial(listener: str = "SASL") -> RawClient:
        there = port if listener == "SASL" else plain
        clients.append(RawClient(*await asyncio.open_connection("127.0.0.1", there)))
        return clients[-1]

    try:
        yield dial
    finally:
        for client in clients:
            client.writer.transport.abort()
        await server.stop()


def play(scenario: Callable[[Any], Awaitable[None]], logins: TwoUsers | None = None) -> None:
    async def whole() -> None:
        async with asyncio.timeout(stretched(30)), serving(logins or TwoUsers()) as dial:
            await scenario(dial)

    asyncio.run(whole())
