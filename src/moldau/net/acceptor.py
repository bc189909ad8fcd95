"""The listening side of a TLS listener: it accepts connections, and hands them over once their handshake is done.

Each handshake runs by itself, so a slow one holds up nobody. At most `HANDSHAKES_MAX` are open, and
`HANDSHAKES_OF_HOST_MAX` of one address; one more ends the oldest, which has had the most time. All of them count as
connections of their host and of the broker. The context is asked for at each handshake, so new certificates are used
from the next one on.
"""

import asyncio
import logging
import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from moldau.net.accepted import Connection
from moldau.net.peer import Peer
from moldau.net.ports import Acceptor

if TYPE_CHECKING:
    from moldau.net.measured import RequestTimes

log = logging.getLogger(__name__)

HANDSHAKE_S = 10.0
"""The longest time that a handshake may take."""
HANDSHAKES_MAX = 1000
HANDSHAKES_OF_HOST_MAX = 100
"""Of one address: a client that goes on with all of them at once holds up the loop for about 50 ms."""
GOODBYE_S = 2.0
"""How long a connection that was closed waits for the client to say that it has got everything."""
AT_ONCE = 8
"""The most connections accepted in one turn of the loop: a handshake costs up to 1 ms."""
NO_DESCRIPTOR_S = 1.0
"""The pause if the system has no descriptor left."""
WAITING_S = 0.05
"""The pause if connections wait to be served: above a maximum or a rate no handshake is begun."""

_REASONS = {
    "HTTP_REQUEST": "it speaks HTTP without TLS",
    "HTTPS_PROXY_REQUEST": "it asks for an HTTP proxy",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "it has no version of TLS that ssl.enabled.protocols allows",
    "NO_SHARED_CIPHER": "it has no cipher suite that this listener allows",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate, and ssl.client.auth is required",
    "UNEXPECTED_EOF_WHILE_READING": "it closed the connection",
}
"""OpenSSL's reasons in words."""


class ListenersTls(Protocol):
    """What the server has to know of a listener with TLS."""

    def context(self) -> ssl.SSLContext:
        """The context for the next handshake."""

    def principal(self, certificate: bytes | None) -> str | None:
        """The principal of a client with this certificate (DER), which the handshake has verified. Raises `ValueError`
        if the client may not connect."""


class SecureServer(Acceptor, Protocol):
    """The server, as its acceptors know it."""

    connections: dict[Connection, None]
    per_host: dict[str, int]
    times: "RequestTimes | None"
    shaking: dict[asyncio.Task[None], str]
    """The open handshakes of all listeners, the oldest first, with the host of the client."""

    def makes_wait(self, listener: str) -> bool:
        """Whether a connection of that listener waits to be served: further ones are not accepted meanwhile."""


class SecureConnection(Connection):
    """An accepted connection with TLS; it is made once its handshake is done."""

    def __init__(self, server: Acceptor, loop: asyncio.AbstractEventLoop, listener: str, tls: ListenersTls):
        super().__init__(server, loop, listener)
        self._tls = tls
        self._principal: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        try:
            self._principal = self._tls.principal(certificate)
        except ValueError as error:
            self._closed = True
            host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
            refused(self.server, self.listener, Peer(host, port), str(error))
            cast(asyncio.Transport, transport).abort()
            return
        super().connection_made(transport)

    def begin(self, sent: bytes = b"") -> None:
        self.peer = self.peer._replace(principal=self._principal)
        super().begin(sent)


class SecureAcceptor:
    """A bound socket; made by `bind`. It has the interface of asyncio's `Server`."""

    def __init__(
        self,
        server: SecureServer,
        loop: asyncio.AbstractEventLoop,
        bound: socket.socket,
        listener: str,
        tls: ListenersTls,
    ):
        self.sockets = (bound,)
        self._server = server
        self._loop = loop
        self._listener = listener
        self._tls = tls
        self._pause: asyncio.TimerHandle | None = None
        self._mine: set[asyncio.Task[None]] = set()
        self._kind = SecureConnection
        if server.times is not None:
            from moldau.net.measured import measured  # only metrics need it

            self._kind = cast(type[SecureConnection], measured(SecureConnection, server.times))

    @classmethod
    async def bind(
        cls,
        server: SecureServer,
        loop: asyncio.AbstractEventLoop,
        address: tuple[str, int],
        listener: str,
        tls: ListenersTls,
        backlog: int,
    ) -> "SecureAcceptor":
        """Raises `OSError`."""
        infos = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = infos[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(place)
            bound.listen(backlog)
        except BaseException:
            bound.close()
            raise
        return cls(server, loop, bound, listener, tls)

    async def start_serving(self) -> None:
        self._loop.add_reader(self.sockets[0].fileno(), self._accept)

    def close(self) -> None:
        bound = self.sockets[0]
        if bound.fileno() >= 0:
            self._loop.remove_reader(bound.fileno())
            bound.close()
        if self._pause is not None:
            self._pause.cancel()
        for task in self._mine:
            task.cancel()

    def _accept(self) -> None:
        if self._server.makes_wait(self._listener):
            self._rest(WAITING_S)
            return
        for _ in range(AT_ONCE):
            try:
                accepted, address = self.sockets[0].accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                line = "the listener %s accepts nothing for %.0f s: %s"
                self._server.notices.warning(self._listener, line, self._listener, NO_DESCRIPTOR_S, error.strerror)
                self._rest(NO_DESCRIPTOR_S)
                return
            accepted.setblocking(False)
            self._begin(accepted, Peer(str(address[0]), int(address[1])))

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self.sockets[0].fileno())
        self._pause = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self.sockets[0].fileno(), self._accept)

    def _begin(self, accepted: socket.socket, peer: Peer) -> None:
        server, shaking = self._server, self._server.shaking
        of_host = [task for task, host in shaking.items() if host == peer.host]
        here = server.per_host.get(peer.host, 0) + len(of_host)
        open_at_all = len(server.connections) + len(shaking)
        if here >= server.limits.of_host(peer.host) or (open_at_all >= server.limits.room and not shaking):
            accepted.close()
            refused(server, self._listener, peer, "too many connections")
            return
        is_full = len(shaking) >= HANDSHAKES_MAX or open_at_all >= server.limits.room
        if is_full or len(of_host) >= HANDSHAKES_OF_HOST_MAX:
            oldest = next(iter(shaking)) if is_full else of_host[0]
            del shaking[oldest]
            oldest.cancel()
        task = self._loop.create_task(self._shake(accepted, peer))
        shaking[task] = peer.host
        self._mine.add(task)
        task.add_done_callback(partial(self._shaken, accepted))

    def _shaken(self, accepted: socket.socket, task: "asyncio.Task[None]") -> None:
        self._server.shaking.pop(task, None)
        self._mine.discard(task)
        if task.cancelled():  # perhaps before it began, and then nothing else has the socket
            accepted.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a TLS handshake failed", exc_info=error)

    async def _shake(self, accepted: socket.socket, peer: Peer) -> None:
        loop = self._loop
        try:
            await loop.connect_accepted_socket(
                lambda: self._kind(self._server, loop, self._listener, self._tls),
                accepted,
                ssl=self._tls.context(),
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=GOODBYE_S,
            )
        except OSError as error:
            refused(self._server, self._listener, peer, f"the TLS handshake failed: {_why(error)}")


def refused(server: Acceptor, listener: str, peer: Peer, why: str) -> None:
    """Write the line of a connection that is closed before its first request."""
    line = "closing the connection from %s on the listener %s: %s"
    server.notices.info(f"{peer.host} {why}", line, peer, listener, why)


def _why(error: OSError) -> str:
    """Why a handshake failed, in words about the client."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ConnectionAbortedError):
        return f"it took longer than {HANDSHAKE_S:.0f} s"
    if not isinstance(error, ssl.SSLError) or error.reason is None:
        return "it closed the connection"
    reason = error.reason
    words = reason.replace("_", " ").lower()
    _, is_alert, alert = words.partition(" alert ")
    if is_alert:
        return f"it refuses this listener's certificate or settings ({alert})"
    return _REASONS.get(reason, words)
