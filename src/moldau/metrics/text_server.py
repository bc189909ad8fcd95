"""A small HTTP server for texts that are read with GET: what Prometheus needs, and nothing else.

It runs on the broker's own loop, and every part of it is bounded: connections, the size and time of a request, the time
of a reply. A connection carries one request. (uvicorn and httptools, which serve the schema registry, would be 30 ms
and three packages in the start of every broker that is measured, for one path without parameters or bodies.)
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from moldau.net.limits import addresses
from moldau.net.server import cannot_listen

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 32
HEAD_BYTES_MAX = 8192
HEAD_S = 5.0
"""How long a client may take to send its request."""
REPLY_S = 30.0
"""How long a client may take to read its reply."""
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error",
           503: "Service Unavailable"}  # fmt: skip


class HttpQuestion(NamedTuple):
    """A GET or HEAD. `path` has no query; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    query: str = ""


class HttpText(NamedTuple):
    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def plain(status: int, sentence: str) -> HttpText:
    return HttpText(status, "text/plain; charset=utf-8", sentence.encode() + b"\n")


def question_in(head: bytes) -> tuple[str, HttpQuestion] | None:
    """The method and the rest of a request's head; None if it is not HTTP/1."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        return None
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if line and (not colon or name != name.strip()):
            return None
        headers[name.lower()] = value.strip()
    path, _, query = words[1].partition("?")
    return words[0], HttpQuestion(path, headers, query)


class TextServer:
    """`answer` is asked for each GET."""

    def __init__(self, answer: Callable[[HttpQuestion], Awaitable[HttpText]]):
        self.port = 0
        self._answer = answer
        self._servers: list[asyncio.Server] = []
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 is a free one, an empty host every interface. Raises `CannotListen`."""
        self.port = port
        for each in addresses(host):
            try:
                server = await asyncio.start_server(self._connected, each, self.port, limit=HEAD_BYTES_MAX)
            except OSError as error:
                await self.stop()
                raise cannot_listen(error, host, port) from None
            self._servers.append(server)
            self.port = server.sockets[0].getsockname()[1]

    def abort(self) -> None:
        """Listen no more, and break all connections at once."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        for task, writer in self._serving.items():
            task.cancel()
            writer.transport.abort()

    async def stop(self) -> None:
        serving = list(self._serving)
        self.abort()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving[task] = writer
        try:
            if len(self._serving) > CONNECTIONS_MAX:
                await self._send(writer, plain(503, "too many connections"), True)
            else:
                await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, slow, or sends what is no request
        finally:
            del self._serving[task]
            writer.transport.abort()  # what was to be sent has been, or takes too long

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        asked = question_in(head[:-4])
        if asked is None:
            await self._send(writer, plain(400, "this is no request of HTTP/1"), True)
            return
        method, question = asked
        if method not in ("GET", "HEAD"):
            text = plain(405, "only GET and HEAD are answered")
            await self._send(writer, text._replace(headers=(("Allow", "GET, HEAD"),)), True)
            return
        try:
            text = await self._answer(question)
        except Exception:
            log.exception("%s cannot be answered", question.path)
            text = plain(500, "an internal error; it is in the broker's log")
        await self._send(writer, text, method == "GET")

    @staticmethod
    async def _send(writer: asyncio.StreamWriter, text: HttpText, with_body: bool) -> None:
        head = [
            f"HTTP/1.1 {text.status} {REASONS[text.status]}",
            f"Content-Type: {text.content_type}",
            f"Content-Length: {len(text.body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *(f"{name}: {value}" for name, value in text.headers),
        ]
        sock = writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n")
        if with_body:
            writer.write(text.body)
        async with asyncio.timeout(REPLY_S):
            await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
            writer.close()
            await writer.wait_closed()
