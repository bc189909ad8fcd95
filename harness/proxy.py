"""A TCP proxy in front of a broker: connections break, replies get lost, bytes trickle, as a test says.

A broker whose `advertised.listeners` is the proxy's address is reached through it alone. Faults are counted in
bytes and connections, never in time, so that a slow machine has the same ones.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from types import TracebackType

PIECE_BYTES = 16 * 1024
_RESET = struct.pack("ii", 1, 0)


class Way:
    """One direction of all connections: `passed` bytes have gone through, `lost` ones were dropped. `left` more may
    pass (None: any number); after them the way is blocked, or with `cuts` each connection breaks at its next byte. With
    `loses`, bytes are read and dropped."""

    def __init__(self) -> None:
        self.passed = 0
        self.lost = 0
        self.left: int | None = None
        self.cuts = False
        self.loses = False
        self.moved = asyncio.Event()

    def limit(self, left: int | None, cuts: bool = False, loses: bool = False) -> None:
        self.left, self.cuts, self.loses = left, cuts, loses
        self.moved.set()

    async def grant(self, wanted: int) -> int:
        """Wait until bytes may pass; returns how many of those wanted. Raises `ConnectionResetError` at the cut."""
        while self.left == 0:
            if self.cuts:
                raise ConnectionResetError
            self.moved.clear()
            await self.moved.wait()
        granted = wanted if self.left is None else min(self.left, wanted)
        if self.left is not None:
            self.left -= granted
        self.passed += granted
        return granted


class Proxy:
    """Listens on 127.0.0.1, on a loop and thread of its own, from `with` on. `target` is the broker's address. With a
    `tls` context clients speak TLS with it, and the broker does not notice.

    A connection that cannot be passed on is closed at once. Methods may be called from any thread.
    """

    def __init__(self, target: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.target = target
        self.tls = tls
        self.address = ""
        self.accepted = 0
        """The number of connections so far."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._links: set[asyncio.Task[None]] = set()
        self._requests = Way()
        self._replies = Way()

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def replied_bytes(self) -> int:
        """The bytes of replies that went through."""
        return self._replies.passed

    @property
    def lost_bytes(self) -> int:
        """The bytes of replies that were lost."""
        return self._replies.lost

    @property
    def requested_bytes(self) -> int:
        """The bytes of requests that went through."""
        return self._requests.passed

    def cut(self) -> None:
        """Break all connections now."""
        self._call(self._cut)

    def cut_requests_after(self, count: int) -> None:
        """Let `count` more bytes of requests through, then break each connection at its next one, until `heal`."""
        self._call(lambda: self._requests.limit(count, cuts=True))

    def cut_replies_after(self, count: int) -> None:
        """Let `count` more bytes of replies through, then break each connection at its next one, until `heal`."""
        self._call(lambda: self._replies.limit(count, cuts=True))

    def lose_replies(self) -> None:
        """From now on requests arrive and replies do not, until `heal`."""
        self._call(lambda: self._replies.limit(None, loses=True))

    def allow(self, requests: int | None = None, replies: int | None = None) -> None:
        """Let that many more bytes through (None: any number), then block, until the next call or `heal`."""

        def allow() -> None:
            self._requests.limit(requests)
            self._replies.limit(replies)

        self._call(allow)

    def heal(self) -> None:
        """Pass everything on. Connections whose replies were lost break: they could not be understood any more."""

        async def heal() -> None:
            while self._replies.loses and self._links:  # replies are lost until the last of them has ended
                self._cut()
                await asyncio.gather(*self._links, return_exceptions=True)
            self._requests.limit(None)
            self._replies.limit(None)

        asyncio.run_coroutine_threadsafe(heal(), self._loop).result()

    def _call(self, change: Callable[[], object]) -> None:
        async def call() -> None:
            change()

        asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def _cut(self) -> None:
        for link in self._links:
            link.cancel()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self.tls)

    async def _close(self) -> None:
        self._server.close()
        self._cut()
        await asyncio.gather(*self._links, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        link = self._loop.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either end closes it or a fault breaks it; the ends see a reset."""
        host, _, port = self.target.rpartition(":")
        writers = [writer]
        try:
            back, forth = await asyncio.open_connection(host, int(port))
            writers.append(forth)
            ways = [
                self._loop.create_task(_pass(self._requests, reader, forth)),
                self._loop.create_task(_pass(self._replies, back, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in writers:
                endpoint = one.get_extra_info("socket")
                if endpoint is not None:  # TLS has none left when the client is gone
                    with contextlib.suppress(OSError):
                        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                one.transport.abort()


async def _pass(way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE_BYTES):
        while data:
            granted = await way.grant(len(data))
            if way.loses:
                way.lost += granted
            else:
                writer.write(data[:granted])
                await writer.drain()
            data = data[granted:]
