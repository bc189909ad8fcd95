"""`HttpServer`: serves an ASGI application with uvicorn, on a socket that is bound before anything else is done."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uvicorn.config import Config
from uvicorn.server import Server

from moldau.errors import CannotListen
from moldau.http.bounded import BoundedHttp
from moldau.names import counted

if TYPE_CHECKING:
    from moldau.http.tls import HttpTls

CONNECTIONS_MAX = 1_000
STOP_S = 5.0
"""How long a stop waits for the answers to requests that have begun."""
CANCELLED_S = 1.0
"""How long it waits for what the others do at their end."""
LOOK_S = 0.02

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TlsFiles:
    """PEM files for TLS, which are read again when they change; the key may be in the certificate's file. Without a
    certificate there is no TLS."""

    certificate: Path | None = None
    key: Path | None = None
    key_password: str = field(default="", repr=False)


class _Uvicorn(Server):
    """uvicorn's server without handlers of signals: those belong to the process that it is in."""

    is_over = False
    """Requests are cancelled, which is no fault of theirs."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what has begun, for `STOP_S`. Then break the connections that are left: uvicorn would log a traceback
        for each, and leave those whose clients take no answer open."""
        loop, state = asyncio.get_running_loop(), self.server_state
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        for connection in list(state.connections):
            connection.shutdown()
        end_s = loop.time() + STOP_S
        while (state.connections or state.tasks) and loop.time() < end_s:
            await asyncio.sleep(LOOK_S)
        if state.connections or state.tasks:
            left = counted(max(len(state.connections), len(state.tasks)), "request")
            logger.warning("the stop ends %s unanswered, after %g s", left, STOP_S)
            await self._break_off()

    async def _break_off(self) -> None:
        self.is_over = True
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # now uvicorn knows that the clients are gone
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCELLED_S)


class HttpServer:
    """A server that is bound to its port at once, which raises `CannotListen`, and `ConfigError` for a certificate that
    cannot be used. `use` gives it an application; `start` returns when it serves, or raises; `stop` ends it."""

    def __init__(self, host: str, port: int, tls: TlsFiles = TlsFiles()):
        self._host = host
        self.tls = None if tls.certificate is None else _with(tls.certificate, tls)
        self._socket = bound(host, port)
        self._server: _Uvicorn | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def address(self, host: str = "") -> str:
        """`http://HOST:PORT`, or https; its own host by default."""
        host = host or self._host
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def use(self, application: Any, connections_max: int = CONNECTIONS_MAX) -> None:
        """Serve this application."""

        async def until_over(scope: Any, receive: Any, send: Any) -> None:
            try:
                await application(scope, receive, send)
            except asyncio.CancelledError:
                if self._server is None or not self._server.is_over:
                    raise

        config = Config(
            until_over,
            http=BoundedHttp,
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            limit_concurrency=connections_max,
        )
        config.load()
        if self.tls is not None:
            config.ssl = self.tls.context  # it would make one of its own, which keeps its certificate for good
        self._server = _Uvicorn(config)

    async def start(self) -> None:
        """Raises `CannotListen`; `stop` has nothing to do then."""
        assert self._server is not None
        if self.tls is not None:
            self.tls.start()
        serving = self._serving = asyncio.ensure_future(self._server.serve([self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.001)
        if self._server.started:
            return
        self._serving = None
        if self.tls is not None:
            await self.tls.stop()
        failure = serving.exception()
        if failure is not None and not isinstance(failure, OSError):
            raise failure
        # Two sockets may be bound to one port, and only one of them may listen.
        raise _cannot_listen(self._host, self.port, failure or OSError("the server has ended"))

    async def keep(self) -> None:
        """Serve until it is stopped or fails."""
        assert self._serving is not None
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Answer what has begun, for up to `STOP_S`, then end."""
        if self._server is not None:
            self._server.should_exit = True
        if self._serving is not None:
            await asyncio.wait([self._serving])
            if self.tls is not None:
                await self.tls.stop()

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()


def _with(certificate: Path, tls: TlsFiles) -> "HttpTls":
    from moldau.http.tls import HttpTls  # most servers have no TLS

    return HttpTls(certificate, tls.key, tls.key_password)


def bound(host: str, port: int) -> socket.socket:
    """A socket that is bound to the first address of the host. Raises `CannotListen`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sets TCP_NODELAY only on a socket that names its protocol. Without it each answer waits 40 ms for the
        # client's delayed ACK, as uvicorn writes its head and its body one after the other.
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as failure:
        raise _cannot_listen(host, port, failure) from None
    return made


def _cannot_listen(host: str, port: int, failure: OSError) -> CannotListen:
    return CannotListen(failure.errno, f"cannot listen on {host}:{port}: {failure.strerror or failure}")
