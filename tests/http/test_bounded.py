"""Clients that send nothing, without end or in pieces, and clients that do not read, to a server of ours over TCP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.patience import within
from moldau.http import bounded
from moldau.http.serving import HttpServer

Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CLOSED = ConnectionError, asyncio.IncompleteReadError
WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
OF_NINE = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"


class Application:
    """Answers a whole request with `pieces` of 64 KiB, and notes when it has sent all of them."""

    def __init__(self, pieces: int = 0):
        self._pieces = pieces
        self.ended = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.ensure_future(receive())
        for _ in range(self._pieces):
            if gone.done():
                break
            await send({"type": "http.response.body", "body": bytes(64 << 10), "more_body": True})
        gone.cancel()
        await send({"type": "http.response.body", "body": b"done"})
        self.ended.set()


def run(client: Client, pieces: int = 0) -> Application:
    """Let the client talk to a server."""

    async def scenario() -> Application:
        application, server = Application(pieces), HttpServer("127.0.0.1", 0)
        server.use(application)
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=4_096)
        await within(client(reader, writer))
        if pieces:
            await within(application.ended.wait())
        writer.transport.abort()
        await server.stop()
        server.close()
        return application

    return asyncio.run(scenario())


@pytest.mark.parametrize("begins", [b"", b"GET / HT"])
def test_a_connection_without_a_whole_request_is_closed(begins: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "HEAD_S", 0.05)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(begins)
        with pytest.raises(CLOSED):
            await reader.readexactly(1)

    run(client)


@pytest.mark.parametrize("half", [OF_NINE, OF_NINE + b"half", CHUNKED + b"4\r\nhalf\r\n"])
def test_a_connection_whose_body_does_not_end_is_closed(half: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take a place among the connections for good."""
    monkeypatch.setattr(bounded, "BODY_S", 0.05)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OF_NINE + b"the whole")
        await reader.readuntil(b"done")
        writer.write(half)
        with pytest.raises(CLOSED):
            await reader.readuntil(b"done")

    run(client)


def test_a_second_request_has_as_much_time_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "HEAD_S", 0.05)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(WHOLE)
        await reader.readuntil(b"done")
        writer.write(b"GET /")
        with pytest.raises(CLOSED):
            await reader.readuntil(b"done")

    run(client)


def test_a_head_without_an_end_is_refused() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = b"x: " + b"y" * 1_000 + b"\r\n"
        writer.write(b"GET / HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            await _sent_for_ever(writer, line)

    run(client)


def test_a_head_without_an_end_behind_a_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads slowly enough keeps the first request, and so the second, waiting for hours."""
    monkeypatch.setattr(bounded, "STALL_S", 10_000.0)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(WHOLE + b"GET / HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            await _sent_for_ever(writer, b"x: " + b"y" * 1_000 + b"\r\n")

    run(client, pieces=1_000)


async def _sent_for_ever(writer: asyncio.StreamWriter, line: bytes) -> None:
    while True:
        writer.write(line)
        await writer.drain()


def test_a_request_in_pieces_is_answered() -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            for at in range(len(WHOLE)):
                writer.write(WHOLE[at : at + 1])
                await asyncio.sleep(0)
            await reader.readuntil(b"done")

    run(client)


def test_requests_in_a_row_are_answered() -> None:
    """The head of the last one is in two reads, of which the first is longer than a head may be."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = bytes(2 * bounded.HEAD_BYTES_MAX)
        posted = CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        writer.write(WHOLE * 10 + posted + WHOLE[:9])
        await _answers(reader, 11)
        writer.write(WHOLE[9:])
        await reader.readuntil(b"done")

    run(client)


def test_requests_in_a_row_without_an_end_are_refused() -> None:
    """Each answer would let more of them in than it takes away."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(WHOLE * (2 * bounded.BEHIND_MAX))
        with pytest.raises(CLOSED):
            await _answers(reader, bounded.BEHIND_MAX)

    run(client)


async def _answers(reader: asyncio.StreamReader, count: int) -> None:
    for _ in range(count):
        await reader.readuntil(b"done")


def test_a_client_that_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "STALL_S", 0.05)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(WHOLE)  # and nothing is read: the reader stops at its limit

    run(client, pieces=1_000)
