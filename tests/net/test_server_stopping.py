"""How a server takes and leaves its addresses and connections: a stop answers what is in flight and never half."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import struct
from collections.abc import Awaitable

import pytest

from harness.patience import within
from moldau.errors import ProtocolViolation
from moldau.net import outbox
from moldau.net import server as server_module
from moldau.net.limits import Limits, has_ipv6
from moldau.net.server import Handle, Server
from moldau.replies import Answer, Reply

LARGE = 3 << 20


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def receive(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def run(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        await within(scenario)

    asyncio.run(bounded())


async def serving(handle: Handle, host: str = "127.0.0.1") -> tuple[Server, int]:
    server = Server(lambda peer, listener: handle, Limits(socket_send_buffer_bytes=4096))
    port = await server.start(host, 0)
    await server.serve()
    return server, port


def test_a_stop_says_how_many_connections_it_closes_in_one_line(caplog: pytest.LogCaptureFixture):
    async def scenario() -> None:
        server, port = await serving(lambda frame: [bytes(frame)])
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        while len(server.connections) < len(streams):
            await asyncio.sleep(0)
        await server.stop()
        for reader, writer in streams:
            assert await reader.read() == b""
            writer.close()

    with caplog.at_level(logging.INFO):
        run(scenario())
    said = [record.getMessage() for record in caplog.records if record.name == server_module.__name__]
    assert said == ["stopping: closing 5 connections"]


def test_a_stop_waits_for_the_request_in_flight_and_takes_no_other():
    async def scenario() -> None:
        gate, handled = asyncio.Event(), []

        async def later(body: bytes) -> Reply:
            await gate.wait()
            return [framed(body)]

        def handle(frame: memoryview) -> Answer:
            handled.append(bytes(frame))
            return later(bytes(frame))

        server, port = await serving(handle)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(b"first") + framed(b"second"))
        while not handled or len(server.connections) < 2:
            await asyncio.sleep(0)
        stopping = asyncio.ensure_future(server.stop())
        assert await idle_reader.read() == b""
        gate.set()
        assert await receive(reader) == b"first"
        assert await reader.read() == b""
        await stopping
        assert handled == [b"first"]
        writer.close()
        idle_writer.close()

    run(scenario())


def test_what_never_ends_is_cut_off_after_a_moment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "GRACE_S", 0.05)

    async def scenario() -> None:
        cancelled = asyncio.Event()

        async def never() -> Reply:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return None

        server, port = await serving(lambda frame: never())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(b"x"))
        while not any(connection._task for connection in server.connections):
            await asyncio.sleep(0)
        await server.stop()
        assert await reader.read() == b""
        await cancelled.wait()
        assert not server.connections
        writer.close()

    run(scenario())


@pytest.mark.parametrize("violation", [False, True])
def test_a_large_reply_leaves_whole_before_its_connection_closes(violation: bool):
    async def scenario() -> None:
        def handle(frame: memoryview) -> Answer:
            if frame == b"!":
                raise ProtocolViolation("no")
            return [framed(bytes(LARGE // 4))]

        server, port = await serving(handle)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
        writer.write(framed(b"a") * 4 + (framed(b"!") if violation else b""))
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        stopping = None if violation else asyncio.ensure_future(server.stop())
        data = await reader.readexactly(size)
        rest = await reader.read()
        assert len(data) == LARGE // 4
        assert len(rest) % (LARGE // 4 + 4) == 0, "whole replies"
        assert not violation or len(rest) == 3 * (LARGE // 4 + 4)
        await (stopping or server.stop())
        writer.close()

    run(scenario())


def test_without_a_descriptor_for_it_a_connection_is_refused_and_the_others_served(monkeypatch: pytest.MonkeyPatch):
    async def scenario() -> None:
        server, port = await serving(lambda frame: [framed(bytes(frame))])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(b"x"))
        assert await receive(reader) == b"x"

        def none_left(fd: int) -> int:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        with monkeypatch.context() as patch:
            patch.setattr(outbox.os, "dup", none_left)
            refused, refused_writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                assert await refused.read() == b""
            except ConnectionResetError:
                pass
            refused_writer.close()
        writer.write(framed(b"y"))
        assert await receive(reader) == b"y"
        assert len(server.connections) == 1
        writer.close()
        await server.stop()

    run(scenario())


def test_no_host_means_every_address_on_one_port():
    async def scenario() -> None:
        server, port = await serving(lambda frame: [framed(bytes(frame))], host="")
        for host in ("127.0.0.1", "::1") if has_ipv6() else ("127.0.0.1",):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(framed(b"x"))
            assert await receive(reader) == b"x"
            writer.close()
        await server.stop()

    run(scenario())


def test_an_address_in_use_leaves_nothing_listening():
    async def scenario() -> None:
        with socket.socket(socket.AF_INET6 if has_ipv6() else socket.AF_INET) as taken:
            taken.bind(("::1" if has_ipv6() else "127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            server = Server(lambda peer, listener: lambda frame: None)
            with pytest.raises(OSError, match="in use"):
                await server.start("localhost", port)
            assert not server._listening
            await server.stop()

    run(scenario())


def test_a_negative_idle_time_is_none():
    async def scenario() -> None:
        server = Server(lambda peer, listener: lambda frame: [framed(bytes(frame))], Limits(connections_max_idle_ms=-1))
        port = await server.start("127.0.0.1", 0)
        await server.serve()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(framed(b"x"))
        assert await receive(reader) == b"x"
        server._sweep(asyncio.get_running_loop())
        writer.write(framed(b"y"))
        assert await receive(reader) == b"y"
        writer.close()
        await server.stop()

    run(scenario())


def test_a_connection_that_was_being_accepted_when_the_server_aborted_is_closed():
    async def scenario() -> None:
        server, _ = await serving(lambda frame: [bytes(frame)])
        server.abort()
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            await loop.connect_accepted_socket(lambda: server_module.Connection(server, loop), ours)
            assert await loop.sock_recv(theirs, 1) == b""
        assert not server.connections

    run(scenario())


def test_a_connection_that_is_being_accepted_while_the_server_stops_is_closed() -> None:
    async def scenario() -> None:
        server, port = await serving(lambda frame: [bytes(frame)])
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setblocking(False)
            loop.call_later(0, server.abort)  # timers come after what was received in the same turn
            with contextlib.suppress(ConnectionResetError):
                assert await loop.sock_recv(client, 1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))

    run(scenario())
