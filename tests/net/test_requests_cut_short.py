"""A request whose connection goes before it has begun leaves nothing behind: every coroutine of it is run or ended."""

import asyncio
import gc
import struct
import warnings
from collections.abc import Awaitable, Callable

import pytest

from harness.patience import within
from moldau.net import server as server_module
from moldau.net.server import Connection, Server
from moldau.replies import Answer, Reply


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Wire(asyncio.Transport):
    """The other end of a connection that nobody reads."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Parked:
    """What a handler of groups answers: one coroutine that awaits another."""

    def __init__(self) -> None:
        self.ended = 0
        self.began = 0

    def __call__(self, frame: memoryview) -> Answer:
        if frame == b"now":
            return [framed(b"now")]
        return self._outer(self._inner())

    async def _outer(self, inner: Awaitable[Reply]) -> Reply:
        return await inner

    async def _inner(self) -> Reply:
        self.began += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1
        return None


def connected(server: Server) -> Connection:
    connection = Connection(server, asyncio.get_running_loop())
    connection.connection_made(Wire())
    return connection


def receive(connection: Connection, data: bytes) -> None:
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


def run(scenario: Callable[[Parked, Server], Awaitable[None]]) -> None:
    """A coroutine that nobody ran says so when it goes, by a warning."""

    async def bounded() -> None:
        parked = Parked()
        await within(scenario(parked, Server(lambda peer, listener: parked)))
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        assert parked.began == parked.ended

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asyncio.run(bounded())
        gc.collect()
    assert [str(warning.message) for warning in said] == []


def test_a_connection_that_is_lost_as_its_request_parks_drops_no_coroutine():
    async def scenario(parked: Parked, server: Server) -> None:
        connection = connected(server)
        receive(connection, framed(b"park"))
        connection.connection_lost(None)

    run(scenario)


def test_a_peer_that_is_found_gone_by_the_reply_before_drops_no_coroutine():
    async def scenario(parked: Parked, server: Server) -> None:
        connection = connected(server)

        def gone(pieces: object) -> bool:
            connection.abort()
            return True

        connection._outbox.send = gone  # type: ignore[method-assign]
        receive(connection, framed(b"now") + framed(b"park"))
        assert not server.connections

    run(scenario)


def test_a_request_that_parks_as_the_broker_stops_drops_no_coroutine_though_the_loop_ends_with_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(server_module, "GRACE_S", 0.05)

    async def scenario(parked: Parked, server: Server) -> None:
        receive(connected(server), framed(b"park"))
        await server.stop()
        assert (parked.began, parked.ended) == (1, 1)

    run(scenario)


def test_a_transport_that_cannot_pause_drops_no_coroutine():
    async def scenario(parked: Parked, server: Server) -> None:
        connection = connected(server)

        def closed() -> None:
            raise RuntimeError("the transport is closed")

        connection._transport.pause_reading = closed  # type: ignore[method-assign]
        with pytest.raises(RuntimeError):
            receive(connection, framed(b"park"))
        connection.connection_lost(None)

    run(scenario)
