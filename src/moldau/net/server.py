"""The listening side: connections, frames in, replies out, in order. It never learns what a Produce is.

A `Server` is given `connected(peer, listener)`, which returns the function that answers the frames of that connection:
`handle(frame) -> Answer`. The frames that one read brought are handled at once where no
answer has to be awaited, their replies joined and sent in one call. A connection whose frames take longer than a share
of the loop's time is not read from until they are served, share by share, in turns with the others (`fair_share.py`).
An awaitable answer mutes its connection (one request in flight) until it is there, and so does a reply that the socket
does not take at once: a peer that asks and never reads costs what one read brings. A frame is valid only until `handle`
returns. `ProtocolViolation` from `handle` closes the connection; any other exception is a fault of ours: it is logged
and the connection closed.
"""

import asyncio
import fcntl
import logging
import socket
import termios
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from moldau.errors import ProtocolViolation
from moldau.names import counted
from moldau.net.busy_polling import BusyPolling, processors
from moldau.net.fair_share import SHARE_S, FairShare
from moldau.net.inbox import Inbox
from moldau.net.limits import Limits, addresses
from moldau.net.outbox import Outbox, Piece, SocketOutbox, TransportOutbox
from moldau.net.pool import Pool
from moldau.net.watchdog import Watchdog
from moldau.runtime import Answer, Muting, Reply

log = logging.getLogger(__name__)

SHARED_BYTES = 128 << 10
"""One buffer that all connections of a server read into."""
SHARE_BYTES = 1 << 20
"""Replies of this size are sent before further requests of that connection are handled."""
LOOK_S = 0.5
"""How often the server looks for idle connections, and for slow ones where memory is short."""
GRACE_S = 1.0
"""How long a server that stops waits for what is in flight."""
PORT_TRIES = 10
"""A free port of one address may be taken at the other."""
NAMED_S = 0.05
"""A request that took longer than this is remembered, for a line that names it."""
HEAD_BYTES = 128
"""How much of a request's beginning is remembered: its header, and most of a long client id."""


class Peer(NamedTuple):
    """The address at the other end of a connection."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Handle = Callable[[memoryview], Answer]
"""Answers one frame of a connection."""
Connected = Callable[[Peer, str], Handle]
"""A new connection's peer, and the name of the listener that accepted it -> what answers its frames."""


@dataclass
class Server:
    connected: Connected
    limits: Limits = field(default_factory=Limits)
    watchdog: Watchdog = field(default_factory=Watchdog)
    stopwatch: Callable[[], float] = time.perf_counter
    """The clock that measures how long requests take, in seconds."""
    connections: dict["Connection", None] = field(default_factory=dict)
    per_host: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pool = Pool(self.limits.queued_max_request_bytes)
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self._listening: list[asyncio.AbstractServer] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None
        self.busy_polling: BusyPolling | None = None
        self._fair_share: FairShare | None = None
        self.watchdog.namers.append(self._name)

    async def start(self, host: str | None, port: int, listener: str = "PLAINTEXT") -> int:
        """Bind the listener of that name; returns its port (a free one for 0). `localhost`, and no host, which means
        every interface, stand for IPv4 and IPv6, with the same port on both. May be called again for further listeners.
        Raises `OSError`; nothing of this listener is bound then."""
        loop = asyncio.get_running_loop()
        if self.busy_polling is None and processors() > 1:
            self.busy_polling = BusyPolling(loop, now=self.stopwatch)
        hosts = addresses(host or "")
        for left in range(PORT_TRIES if not port and len(hosts) > 1 else 1, 0, -1):
            taken, opened = port, list[asyncio.AbstractServer]()
            try:
                for each in hosts:
                    server = await loop.create_server(
                        lambda: Connection(self, loop, listener), each, taken, backlog=512, start_serving=False
                    )
                    opened.append(server)
                    taken = taken or server.sockets[0].getsockname()[1]
                break
            except OSError:
                for bound in opened:
                    bound.close()
                if left == 1:
                    raise
        self._listening += opened
        if self._sweeper is None:
            self._sweeper = loop.call_later(LOOK_S, self._sweep, loop)
        return taken

    async def serve(self) -> None:
        """Begin to accept: after this, clients are answered."""
        for server in self._listening:
            await cast(asyncio.Server, server).start_serving()

    def fair_share(self, loop: asyncio.AbstractEventLoop) -> FairShare:
        if self._fair_share is None:
            self._fair_share = FairShare(loop, self.stopwatch)
        return self._fair_share

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what is idle for too long (a negative limit is none), and what is slow if memory is short."""
        idle_since = loop.time() - self.limits.connections_max_idle_ms / 1000
        if self.limits.connections_max_idle_ms >= 0:
            for connection in [c for c in self.connections if c.active_at < idle_since]:
                connection.lose("idle")
        self.pool.look()
        self._sweeper = loop.call_later(LOOK_S, self._sweep, loop)

    def admit(self, connection: "Connection") -> bool:
        """Count a new connection; False if there are too many, or the server stops."""
        host, limits = connection.peer.host, self.limits
        here = self.per_host.get(host, 0)
        if self._emptied is not None:
            return False
        if len(self.connections) >= limits.max_connections or here >= limits.max_connections_per_ip:
            return False
        self.connections[connection] = None
        self.per_host[host] = here + 1
        return True

    def forget(self, connection: "Connection") -> None:
        if self.connections.pop(connection, 0) is None:
            host = connection.peer.host
            self.per_host[host] -= 1
            if not self.per_host[host]:
                del self.per_host[host]
        if self._emptied is not None and not self.connections and not self._emptied.done():
            self._emptied.set_result(None)

    def _name(self, owner: object) -> str | None:
        """The request and the peer that a turn of the loop served; None if it served none of our connections."""
        if isinstance(owner, FairShare):
            owner = getattr(owner.serving, "__self__", None)
        if isinstance(owner, asyncio.Task):
            owner = next((c for c in self.connections if c.in_flight is owner), None)
        if not isinstance(owner, Connection):
            return None
        return f"{self.watchdog.request_name(owner.asked)} from {owner.peer}"

    def _stop_accepting(self) -> "asyncio.Future[None]":
        """From now on a connection is refused, even one that was accepted already; done when all others are closed."""
        for server in self._listening:
            server.close()
        if self._sweeper:
            self._sweeper.cancel()
        self._emptied = asyncio.get_running_loop().create_future()
        return self._emptied

    def abort(self) -> None:
        """Accept no more, and close all connections at once, whatever is in flight."""
        self._stop_accepting()
        for connection in list(self.connections):
            connection.close()

    async def stop(self) -> None:
        """Accept no more, let requests in flight finish for a moment, close all connections."""
        emptied = self._stop_accepting()
        if self.connections:
            log.info("stopping: closing %s", counted(len(self.connections), "connection"))
        for connection in list(self.connections):
            connection.finish()
        if self.connections:
            await asyncio.wait([emptied], timeout=GRACE_S)
        cut_off = [task for task in (connection.in_flight for connection in self.connections) if task is not None]
        if cut_off:
            log.info("stopping: %s not answered within %.0f s", counted(len(cut_off), "request"), GRACE_S)
        for connection in list(self.connections):
            connection.close()
        if cut_off:
            await asyncio.wait(cut_off, timeout=GRACE_S)


class Connection(asyncio.BufferedProtocol):
    """One accepted connection. `busy`: a request is in flight, or a reply has not left; nothing is handled until it
    has. `finishing`: it closes then."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, listener: str = "PLAINTEXT"):
        self.server = server
        self.loop = loop
        self.listener = listener
        self.inbox = Inbox(server.limits.socket_request_max_bytes, server.pool, self)
        self.peer = Peer("", 0)
        self.active_at = loop.time()
        self.asked = b""
        """How the last request that took long, or is in flight, begins."""
        self._watchdog = server.watchdog
        self._stopwatch = server.stopwatch
        self._fair_share = server.fair_share(loop)
        self._read_bytes_max = 0
        self._spent_s = 0.0
        """By the reads before, of this turn of the loop."""
        self._heavy = False
        """Its last turn took more than half a share."""
        self._busy_polling: BusyPolling | None = None
        self._busy = False
        self._paused = False
        self._closed = False
        self._finishing = False
        self._task: asyncio.Future[Reply | Muting] | None = None
        self._muted: asyncio.TimerHandle | None = None
        """Ends the time for which its client is throttled."""
        self._handle: Handle
        self._transport: asyncio.Transport
        self._outbox: Outbox

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername") or ("", 0)
        self.peer = Peer(str(name[0]), int(name[1]))
        try:
            self._outbox = self._make_outbox()
        except OSError as error:  # no descriptor left, or the peer is gone already
            log.warning("a connection from %s:%d is refused: %s", self.peer.host, self.peer.port, error)
            self._closed = True
            self._transport.abort()
            return
        self._handle = self.server.connected(self.peer, self.listener)
        if not self.server.admit(self):
            self.lose("too many connections")

    def _make_outbox(self) -> Outbox:
        sock: Any = self._transport.get_extra_info("socket")
        if sock is None or self._transport.get_extra_info("sslcontext") is not None:
            return TransportOutbox(self._transport, self._room, self._aborted)
        limits = self.server.limits
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, size in (
            (socket.SO_SNDBUF, limits.socket_send_buffer_bytes),
            (socket.SO_RCVBUF, limits.socket_receive_buffer_bytes),
        ):
            if size > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        self._busy_polling = self.server.busy_polling
        return SocketOutbox(sock.fileno(), self.loop, self._room, self._aborted, self._busy_polling)

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self.inbox.buffer(self.server.shared)
        assert buffer is not None, "reading goes on only while there is room"
        self._read_bytes_max = len(buffer)
        return buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.active_at = self.loop.time()
        began = self._stopwatch()
        if began > self._watchdog.mark_due_at:
            self._watchdog.mark(began)
        if self._heavy:  # what it brings waits for its turn, so that this read costs the others little
            self.inbox.arrived(self.server.shared, nbytes)
            self.inbox.park()
            self._go_on()
        else:
            self._serve(nbytes, began + SHARE_S - self._spent_s)
        ended = self._stopwatch()
        polling = self._busy_polling
        if polling is not None:
            if began < polling.follows_until:
                polling.stay_awake()
            polling.follows_until = ended + polling.window_s
        spent_s = self._spent_s + ended - began
        self._spent_s = spent_s if nbytes == self._read_bytes_max else 0.0  # libuv repeats a full read at once
        if spent_s > SHARE_S:
            self._watchdog.ended(began, ended, self._serve)
            if not (self._busy or self._closed):
                self._wait_for_turn()

    def _serve(self, nbytes: int, share_ends_at: float) -> None:
        """Handle the whole frames that are here, until one cannot be answered at once or the share of this connection
        is used up; `nbytes` are new."""
        inbox = self.inbox
        ready: list[Piece] = []
        try:
            later = self._handle_frames(nbytes, ready, share_ends_at)
            if inbox.unparked:
                inbox.park()
        except Exception as error:
            self._refuse(error, ready)
            return
        if isinstance(later, Muting):
            self._mute(later.ms)
            ready += later.reply or ()
        all_left = not ready or self._outbox.send(ready)
        if self._muted is not None:
            self._pause_reading()
        elif later is not None:
            self._pause_for(cast(Awaitable[Reply | Muting], later))
        elif not all_left:
            self._busy = True
            self._pause_reading()
        elif inbox.filled:
            self._go_on()

    def _go_on(self) -> None:
        """Read on, unless requests are left (their share of time, replies or files is used up) or memory is short."""
        if self.inbox.holds_frame():
            self._wait_for_turn()
        elif self.inbox.buffer(self.server.shared) is None:
            self._pause_reading()

    def _handle_frames(
        self, nbytes: int, ready: list[Piece], share_ends_at: float
    ) -> Awaitable[Reply | Muting] | Muting | None:
        """Append the replies to `ready`; stops at one that is still awaited or mutes the connection (and returned), or
        has files, or at a share of replies or of time."""
        handle, stopwatch, size = self._handle, self._stopwatch, 0
        for frame in self.inbox.frames(self.server.shared, nbytes):
            answer = handle(frame)
            if answer is not None:
                if not isinstance(answer, list):
                    self.asked = bytes(frame[:HEAD_BYTES])
                    return cast(Awaitable[Reply | Muting] | Muting, answer)
                ready += answer
                size += SHARE_BYTES if len(answer) > 1 else len(answer[0])
            if (now := stopwatch()) > share_ends_at:
                if now > share_ends_at + NAMED_S:
                    self.asked = bytes(frame[:HEAD_BYTES])
                return None
            if size >= SHARE_BYTES:
                return None
        return None

    def _wait_for_turn(self) -> None:
        self._busy = self._heavy = True
        self._pause_reading()
        self._fair_share.wait(self._room)

    def _mute(self, ms: int) -> None:
        """Read nothing more for this many milliseconds, and until all replies have left."""
        if not self._closed:
            self._busy = True
            self._muted = self.loop.call_later(ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        if self._outbox.is_empty():
            self._room()

    def _pause_for(self, later: Awaitable[Reply | Muting]) -> None:
        self._busy = True
        self._task = asyncio.ensure_future(later)
        self._task.add_done_callback(self._answered)
        if self._closed:  # sending the replies before it has shown that the peer is gone
            self._cancel()
        self._pause_reading()

    def _cancel(self) -> None:
        """Not before the request has begun: what it would have awaited would be dropped, and never run or ended."""
        if self._task is not None:
            self.loop.call_soon(self._task.cancel)

    @property
    def in_flight(self) -> "asyncio.Future[Reply | Muting] | None":
        return self._task

    def _answered(self, task: "asyncio.Future[Reply | Muting]") -> None:
        self._task = None
        if self._closed:
            if not task.cancelled():
                task.exception()
            return
        try:
            answer = task.result()
        except (asyncio.CancelledError, Exception) as error:
            self._refuse(error, [])
            return
        if isinstance(answer, Muting):
            self._mute(answer.ms)
            answer = answer.reply
        if not answer or self._outbox.send(answer):
            self._room()

    def _room(self) -> None:
        """All replies have left: serve what is parked, then read on."""
        if self._closed or self._task is not None:
            return
        if self._finishing:
            self.close()
            return
        if self._muted is not None:
            return
        self._busy = False
        self.active_at = self.loop.time()
        self._spent_s, self._heavy = 0.0, False
        if self.inbox.filled:
            began = self._stopwatch()
            self._serve(0, began + SHARE_S)
            self._heavy = self._stopwatch() - began > SHARE_S / 2
        self.resume()

    def _pause_reading(self) -> None:
        self.inbox.muted = self._busy
        if not self._paused and not self._closed:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on, unless something is in flight or the pool has no room for what this connection sends."""
        if self._paused and not (self._busy or self._closed) and self.inbox.buffer(self.server.shared) is not None:
            self._paused = False
            self.inbox.unmute()
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        if isinstance(self._outbox, TransportOutbox):
            self._outbox.full()

    def resume_writing(self) -> None:
        if isinstance(self._outbox, TransportOutbox):
            self._outbox.room()

    def eof_received(self) -> bool:
        return False

    def lose(self, why: str) -> None:
        if not self._closed:
            log.info("closing the connection from %s:%d: %s", self.peer.host, self.peer.port, why)
            self.close()

    def give_up(self) -> str:
        """Others need the memory of what it has sent so far."""
        self.close()
        return self.peer.host

    def has_sent_more(self) -> bool:
        sock = self._transport.get_extra_info("socket")
        if sock is None or self._closed:
            return False
        waiting = fcntl.ioctl(sock.fileno(), termios.FIONREAD, bytes(4))
        return any(waiting)

    def finish(self) -> None:
        """Take no more requests, answer the one in flight, close."""
        if self._busy and not (self._muted is not None and self._outbox.is_empty()):
            self._finishing = True
        else:
            self.close()

    def _refuse(self, error: BaseException, ready: list[Piece]) -> None:
        """A request raised this error: send what was answered before it, then close."""
        if isinstance(error, asyncio.CancelledError | ProtocolViolation):
            log.info("closing the connection from %s:%d: %s", self.peer.host, self.peer.port, error)
        else:
            log.error("a request from %s:%d failed", self.peer.host, self.peer.port, exc_info=error)
        if self._outbox.send(ready):
            self.close()
        else:
            self._busy = self._finishing = True
            self._pause_reading()

    def close(self) -> None:
        if not self._closed:
            self._end()
            self._transport.close()

    def _aborted(self, why: str = "") -> None:
        if not self._closed:
            if why:
                log.error("closing the connection from %s:%d: %s", self.peer.host, self.peer.port, why)
            self._end()
            self._transport.abort()

    def _end(self) -> None:
        self._closed = True
        if self._muted is not None:
            self._muted.cancel()
        self.inbox.close()
        self._outbox.close()
        self._cancel()
        self.server.forget(self)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._closed:
            self._end()
