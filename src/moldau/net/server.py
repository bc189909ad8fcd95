"""The listening side: the listeners, the connections they have accepted, and what these share.

A `Server` is given `connected(peer, listener)`, which returns the function that answers the frames of that connection:
`handle(frame) -> Answer`. How a connection calls it is in `accepted.py`. Neither learns what a Produce is.
"""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from moldau.errors import CannotListen
from moldau.names import counted
from moldau.net.accepted import Connection
from moldau.net.busy_polling import BusyPolling, processors
from moldau.net.fair_share import FairShare
from moldau.net.limits import Limits, addresses
from moldau.net.peer import Peer as Peer
from moldau.net.pool import Pool
from moldau.net.ports import Connected
from moldau.net.ports import Handle as Handle  # these two are part of what a server is given
from moldau.net.watchdog import Watchdog
from moldau.notices import Notices

if TYPE_CHECKING:
    from moldau.net.acceptor import ListenersTls
    from moldau.net.admission import Admission, Entering
    from moldau.net.measured import RequestTimes

log = logging.getLogger(__name__)

SHARED_BYTES = 128 << 10
"""One buffer that all connections of a server read into."""
LOOK_S = 0.5
"""How often the server looks for idle connections, and for slow ones where memory is short."""
GRACE_S = 1.0
"""How long a server that stops waits for what is in flight."""
BACKLOG = 512
"""How many connections may wait to be accepted."""
PORT_TRIES = 10
"""A free port of one address may be taken at the other."""


def cannot_listen(error: OSError, host: str | None, port: int) -> CannotListen:
    """Why this address was not bound, as a sentence about its host and port."""
    place = f"port {port} of {host or 'all interfaces'}"
    if error.errno == errno.EADDRINUSE:
        return CannotListen(error.errno, f"{place} is in use by another process")
    if error.errno == errno.EACCES:
        return CannotListen(error.errno, f"this process has no permission to listen on {place}")
    if error.errno == errno.EADDRNOTAVAIL:
        return CannotListen(error.errno, f"{host} is not an address of this machine")
    if isinstance(error, socket.gaierror):
        return CannotListen(error.errno, f"the host {host} to listen on is not known")
    return CannotListen(error.errno, f"cannot listen on {place}: {error.strerror or error}")


@dataclass
class Server:
    connected: Connected
    limits: Limits = field(default_factory=Limits)
    watchdog: Watchdog = field(default_factory=Watchdog)
    stopwatch: Callable[[], float] = time.perf_counter
    """The clock that measures how long requests take, in seconds."""
    connections: dict[Connection, None] = field(default_factory=dict)
    per_host: dict[str, int] = field(default_factory=dict)
    ip_rate: Callable[[str], float | None] | None = None
    """How many connections a second may come from an address; set by `limit`."""
    urgent: Callable[[memoryview], bool] = lambda frame: False
    """Whether a frame must not wait for others under overload."""
    shaking: "dict[asyncio.Task[None], str]" = field(default_factory=dict)
    """The TLS handshakes that are not done, the oldest first, with the client's host."""
    times: "RequestTimes | None" = None
    """Where the times of requests are counted; None if nobody asks for them."""

    def __post_init__(self) -> None:
        self.pool = Pool(self.limits.queued_max_request_bytes)
        self.notices = Notices(log)
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self._listening: list[asyncio.AbstractServer] = []
        self._with_tls: set[str] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None
        self._admission: Admission | None = None
        self.busy_polling: BusyPolling | None = None
        self._fair_share: FairShare | None = None
        self.watchdog.namers.append(self._name)

    async def start(
        self, host: str | None, port: int, listener: str = "PLAINTEXT", tls: "ListenersTls | None" = None
    ) -> int:
        """Bind the listener of that name; returns its port (a free one for 0). `localhost`, and no host, which means
        every interface, stand for IPv4 and IPv6, with the same port on both. With `tls` its connections use TLS. May be
        called again for further listeners. Raises `CannotListen`; nothing of this listener is bound then."""
        loop = asyncio.get_running_loop()
        self.limit(self.limits, self.ip_rate)
        if self.busy_polling is None and processors() > 1:
            self.busy_polling = BusyPolling(loop, now=self.stopwatch)
        hosts = addresses(host or "")
        for left in range(PORT_TRIES if not port and len(hosts) > 1 else 1, 0, -1):
            taken, opened = port, list[asyncio.AbstractServer]()
            try:
                for each in hosts:
                    server = await self._bind(loop, each, taken, listener, tls)
                    opened.append(server)
                    taken = taken or server.sockets[0].getsockname()[1]
                break
            except OSError as error:
                for bound in opened:
                    bound.close()
                if left == 1:
                    raise cannot_listen(error, host, port) from None
        self._listening += opened
        if self._sweeper is None:
            self._sweeper = loop.call_later(LOOK_S, self._sweep, loop)
        return taken

    async def _bind(
        self, loop: asyncio.AbstractEventLoop, host: str, port: int, listener: str, tls: "ListenersTls | None"
    ) -> asyncio.Server:
        if tls is None:
            kind = Connection
            if self.times is not None:
                from moldau.net.measured import measured  # only metrics need it

                kind = measured(Connection, self.times)
            return await loop.create_server(
                lambda: kind(self, loop, listener), host, port, backlog=BACKLOG, start_serving=False
            )
        self._with_tls.add(listener)
        from moldau.net.acceptor import SecureAcceptor  # no other listener needs it

        return cast(asyncio.Server, await SecureAcceptor.bind(self, loop, (host, port), listener, tls, BACKLOG))

    async def serve(self) -> None:
        """Begin to accept: after this, clients are answered."""
        for server in self._listening:
            await cast(asyncio.Server, server).start_serving()

    def fair_share(self, loop: asyncio.AbstractEventLoop) -> FairShare:
        if self._fair_share is None:
            self._fair_share = FairShare(loop, self.stopwatch)
        return self._fair_share

    @property
    def waiting_for_share(self) -> int:
        """The number of connections whose next request waits for its share of the loop's time."""
        return 0 if self._fair_share is None else len(self._fair_share)

    def is_urgent(self, connection: Connection) -> bool:
        """Whether what waits on this connection is served before that of others."""
        return connection.listener == self.limits.protected_listener or self.urgent(connection.inbox.first())

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what is idle for too long (a negative limit is none), and what is slow if memory is short."""
        idle_since = loop.time() - self.limits.connections_max_idle_ms / 1000
        if self.limits.connections_max_idle_ms >= 0:
            for connection in [c for c in self.connections if c.active_at < idle_since]:
                connection.lose("idle")
        self.pool.look()
        self._sweeper = loop.call_later(LOOK_S, self._sweep, loop)

    def limit(self, limits: Limits, ip_rate: Callable[[str], float | None] | None = None) -> None:
        """Set the limits in force from now on. Call it on the server's loop."""
        self.limits, self.ip_rate = limits, ip_rate
        if self._admission is not None:
            self._admission.follow()
        elif limits.makes_wait or ip_rate is not None:
            from moldau.net.admission import Admission  # most servers have no such limits

            self._admission = Admission(self)
            self._admission.follow()

    @property
    def served(self) -> "list[Entering]":
        return list(self.connections)

    def makes_wait(self, listener: str) -> bool:
        """Whether a connection of that listener waits to be served."""
        return self._admission is not None and self._admission.makes_wait(listener)

    def admit(self, connection: Connection, transport: asyncio.Transport) -> bool:
        """Whether a new connection is served now, and counted; otherwise it waits or was turned away."""
        admission = self._admission
        waiting = 0 if admission is None else admission.waiting
        if self._emptied is not None or len(self.connections) + waiting >= self.limits.room:
            connection.turn_away("too many connections" if self._emptied is None else "the broker stops")
            return False
        return self.enter(connection) if admission is None else admission.arrived(connection, transport)

    def enter(self, connection: "Entering") -> bool:
        """Count a connection; False if its address has too many, and then it was turned away."""
        host = connection.peer.host
        here = self.per_host.get(host, 0)
        if here >= self.limits.of_host(host):
            connection.turn_away("too many connections from its address")
            return False
        self.connections[cast(Connection, connection)] = None
        self.per_host[host] = here + 1
        return True

    def forget(self, connection: Connection) -> None:
        if self.connections.pop(connection, 0) is None:
            host = connection.peer.host
            self.per_host[host] -= 1
            if not self.per_host[host]:
                del self.per_host[host]
            if self._admission is not None:
                self._admission.left(connection)
        if self._emptied is not None and not self.connections and not self._emptied.done():
            self._emptied.set_result(None)

    def _name(self, owner: object) -> str | None:
        """The request and the peer that a turn of the loop served; None if it served none of our connections."""
        if isinstance(owner, FairShare):
            owner = getattr(owner.serving, "__self__", None)
        if isinstance(owner, asyncio.Task):
            owner = next((c for c in self.connections if owner in c.in_flight), None)
        if not isinstance(owner, Connection):
            return None
        return f"{self.watchdog.request_name(owner.asked)} from {owner.peer}"

    def _stop_accepting(self) -> "asyncio.Future[None]":
        """From now on a connection is refused, even one that was accepted already; done when all others are closed."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, asyncio.SelectorEventLoop):  # its closed server never closes what it is accepting
            for sock in [sock for server in self._listening for sock in cast(asyncio.Server, server).sockets]:
                loop.remove_reader(sock.fileno())
            loop.call_soon(self._close_listeners)
        else:
            self._close_listeners()
        if self._sweeper:
            self._sweeper.cancel()
        if self._admission is not None:
            self._admission.stop()
        self._emptied = loop.create_future()
        return self._emptied

    def _close_listeners(self) -> None:
        for server in self._listening:
            server.close()

    def abort(self) -> None:
        """Accept no more, and close all connections at once, whatever is in flight."""
        self._stop_accepting()
        for connection in list(self.connections):
            if connection.listener in self._with_tls:
                connection.abort()  # TLS would wait for the other end to say goodbye
            connection.close()

    async def stop(self) -> None:
        """Accept no more, let requests in flight finish for a moment, close all connections."""
        emptied = self._stop_accepting()
        await asyncio.sleep(0)
        if self.connections:
            log.info("stopping: closing %s", counted(len(self.connections), "connection"))
        for connection in list(self.connections):
            connection.finish()
        if self.connections:
            await asyncio.wait([emptied], timeout=GRACE_S)
        cut_off = [request for connection in self.connections for request in connection.in_flight]
        if cut_off:
            log.info("stopping: %s not answered within %.0f s", counted(len(cut_off), "request"), GRACE_S)
        for connection in list(self.connections):
            connection.close()
        if tasks := [response for response in cut_off if isinstance(response, asyncio.Future)]:
            await asyncio.wait(tasks, timeout=GRACE_S)
