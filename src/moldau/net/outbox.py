"""The unsent replies of a connection, in order: bytes, and slices of files, which are sent by `sendfile`.

Two outboxes have one interface. `SocketOutbox` writes at once, to its own descriptor (a `dup` of the transport's: the
number cannot be reused by another connection after the transport closed), and waits for writability only when the
kernel takes no more. `TransportOutbox` writes to the transport and reads file slices piece by piece; simulated networks
need it, and TLS, as `SecureOutbox`. `on_room` is called when all replies have been sent after some had to wait; until
then the connection handles no request. `on_lost` is called when nothing more can be sent: without an argument if the
peer is gone, else with the file's error. The slice's `on_failed` tells the owner of the file.
"""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast

from moldau.net.busy_polling import BusyPolling
from moldau.net.limits import Limits
from moldau.replies import FileSlice

Piece: TypeAlias = bytes | bytearray | memoryview | FileSlice

MSG_MORE = getattr(socket, "MSG_MORE", 0)  # Linux: a header waits for what follows it, and leaves with it
SENDFILE_BYTES = 48 << 10
"""The bytes of a file that one system call sends: less than a segment of the loopback device, 64 KB. A call that wakes
a sleeping reader takes 20 us below a full segment and 50 us from one on, which is most of the time for 200 KB."""
BURST_BYTES_MAX = 8 << 20
"""The most bytes sent to one connection in one turn of the loop, so that other connections get their share."""
COPY_BYTES = 256 << 10
"""How much of a file slice is read at a time where `sendfile` cannot be used."""
SECURE_BURST_BYTES_MAX = 2 << 20
"""The most bytes encrypted for one connection in one turn of the loop: about 3 ms."""
OF_FILES = frozenset(
    getattr(errno, name, -1) for name in ("EIO", "ENXIO", "ENODEV", "ENODATA", "ESTALE", "EUCLEAN", "EBADMSG")
)
"""Errors of `sendfile` that come from the file's disk. A socket never raises them."""


class UnreadableFile(Exception):
    """A file slice cannot be sent, and the peer is not at fault."""


def _unreadable(piece: FileSlice, error: OSError) -> UnreadableFile:
    """Tell the file's owner."""
    if piece.on_failed is not None:
        piece.on_failed(error)
    return UnreadableFile(f"a file cannot be read: {error}")


def _cut(end: int) -> OSError:
    return OSError(f"it ends before byte {end}, which a reply needs: another program has truncated it")


def _read(piece: FileSlice, most: int = COPY_BYTES) -> bytes:
    """The beginning of a slice, as much of it as is copied at a time. Raises `UnreadableFile`."""
    try:
        data = piece.file.read(min(piece.length, most), piece.offset)
    except OSError as error:
        raise _unreadable(piece, error) from error
    if piece.length and not data:
        raise _unreadable(piece, _cut(piece.offset + piece.length))
    return data


def _joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Replies without file slices go out as one piece."""
    if len(pieces) < 2 or FileSlice in map(type, pieces):
        return pieces
    return [b"".join(cast(Sequence[bytes], pieces))]


class Outbox(Protocol):
    def send(self, pieces: Sequence[Piece]) -> bool:
        """Send, or queue, all pieces in order. True if everything has left."""

    def is_empty(self) -> bool:
        """Whether everything handed in has left."""

    def close(self) -> None:
        """Drop what is queued."""


def outbox_of(
    transport: asyncio.Transport,
    loop: asyncio.AbstractEventLoop,
    limits: Limits,
    on_room: Callable[[], None],
    on_lost: Callable[[str], None],
    busy_polling: BusyPolling | None,
) -> Outbox:
    """The outbox of an accepted connection, whose socket gets the sizes that `limits` ask for. Raises `OSError`."""
    sock: Any = transport.get_extra_info("socket")
    if sock is None:
        return TransportOutbox(transport, on_room, on_lost)
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, size in (
        (socket.SO_SNDBUF, limits.socket_send_buffer_bytes),
        (socket.SO_RCVBUF, limits.socket_receive_buffer_bytes),
    ):
        if size > 0:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    if transport.get_extra_info("sslcontext") is not None:
        return SecureOutbox(transport, on_room, on_lost, loop)
    return SocketOutbox(sock.fileno(), loop, on_room, on_lost, busy_polling)


class SocketOutbox:
    __slots__ = ("_busy_polling", "_fd", "_loop", "_on_lost", "_on_room", "_queue", "_sock", "_waiting")

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        on_room: Callable[[], None],
        on_lost: Callable[[str], None],
        busy_polling: BusyPolling | None = None,
    ):
        self._busy_polling = busy_polling
        self._sock = socket.socket(fileno=os.dup(fd))
        self._sock.setblocking(False)
        self._fd = self._sock.fileno()
        self._loop = loop
        self._on_room = on_room
        self._on_lost = on_lost
        self._queue: deque[Piece] = deque()
        self._waiting = False

    def send(self, pieces: Sequence[Piece]) -> bool:
        if len(pieces) > 1:
            pieces = _joined(pieces)
        if not self._queue and len(pieces) == 1 and not isinstance(piece := pieces[0], FileSlice):
            try:  # by far the commonest: one small reply and room for it
                sent = self._sock.send(piece)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._lost("")
                return True
            if sent == len(piece):
                return True
            self._queue.append(memoryview(piece)[sent:])
            self._wait()
            return False
        self._queue.extend(pieces)
        return self._waiting is False and self._pump()

    def is_empty(self) -> bool:
        return not self._queue

    def _pump(self) -> bool:
        """Send until all has left (True), or the kernel or this turn's share is full (False)."""
        queue, burst = self._queue, 0
        try:
            while queue and burst < BURST_BYTES_MAX:
                piece = queue[0]
                if isinstance(piece, FileSlice):
                    burst += self._send_file(piece, BURST_BYTES_MAX - burst)
                    continue
                sent = self._sock.send(piece, MSG_MORE if len(queue) > 1 else 0)
                burst += sent
                if sent < len(piece):
                    queue[0] = memoryview(piece)[sent:]
                else:
                    queue.popleft()
        except BlockingIOError:
            pass
        except UnreadableFile as error:
            self._lost(str(error))
            return True
        except OSError:
            self._lost("")
            return True
        if queue:
            self._wait()
            return False
        return True

    def _send_file(self, piece: FileSlice, most: int) -> int:
        """Send what is first in the queue, about `most` bytes of it; how many those were. What is left of it stays in
        the queue, also where the kernel takes no more."""
        fd, file, at = self._fd, piece.file.fileno() or 0, piece.offset
        end = at + piece.length
        stop = min(end, at + most)
        try:
            while at < stop:
                sent = os.sendfile(fd, file, at, min(end - at, SENDFILE_BYTES))
                if not sent:
                    raise _unreadable(piece, _cut(end))
                at += sent
        except OSError as error:
            if error.errno in OF_FILES:
                raise _unreadable(piece, error) from error
            raise
        finally:
            if at < end:
                self._queue[0] = FileSlice(piece.file, at, end - at, piece.on_left, piece.on_failed, piece.hold)
            else:
                self._queue.popleft()
        if at == end and piece.on_left is not None:
            piece.on_left()
        return at - piece.offset

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._writable)

    def _writable(self) -> None:
        polling = self._busy_polling
        if polling is not None and polling.now() < polling.follows_until:
            polling.stay_awake()
        all_left = self._pump()
        if polling is not None:
            polling.follows_until = polling.now() + polling.window_s
        if all_left:
            if self._fd >= 0 and self._waiting:
                self._waiting = False
                self._loop.remove_writer(self._fd)
            self._on_room()

    def _lost(self, why: str) -> None:
        self.close()
        self._on_lost(why)

    def close(self) -> None:
        if self._fd < 0:
            return
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._fd)
        self._queue.clear()
        self._sock.close()
        self._fd = -1


class TransportOutbox:
    """`room` must be called by the protocol's `resume_writing`, `full` by its `pause_writing`."""

    def __init__(self, transport: asyncio.WriteTransport, on_room: Callable[[], None], on_lost: Callable[[str], None]):
        self._transport = transport
        self._on_room = on_room
        self._on_lost = on_lost
        self._queue: deque[Piece] = deque()
        self._full = False

    def send(self, pieces: Sequence[Piece]) -> bool:
        self._queue.extend(_joined(pieces))
        return self._pump()

    def _pump(self) -> bool:
        queue = self._queue
        while queue and not self._full:
            piece = queue.popleft()
            if not isinstance(piece, FileSlice):
                self._transport.write(bytes(piece))
                continue
            try:
                data = _read(piece)
            except UnreadableFile as error:  # half a frame is out, and the rest of it cannot be had
                self.close()
                self._on_lost(str(error))
                return True
            self._transport.write(data)
            if len(data) < piece.length:
                left = piece._replace(offset=piece.offset + len(data), length=piece.length - len(data))
                queue.appendleft(left)
            elif piece.on_left is not None:
                piece.on_left()
        return not queue and not self._full

    def is_empty(self) -> bool:
        return not self._queue and not self._full

    def full(self) -> None:
        self._full = True

    def room(self) -> None:
        self._full = False
        if self._pump():
            self._on_room()

    def close(self) -> None:
        self._queue.clear()


class SecureOutbox(TransportOutbox):
    """For TLS: pieces are joined into writes of at most `COPY_BYTES`, and a turn of the loop encrypts a limited number
    of bytes, whatever the peer takes."""

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        on_room: Callable[[], None],
        on_lost: Callable[[str], None],
        loop: asyncio.AbstractEventLoop,
    ):
        super().__init__(transport, on_room, on_lost)
        self._loop = loop
        self._resumes: asyncio.Handle | None = None

    def _pump(self) -> bool:
        queue, burst = self._queue, 0
        while queue and not self._full and self._resumes is None:
            if burst >= SECURE_BURST_BYTES_MAX:
                self._resumes = self._loop.call_soon(self._resume)
                break
            try:
                chunk, left = self._next()
            except UnreadableFile as error:  # half a frame is out, and the rest of it cannot be had
                self.close()
                self._on_lost(str(error))
                return True
            burst += len(chunk)
            self._transport.write(chunk)
            for piece in left:
                if piece.on_left is not None:
                    piece.on_left()
        return not queue and not self._full

    def _next(self) -> tuple[bytes, list[FileSlice]]:
        """The next bytes to write, and the slices that end in them."""
        queue, chunk, room, left = self._queue, list[bytes | memoryview](), COPY_BYTES, list[FileSlice]()
        while queue and room:
            piece = queue.popleft()
            if isinstance(piece, FileSlice):
                data: bytes | memoryview = _read(piece, room)
                if len(data) < piece.length:
                    at = piece.offset + len(data)
                    queue.appendleft(piece._replace(offset=at, length=piece.length - len(data)))
                else:
                    left.append(piece)
            else:
                whole = memoryview(piece)
                data = whole[:room]
                if len(whole) > room:
                    queue.appendleft(whole[room:])
            chunk.append(data)
            room -= len(data)
        return b"".join(chunk), left

    def _resume(self) -> None:
        self._resumes = None
        self.room()

    def room(self) -> None:
        self._full = False
        if self._resumes is None and self._pump():
            self._on_room()

    def is_empty(self) -> bool:
        return self._resumes is None and super().is_empty()

    def close(self) -> None:
        super().close()
        if self._resumes is not None:
            self._resumes.cancel()
            self._resumes = None
