"""An accepted connection: frames in, replies out, in order.

The frames that one read brought are handled at once where no answer has to be awaited, their replies joined and sent in
one call. A connection whose frames take longer than a share of the loop's time is not read from until they are served,
share by share, in turns with the others (`fair_share.py`). An awaitable answer mutes its connection (one request in
flight) until it is there, and so does a reply that the socket does not take at once: a peer that asks and never reads
costs what one read brings. An answer that is `Unanswered` lets some requests behind it be handled (`unanswered.py`). A
frame is valid only until `handle` returns. `ProtocolViolation` closes the connection; so does a fault of ours, logged.
"""

import asyncio
import fcntl
import logging
import termios
from collections.abc import Awaitable
from typing import cast

from moldau.errors import ProtocolViolation
from moldau.net.busy_polling import BusyPolling
from moldau.net.fair_share import SHARE_S
from moldau.net.guard import Guard
from moldau.net.inbox import Inbox
from moldau.net.outbox import Outbox, Piece, SocketOutbox, TransportOutbox, outbox_of
from moldau.net.peer import Peer
from moldau.net.ports import Acceptor, Handle
from moldau.net.unanswered import UnansweredQueue
from moldau.replies import Muting, Reply, Response, Unanswered

log = logging.getLogger(__name__)

SHARE_BYTES = 1 << 20
"""Replies of this size are sent before further requests of that connection are handled."""
NAMED_S = 0.05
"""A request that took longer than this is remembered, for a line that names it."""
NOTED_MAX = 2048
"""So many requests and reads are counted at once: few steps of Python, and none for each read."""
HEAD_BYTES = 128
"""How much of a request's beginning is remembered: its header, and most of a long client id."""


class Connection(asyncio.BufferedProtocol):
    """One accepted connection. `busy`: a request is in flight, or a reply has not left; nothing is handled until it
    has. `finishing`: it closes then."""

    _noted: list[float] | None = None
    """The requests and times of the last reads, if somebody counts them: see `measured.py`."""

    def __init__(self, server: Acceptor, loop: asyncio.AbstractEventLoop, listener: str = "PLAINTEXT"):
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
        self._task: asyncio.Future[Reply | Muting | Unanswered] | None = None
        self._unanswered: UnansweredQueue | None = None
        """None before the first request whose reply has to wait."""
        self._blocked = False
        """The next frame waits until requests before it are answered."""
        self._muted: asyncio.TimerHandle | None = None
        """Ends the time for which its client is throttled."""
        self._handle: Handle
        self._transport: asyncio.Transport
        self._outbox: Outbox

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername") or ("", 0)
        self.peer = Peer(str(name[0]), int(name[1]))
        if self.server.admit(self, self._transport):
            self.begin()

    def begin(self, sent: bytes = b"") -> None:
        """Serve it; `sent` was read from it while it waited."""
        try:
            self._outbox = outbox_of(
                self._transport, self.loop, self.server.limits, self._room, self.abort, self.server.busy_polling
            )
        except OSError as error:  # no descriptor left, or the peer is gone already
            log.warning("a connection from %s:%d is refused: %s", self.peer.host, self.peer.port, error)
            self._closed = True
            self._transport.abort()
            self.server.forget(self)
            return
        if isinstance(self._outbox, SocketOutbox):
            self._busy_polling = self.server.busy_polling
        self._handle = self.server.connected(self.peer, self.listener)
        if isinstance(self._handle, Guard):
            self._handle.guard(self)
        self.active_at = self.loop.time()
        if sent:
            self.get_buffer(len(sent))[: len(sent)] = sent
            self.buffer_updated(len(sent))

    def turn_away(self, why: str) -> None:
        """Close it before it is served."""
        self._say(why)
        self._closed = True
        self._transport.close()

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
        took_s = ended - began
        if (noted := self._noted) is not None:
            noted.append(took_s)
            if len(noted) > NOTED_MAX:
                self._count_noted()
        polling = self._busy_polling
        if polling is not None and not self._unanswered:  # these wait for brokers that may need this processor
            if began < polling.follows_until:
                polling.stay_awake()
            polling.follows_until = ended + polling.window_s
        spent_s = self._spent_s + took_s
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
            if self._unanswered:
                self._unanswered.behind(later.reply)
            else:
                ready += later.reply or ()
        all_left = not ready or self._outbox.send(ready)
        if self._muted is not None:
            self._pause_reading()
        elif later is not None:
            self._pause_for(cast(Awaitable[Reply | Muting | Unanswered], later))
        elif self._blocked or not all_left:
            self._busy = True
            self._pause_reading()
        elif inbox.filled:
            self._go_on()

    def _count_noted(self) -> None:
        """Count what is `_noted`."""

    def _go_on(self) -> None:
        """Read on, unless requests are left (their share is used up) or memory is short."""
        if self.inbox.holds_frame():
            self._wait_for_turn()
        elif self.inbox.buffer(self.server.shared) is None:
            self._pause_reading()

    def _handle_frames(
        self, nbytes: int, ready: list[Piece], share_ends_at: float
    ) -> Awaitable[Reply | Muting | Unanswered] | Muting | None:
        """Append the replies to `ready`, or to those that wait for an unanswered request. Stops at a reply that is
        still awaited or mutes the connection (and returns it), or has files, at a share of replies or of time, and
        where the next frame is `_blocked`."""
        handle, stopwatch, size, unanswered = self._handle, self._stopwatch, 0, self._unanswered
        for frame in self.inbox.frames(self.server.shared, nbytes):
            if unanswered is not None and not unanswered.admits(frame):
                self._blocked = True
                self.inbox.put_back(self.server.shared, frame)
                return None
            answer = handle(frame)
            if answer is not None:
                if isinstance(answer, list):
                    if unanswered:
                        unanswered.behind(answer, len(frame))
                    else:
                        ready += answer
                        size += SHARE_BYTES if len(answer) > 1 else len(answer[0])
                elif isinstance(answer, Unanswered):
                    unanswered = self._leave_unanswered(answer, len(frame))
                else:
                    self.asked = bytes(frame[:HEAD_BYTES])
                    return cast(Awaitable[Reply | Muting | Unanswered] | Muting, answer)
            if (now := stopwatch()) > share_ends_at:
                if now > share_ends_at + NAMED_S:
                    self.asked = bytes(frame[:HEAD_BYTES])
                return None
            if size >= SHARE_BYTES:
                return None
        return None

    def _leave_unanswered(self, request: Unanswered, *size: int) -> UnansweredQueue:
        unanswered = self._unanswered
        if unanswered is None:
            unanswered = self._unanswered = UnansweredQueue(self._some_answered, self.loop)
        unanswered.add(request, *size)
        return unanswered

    def _some_answered(self) -> None:
        """Send the replies that need not wait any more."""
        unanswered = self._unanswered
        if self._closed or not unanswered:
            return
        ready, muting_ms, error = unanswered.take()
        if muting_ms:
            self._mute(muting_ms)
            self._pause_reading()
        if error is not None:
            self._refuse(error, ready)
        elif ready and not self._outbox.send(ready):
            self._busy = True
            self._pause_reading()
        elif self._blocked or self._finishing:
            self._room()

    def _wait_for_turn(self) -> None:
        self._busy = self._heavy = True
        self._pause_reading()
        self._fair_share.wait(self._go_on_if_sent, self.server.is_urgent(self))

    def _go_on_if_sent(self) -> None:
        """Else the outbox calls `_room`."""
        if self._outbox.is_empty():
            self._room()

    def _mute(self, ms: int) -> None:
        """Read nothing more for this many milliseconds, and until all replies have left. The longest time counts."""
        ends = self.loop.time() + ms / 1000
        if self._closed or (self._muted is not None and self._muted.when() >= ends):
            return
        if self._muted is not None:
            self._muted.cancel()
        self._busy = True
        self._muted = self.loop.call_at(ends, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self._go_on_if_sent()

    def _pause_for(self, later: Awaitable[Reply | Muting | Unanswered]) -> None:
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
    def in_flight(self) -> list[Response]:
        """The responses of the requests that are not answered yet."""
        waiting: list[Response] = [one.response for one in self._unanswered.requests] if self._unanswered else []
        return waiting if self._task is None else [*waiting, self._task]

    def _answered(self, task: "asyncio.Future[Reply | Muting | Unanswered]") -> None:
        self._task = None
        if self._closed:
            if not (task.cancelled() or task.exception()) and isinstance(unsent := task.result(), Unanswered):
                unsent.response.cancel()
            return
        try:
            answer = task.result()
        except (asyncio.CancelledError, Exception) as error:
            self._refuse(error, [])
            return
        if isinstance(answer, Muting):
            self._mute(answer.ms)
            answer = answer.reply
        if isinstance(answer, Unanswered):
            self._leave_unanswered(answer)
        elif self._unanswered:
            self._unanswered.behind(answer)
        elif answer and not self._outbox.send(answer):
            return
        self._room()

    def _room(self) -> None:
        """All replies that may leave have left: serve what is parked, then read on."""
        if self._closed or self._task is not None:
            return
        if self._finishing:
            if not self._unanswered:
                self.close()
            return
        if self._muted is not None:
            return
        self._busy = self._blocked = False
        self.active_at = self.loop.time()
        self._spent_s, self._heavy = 0.0, False
        if self.inbox.filled:
            began = self._stopwatch()
            self._serve(0, began + SHARE_S)
            served_s = self._stopwatch() - began
            if self._noted is not None:
                self._noted.append(served_s)
            self._heavy = served_s > SHARE_S / 2
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
        """Close it, for one of few reasons."""
        if not self._closed:
            self._say(why)
            self.close()

    def _say(self, why: str) -> None:
        line = "closing the connection from %s:%d: " + why  # another reason is a line of another kind
        self.server.notices.info(self.peer.host, line, self.peer.host, self.peer.port)

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
        if self._unanswered or (self._busy and not (self._muted is not None and self._outbox.is_empty())):
            self._busy = self._finishing = True
            self._pause_reading()
        else:
            self.close()

    def _refuse(self, error: BaseException, ready: list[Piece]) -> None:
        """A request raised this error: send what was answered before it, then close."""
        if isinstance(error, asyncio.CancelledError | ProtocolViolation):
            line = "closing the connection from %s:%d: %s"
            self.server.notices.info(self.peer.host, line, self.peer.host, self.peer.port, error)
        else:
            log.error("a request from %s:%d failed", self.peer.host, self.peer.port, exc_info=error)
        if self._outbox.send(ready) and not self._unanswered:
            self.close()
        else:
            self._busy = self._finishing = True
            self._pause_reading()

    def close(self) -> None:
        if not self._closed:
            self._end()
            self._transport.close()

    def abort(self, why: str = "") -> None:
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
        if self._unanswered:
            self._unanswered.cancel()
        self.server.forget(self)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._closed:
            self._end()
