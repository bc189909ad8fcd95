"""The server over real sockets: order, back-pressure, files, and what breaks the protocol."""

import asyncio
import contextlib
import errno
import logging
import os
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from harness.patience import within
from moldau.errors import ProtocolViolation
from moldau.net.limits import Limits
from moldau.net.server import Handle, Peer, Server, cannot_listen
from moldau.replies import Answer, FileSlice, Muting, Reply
from moldau.runtime import RealDisk


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def echo(frame: memoryview) -> Answer:
    return [framed(bytes(frame))]


@contextlib.asynccontextmanager
async def serving(handle: Handle, **limits: int) -> AsyncIterator[tuple[Server, int]]:
    server = Server(lambda peer, listener: handle, Limits(**limits))
    port = await server.start("127.0.0.1", 0)
    await server.serve()
    try:
        yield server, port
    finally:
        await server.stop()


async def dial(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def receive(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def closes(reader: asyncio.StreamReader) -> bool:
    try:
        return await within(reader.read(1), 10) == b""
    except ConnectionResetError:
        return True


def run(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        await within(scenario)

    asyncio.run(bounded())


def test_pipelined_requests_are_answered_in_order_even_if_the_first_takes_longest():
    async def scenario() -> None:
        gate = asyncio.Event()

        async def later(body: bytes) -> Reply:
            await gate.wait()
            return [framed(body)]

        def handle(frame: memoryview) -> Answer:
            body = bytes(frame)
            return later(body) if body.startswith(b"slow") else [framed(body)]

        async with serving(handle) as (_, port):
            reader, writer = await dial(port)
            asked = [b"slow 1", b"quick 2", b"quick 3", b"slow 4", b"quick 5"]
            writer.write(b"".join(map(framed, asked)))
            gate.set()
            assert [await receive(reader) for _ in asked] == asked
            writer.close()

    run(scenario())


def test_requests_without_an_answer_are_passed_over():
    async def scenario() -> None:
        def handle(frame: memoryview) -> Answer:
            return None if frame[0] == 0 else [framed(bytes(frame))]

        async with serving(handle) as (_, port):
            reader, writer = await dial(port)
            writer.write(framed(b"\0nothing") * 3 + framed(b"something"))
            assert await receive(reader) == b"something"
            writer.close()

    run(scenario())


def test_a_large_file_slice_arrives_whole_between_other_replies(tmp_path: Path):
    data = os.urandom(5 << 20)
    (tmp_path / "log").write_bytes(data)

    async def scenario() -> None:
        file = RealDisk().open(tmp_path / "log", writable=False)
        left: list[int] = []

        def handle(frame: memoryview) -> Answer:
            if frame[0] != ord("f"):
                return [framed(bytes(frame))]
            part = FileSlice(file, 1000, 4 << 20, lambda: left.append(1))
            return [struct.pack(">i", 2 + (4 << 20)) + b"<<", part]

        async with serving(handle) as (_, port):
            reader, writer = await dial(port)
            writer.write(framed(b"a") + framed(b"f") + framed(b"b") + framed(b"f") + framed(b"c"))
            assert await receive(reader) == b"a"
            assert await receive(reader) == b"<<" + data[1000 : 1000 + (4 << 20)]
            assert await receive(reader) == b"b"
            assert await receive(reader) == b"<<" + data[1000 : 1000 + (4 << 20)]
            assert await receive(reader) == b"c"
            writer.close()
        assert len(left) == 2
        file.close()

    run(scenario())


def test_whoever_asks_and_never_reads_is_not_served_on():
    async def scenario() -> None:
        handled = 0

        def handle(frame: memoryview) -> Answer:
            nonlocal handled
            handled += 1
            return [framed(bytes(100_000))]

        async with serving(handle) as (_, port):
            _, greedy = await dial(port)
            greedy.write(framed(b"x") * 100_000)
            reader, writer = await dial(port)
            before = -1
            while before != handled:  # until it stands still
                before = handled
                for _ in range(5):
                    writer.write(framed(b"y"))
                    await receive(reader)
                    handled -= 1
            assert handled < 200
            writer.close()
            greedy.transport.abort()

    run(scenario())


@pytest.mark.parametrize("garbage", [b"\x80\0\0\0", b"\x7f\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_frame_size_out_of_range_closes_the_connection_and_no_other(garbage: bytes):
    async def scenario() -> None:
        async with serving(echo, socket_request_max_bytes=1 << 20) as (_, port):
            good_reader, good_writer = await dial(port)
            reader, writer = await dial(port)
            writer.write(garbage)
            assert await closes(reader)
            writer.close()
            good_writer.write(framed(b"still here"))
            assert await receive(good_reader) == b"still here"
            good_writer.close()

    run(scenario())


@pytest.mark.parametrize("fault", [ProtocolViolation("no"), RuntimeError("our fault")])
@pytest.mark.parametrize("awaited", [False, True])
def test_replies_before_a_broken_request_are_sent_and_then_it_closes(fault: Exception, awaited: bool):
    async def scenario() -> None:
        async def fail() -> Reply:
            raise fault

        def handle(frame: memoryview) -> Answer:
            if frame[0] != ord("!"):
                return [framed(bytes(frame))]
            if awaited:
                return fail()
            raise fault

        async with serving(handle) as (server, port):
            reader, writer = await dial(port)
            writer.write(framed(b"a") + framed(b"!") + framed(b"b"))
            assert await receive(reader) == b"a"
            assert await closes(reader)
            writer.close()
            assert not server.connections

    run(scenario())


def test_connections_beyond_the_limit_are_closed_and_places_are_given_back():
    async def scenario() -> None:
        async with serving(echo, max_connections_per_ip=2) as (server, port):
            kept = [await dial(port) for _ in range(2)]
            for reader, writer in kept:
                writer.write(framed(b"x"))
                assert await receive(reader) == b"x"
            reader, writer = await dial(port)
            assert await closes(reader)
            writer.close()
            for _, each in kept:
                each.close()
            while server.connections:
                await asyncio.sleep(0)
            reader, writer = await dial(port)
            writer.write(framed(b"again"))
            assert await receive(reader) == b"again"
            writer.close()

    run(scenario())


def test_localhost_is_reached_by_both_protocols_on_one_port():
    async def scenario() -> None:
        server = Server(lambda peer, listener: echo)
        port = await server.start("localhost", 0)
        await server.serve()
        for host in ("127.0.0.1", "::1"):
            try:
                reader, writer = await asyncio.open_connection(host, port)
            except OSError:
                assert host == "::1"
                continue
            writer.write(framed(host.encode()))
            assert await receive(reader) == host.encode()
            writer.close()
        await server.stop()

    run(scenario())


def test_connections_that_break_the_protocol_again_and_again_write_one_line_for_each_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    def refuse(frame: memoryview) -> Answer:
        raise ProtocolViolation(f"request {bytes(frame)!r}")

    async def scenario() -> None:
        async with serving(refuse, room=1) as (server, port):
            for number in range(20):
                reader, writer = await dial(port)
                writer.write(framed(str(number).encode()))
                assert await closes(reader)
                writer.close()
                while server.connections:
                    await asyncio.sleep(0)
            first = await dial(port)
            for _ in range(5):
                reader, writer = await dial(port)
                assert await closes(reader)
                writer.close()
            assert not first[0].at_eof()
            first[1].close()

    run(scenario())
    closing = [re.sub(r":\d+: ", ": ", line) for line in caplog.messages if line.startswith("closing the")]
    assert closing == [
        "closing the connection from 127.0.0.1: request b'0'",
        "closing the connection from 127.0.0.1: too many connections",
    ]


@pytest.mark.parametrize("awaited", [False, True])
def test_a_muted_connection_gets_its_reply_at_once_and_is_not_read_for_that_long(awaited: bool) -> None:
    async def scenario() -> None:
        handled: list[tuple[bytes, float]] = []

        def handle(frame: memoryview) -> Answer:
            handled.append((bytes(frame), asyncio.get_running_loop().time()))
            reply = [framed(bytes(frame))]
            if bytes(frame) != b"throttled":
                return reply
            return later(reply) if awaited else Muting(reply, 300)

        async def later(reply: list[bytes]) -> Muting:
            return Muting(reply, 300)

        async with serving(handle) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"throttled") + framed(b"next"))
            first = framed(b"throttled")
            assert await within(reader.readexactly(len(first))) == first
            assert [frame for frame, _ in handled] == [b"throttled"]
            assert await within(reader.readexactly(len(framed(b"next")))) == framed(b"next")
            (_, throttled_at), (_, next_at) = handled
            assert next_at - throttled_at >= 0.3
            writer.close()

    asyncio.run(scenario())


def test_a_server_that_stops_waits_for_no_muted_connection() -> None:
    async def scenario() -> None:
        async with serving(lambda frame: Muting([framed(b"bye")], 3_600_000)) as (server, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed(b"hello"))
            await within(reader.readexactly(len(framed(b"bye"))))
            await within(server.stop())
            assert await within(reader.read()) == b""
            assert not server.connections
            writer.close()

    asyncio.run(scenario())


def test_each_connection_knows_the_listener_that_accepted_it():
    async def scenario() -> None:
        def connected(peer: Peer, listener: str) -> Handle:
            return lambda frame: [framed(listener.encode())]

        server = Server(connected)
        ports = {name: await server.start("127.0.0.1", 0, name) for name in ("INSIDE", "OUTSIDE")}
        await server.serve()
        for name, port in ports.items():
            reader, writer = await dial(port)
            writer.write(framed(b""))
            assert await receive(reader) == name.encode()
            writer.close()
        await server.stop()
        for port in ports.values():
            with pytest.raises(OSError):
                await dial(port)

    run(scenario())


def test_a_listener_whose_address_is_taken_leaves_the_others_open():
    async def scenario() -> None:
        server = Server(lambda peer, listener: echo)
        port = await server.start("127.0.0.1", 0, "INSIDE")
        with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(OSError):
            await server.start("127.0.0.1", other.getsockname()[1], "OUTSIDE")
        await server.serve()
        reader, writer = await dial(port)
        writer.write(framed(b"here"))
        assert await receive(reader) == b"here"
        writer.close()
        await server.stop()

    run(scenario())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.EADDRINUSE, "x"), "port 80 of h is in use by another process"),
        (PermissionError(errno.EACCES, "x"), "this process has no permission to listen on port 80 of h"),
        (OSError(errno.EADDRNOTAVAIL, "x"), "h is not an address of this machine"),
        (socket.gaierror(socket.EAI_NONAME, "x"), "the host h to listen on is not known"),
        (OSError(errno.ENOBUFS, "x"), "cannot listen on port 80 of h: x"),
    ],
)
def test_why_a_listener_cannot_be_opened_is_a_sentence(error: OSError, sentence: str):
    assert cannot_listen(error, "h", 80).strerror == sentence
