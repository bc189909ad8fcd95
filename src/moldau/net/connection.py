"""The dialling end of a connection: it sends request frames and returns their reply frames, in order.

A `ClientConnection` reads the size and the correlation id of a frame and nothing else. A broker answers the requests
of one connection in order, so the awaited replies are a queue: a reply with any other correlation id means that the two
ends no longer agree, and the connection is closed. When a connection ends (the peer closed it, an error, a request that
waited too long, `close`), each awaited reply fails once, with `KafkaError(NETWORK_EXCEPTION)` or `REQUEST_TIMED_OUT`.

Limits: a reply of more than `max_reply_bytes` closes the connection before anything is allocated for it. Small replies
are copied out of one read buffer; a reply that does not fit there is received straight into a buffer of its own, which
its request may provide. While such a reply arrives, the kernel wakes the loop once for each `WAKE_BYTES`
(`SO_RCVLOWAT`), since each turn of the loop costs more than receiving 64 KB.
"""

import asyncio
import contextlib
import os
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, cast

from moldau.errors import ErrorCode, KafkaError
from moldau.runtime import Buffer
from moldau.tasks import ended
from moldau.transport.tls_failures import tls_failure

READ_BUFFER_BYTES = 64 * 1024
MAX_REPLY_BYTES = 128 * 1024 * 1024
WAKE_BYTES = 1024 * 1024
PIECES_MAX = 1024
"""As many pieces may be written at once (IOV_MAX)."""
FIRST_CORRELATION_ID = 1
MUTED_S_MAX = 600.0
"""A broker that claims to read nothing for longer is believed for this long."""
TLS_ALERT = 0x1503
"""How an alert of TLS begins: its type, and the first byte of the version."""
WANTS_TLS = "its listener may want TLS (security.protocol SSL or SASL_SSL)"
HTTP_STARTS = (b"HTTP", b"<!DO", b"<!do", b"<htm", b"<HTM")
"""How an answer of a web server begins: with its version, or in old manners with the page."""
TEXT = 0x20202020
"""Four characters are at least this size: half a gigabyte, which is no size of a first reply."""
IS_HTTP = "answers in HTTP: this is the port of a web server, such as metrics, a console or a registry, not of a broker"
_SIZE = struct.Struct(">i")


def fresh(size: int) -> memoryview:
    """Memory for a large reply, of its own."""
    return memoryview(bytearray(size))


class _Awaited(NamedTuple):
    correlation_id: int
    reply: asyncio.Future[memoryview]
    timer: asyncio.TimerHandle
    memory: Callable[[int], memoryview]


class _Held(NamedTuple):
    """A frame that is held back; `awaited` is None for one that is not answered."""

    awaited: _Awaited | None
    pieces: list[Buffer]


class ClientConnection(asyncio.BufferedProtocol):
    """One connection to a broker; make it with `dial`. Belongs to the loop it was dialled on."""

    def __init__(self, name: str, max_reply_bytes: int = MAX_REPLY_BYTES):
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._max_reply_bytes = max_reply_bytes
        self._transport: asyncio.Transport | None = None
        self._fd = -1
        self._awaited: deque[_Awaited] = deque()
        self._correlation_id = 0
        self._scratch = memoryview(bytearray(READ_BUFFER_BYTES))
        self._filled = 0
        self._large: memoryview | None = None
        self._large_filled = 0
        self._socket: socket.socket | None = None
        self._wake_bytes = 1
        self._writable = asyncio.Event()
        self._writable.set()
        self._held: list[_Held] | None = None
        self._wanted: Callable[[], object] | None = None
        self._holding: asyncio.TimerHandle | None = None
        self._muted_until_s = 0.0
        self.closed = False

    @property
    def name(self) -> str:
        """The address that was dialled."""
        return self._name

    @property
    def in_flight(self) -> int:
        """How many requests await their reply."""
        return len(self._awaited) + len(self._held or ())

    @property
    def writable(self) -> bool:
        """Whether the transport takes more without queueing it up."""
        return self._writable.is_set()

    def next_correlation_id(self) -> int:
        """The correlation id that the next frame must carry."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def send(
        self,
        correlation_id: int,
        pieces: list[Buffer],
        timeout_ms: int,
        memory: Callable[[int], memoryview] = fresh,
        *,
        urgent: bool = False,
    ) -> asyncio.Future[memoryview]:
        """Write one whole frame; the future's result is the reply's frame, from the correlation id on, in memory of its
        own. For a large reply `memory` returns it, given the size. An `urgent` frame is not held back."""
        reply: asyncio.Future[memoryview] = self._loop.create_future()
        if self.closed or self._transport is None:
            reply.set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the connection to {self._name} is closed"))
            return reply
        timer = self._loop.call_later(timeout_ms / 1000, self._timed_out, correlation_id, timeout_ms)
        awaited = _Awaited(correlation_id, reply, timer, memory)
        if self._held is not None and not urgent:
            self._keep(_Held(awaited, pieces))
            return reply
        self._awaited.append(awaited)
        self._write(self._transport, pieces)
        return reply

    def send_unanswered(self, pieces: list[Buffer]) -> None:
        """Write one whole frame that the broker does not answer (Produce with acks=0)."""
        if self.closed or self._transport is None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the connection to {self._name} is closed")
        if self._held is not None:
            self._keep(_Held(None, pieces))
            return
        self._write(self._transport, pieces)

    def limit_replies(self, bytes_max: int) -> None:
        """Take replies of at most this size from now on."""
        self._max_reply_bytes = bytes_max

    def hold_after(self, delay_s: float, wanted: Callable[[], object]) -> None:
        """Hold frames back once this time is over, except urgent ones, until `release`. `wanted` is called when the
        first one waits."""

        def hold() -> None:
            self._held, self._wanted = [], wanted

        self._holding = self._loop.call_later(delay_s, hold)

    def release(self) -> None:
        """Write the frames that were held back, in their order."""
        held, self._held, self._wanted = self._held or [], None, None
        if self._transport is None or self.closed:
            return
        for awaited, pieces in held:
            if awaited is not None:
                self._awaited.append(awaited)
            self._write(self._transport, pieces)

    def _keep(self, frame: "_Held") -> None:
        assert self._held is not None
        self._held.append(frame)
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            wanted()

    def _write(self, transport: asyncio.Transport, pieces: Sequence[Buffer]) -> None:
        """Write the pieces of a frame, from where they are as far as the socket takes them."""
        if self._fd >= 0 and len(pieces) > 1 and not transport.get_write_buffer_size():
            pieces = unsent(self._fd, pieces)
        if pieces:
            transport.writelines(pieces)

    def close(self, failure: KafkaError | None = None) -> None:
        """Close now; all awaited replies fail, with that failure if there is one."""
        self._end(failure or KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the connection to {self._name} was closed"))

    def muted_for(self, seconds: float) -> None:
        """The broker has said that it reads nothing from here for so long, because of a quota (KIP-219): the time-outs
        of requests begin after that."""
        self._muted_until_s = self._loop.time() + min(seconds, MUTED_S_MAX)

    def _timed_out(self, correlation_id: int, timeout_ms: int) -> None:
        left_s = self._muted_until_s + timeout_ms / 1000 - self._loop.time()
        waiting = (*self._awaited, *(awaited for awaited, _ in self._held or () if awaited is not None))
        if not any(one.correlation_id == correlation_id for one in waiting):
            return  # answered since its time-out was put off
        if left_s > 0:
            self._loop.call_later(left_s, self._timed_out, correlation_id, timeout_ms)
            return
        self._end(KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"{self._name} did not answer within {timeout_ms} ms"))

    def _end(self, failure: KafkaError) -> None:
        if self.closed:
            return
        self.closed = True
        self._fd = -1
        self._writable.set()
        if self._transport is not None:
            self._transport.abort()
        self._awaited += [awaited for awaited, _ in self._held or () if awaited is not None]
        self._held = self._wanted = None
        if self._holding is not None:
            self._holding.cancel()
        while self._awaited:
            _, reply, timer, _ = self._awaited.popleft()
            timer.cancel()
            if not reply.done():
                reply.set_exception(failure)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        endpoint = transport.get_extra_info("socket")
        if endpoint is not None and endpoint.family in (socket.AF_INET, socket.AF_INET6):
            endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if transport.get_extra_info("sslcontext") is None:  # TLS has bytes that the kernel counts no more
                self._socket = endpoint
                if hasattr(os, "writev"):
                    self._fd = endpoint.fileno()

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):
            self._end(tls_failure(self._name, exc, in_handshake=False))
            return
        why = f": {exc}" if exc else ""
        is_plain = self._transport is not None and self._transport.get_extra_info("sslcontext") is None
        if is_plain and self._awaits_first_reply:
            why = f" before its first reply{why}; {WANTS_TLS}"
        self._end(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self._name} closed the connection{why}"))

    @property
    def _awaits_first_reply(self) -> bool:
        return bool(self._awaited) and self._awaited[0].correlation_id == FIRST_CORRELATION_ID

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return self._large[self._large_filled :]
        return self._scratch[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._large is None:
            self._filled += nbytes
            self._split()
            return
        self._large_filled += nbytes
        left = len(self._large) - self._large_filled
        self._wake_after(left)
        if not left:
            whole, self._large = self._large, None
            self._received(whole)

    def _wake_after(self, left: int) -> None:
        """Have the loop woken when the rest of a reply is there, or enough of it: not for so little that asking for it
        would cost as much as waking up once more."""
        wanted = min(left, WAKE_BYTES) if left >= READ_BUFFER_BYTES else 1
        if wanted != self._wake_bytes and self._socket is not None:
            self._wake_bytes = wanted
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)

    def _split(self) -> None:
        """Hand out the whole frames in the read buffer; move the rest to its front or into a buffer of its own."""
        at, filled, scratch = 0, self._filled, self._scratch
        while filled - at >= 4 and not self.closed:
            size = _SIZE.unpack_from(scratch, at)[0]
            if not 4 <= size <= self._max_reply_bytes or (size >= TEXT and self._awaits_first_reply):
                said = self._strange(size, bytes(scratch[at : at + 4]))
                self._end(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self._name} {said}"))
                return
            end = at + 4 + size
            if end > filled:
                if size + 4 > READ_BUFFER_BYTES:
                    self._large = (self._awaited[0].memory if self._awaited else fresh)(size)
                    self._large_filled = filled - at - 4
                    self._large[: self._large_filled] = scratch[at + 4 : filled]
                    self._wake_after(size - self._large_filled)
                    at = filled
                break
            self._received(memoryview(bytes(scratch[at + 4 : end])))
            at = end
        left = filled - at
        if at and left:
            scratch[:left] = bytes(scratch[at:filled])
        self._filled = left

    def _strange(self, size: int, start: bytes) -> str:
        """What is wrong with a reply of that size, whose first four bytes are these."""
        if size >> 16 == TLS_ALERT:
            return f"answered with a TLS alert; {WANTS_TLS}"
        if start in HTTP_STARTS:
            return IS_HTTP
        if start.isascii() and start.decode().isprintable():
            return f"answered with text that begins with {start.decode()!r}: it is not a Kafka broker"
        limit = f"this client takes {self._max_reply_bytes}; fetch.max.bytes raises that of a consumer"
        return f"sent a reply of {size} bytes, and {limit}"

    def _received(self, frame: memoryview) -> None:
        correlation_id = _SIZE.unpack_from(frame)[0]
        if not self._awaited or self._awaited[0].correlation_id != correlation_id:
            self._end(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self._name} answered requests out of order"))
            return
        _, reply, timer, _ = self._awaited.popleft()
        timer.cancel()
        if not reply.done():
            reply.set_result(frame)


def unsent(fd: int, pieces: Sequence[Buffer]) -> Sequence[Buffer]:
    """Write pieces to a socket, and return what it did not take. An error is left to the next one who writes."""
    try:
        left = os.writev(fd, pieces[:PIECES_MAX])
    except OSError:
        return pieces
    for number, piece in enumerate(pieces):
        if left < len(piece):
            return [memoryview(piece)[left:], *pieces[number + 1 :]]
        left -= len(piece)
    return []


async def dial(
    host: str,
    port: int,
    *,
    timeout_ms: int = 10_000,
    max_reply_bytes: int = MAX_REPLY_BYTES,
    tls: ssl.SSLContext | None = None,
) -> ClientConnection:
    """Connect, with TLS if a context is given. If a host has several addresses and the first one does not answer within
    `timeout_ms`, the others have as long (KIP-302). Raises `KafkaError(NETWORK_EXCEPTION)`, which names the address and
    the reason, and `SslHandshakeFailed`."""
    name = f"{host}:{port}"
    loop = asyncio.get_running_loop()
    secured = (None, None, None) if tls is None else (tls, host, timeout_ms / 1000)

    async def connect(to: str) -> ClientConnection:
        _, connection = await loop.create_connection(
            lambda: ClientConnection(name, max_reply_bytes),
            to,
            port,
            ssl=secured[0],
            server_hostname=secured[1],
            ssl_handshake_timeout=secured[2],
        )
        return connection

    try:
        async with asyncio.timeout(timeout_ms / 1000):  # wait_for of Python 3.11 may lose a cancellation
            return await connect(host)
    except TimeoutError:
        connection = await _by_another_address(connect, host, port, timeout_ms / 1000)
        if connection is not None:
            return connection
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"cannot connect to {name} within {timeout_ms} ms") from None
    except ssl.SSLError as failed:
        raise tls_failure(name, failed, in_handshake=True) from None
    except OSError as refused:
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"cannot connect to {name}: {_why(refused, tls)}") from None


async def _by_another_address(
    connect: Callable[[str], Coroutine[Any, Any, ClientConnection]], host: str, port: int, timeout_s: float
) -> ClientConnection | None:
    """The operating system dials the addresses of a host one after the other, and a dead one takes all of the time. So
    the others are dialled beside each other; None if none of them answers."""
    loop, attempts = asyncio.get_running_loop(), list[asyncio.Task[ClientConnection]]()
    connection: ClientConnection | None = None
    try:
        async with asyncio.timeout(timeout_s):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = [*dict.fromkeys(str(address[0]) for *_, address in found)]
            attempts += [loop.create_task(connect(other)) for other in addresses[1:]]
            for attempt in asyncio.as_completed(attempts):
                with contextlib.suppress(OSError):
                    connection = await attempt
                    break
    except (OSError, UnicodeError):  # the time is over, or the name has gone
        pass
    finally:
        await ended(*attempts)
        for attempt in attempts:
            made = None if attempt.cancelled() or attempt.exception() else attempt.result()
            if made is not None and made is not connection:
                made.close()
    return connection


def _why(refused: OSError, tls: ssl.SSLContext | None) -> str:
    """The operating system's message, without the call and the addresses that asyncio adds."""
    if tls is not None and isinstance(refused, ConnectionResetError | ConnectionAbortedError):
        return "it closed the connection during the TLS handshake; a listener without TLS does that"
    if refused.errno is None:
        return "none of its addresses answers"
    return os.strerror(refused.errno) if refused.errno > 0 else refused.strerror or type(refused).__name__
