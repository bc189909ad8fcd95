"""Requests that were handled and wait for their reply: those behind them go on, and every reply keeps its place."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from harness.patience import within
from moldau.errors import ProtocolViolation
from moldau.net import server as server_module
from moldau.net.server import Server
from moldau.net.unanswered import SMALL_BYTES, SMALL_MAX, UNANSWERED_MAX
from moldau.replies import Answer, Muting, Reply, Unanswered


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    def send(self, *bodies: bytes) -> None:
        self.writer.write(b"".join(map(framed, bodies)))

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True


class Handler:
    """`wN`: unanswered until `answer`; `pN`: likewise, and packed when `packed pN` is answered; `aN`: answered at once;
    `nN`: not at all; `lN`: awaited until `answer`; `mN`: answered, and muted; `uN`: unanswered until `answer`, and
    muted for N ms; `fN`: not admitted by those that are unanswered; `xN`: refused."""

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self._waiting: dict[bytes, asyncio.Future[bytes]] = {}
        self._more = asyncio.Event()

    def __call__(self, frame: memoryview) -> Answer:
        body = bytes(frame)
        self.handled.append(body)
        self._more.set()
        kind = body[:1]
        if kind == b"x":
            raise ProtocolViolation("refused")
        if kind in (b"w", b"p", b"u"):
            return self._unanswered(body)
        if kind == b"l":
            return self._later(body)
        if kind == b"m":
            return Muting([framed(body)], 1)
        return None if kind == b"n" else [framed(body)]

    def _unanswered(self, body: bytes) -> Unanswered:
        def packed(reply: bytes) -> Reply | Muting | Unanswered:
            if reply[:1] == b"u":
                return Muting([framed(reply)], int(reply[1:]))
            return self._unanswered(b"packed " + reply) if reply[:1] == b"p" and b" " not in reply else [framed(reply)]

        return Unanswered(self._future(body), packed, lambda frame: frame[:1] != b"f")

    def _future(self, body: bytes) -> "asyncio.Future[bytes]":
        return self._waiting.setdefault(body, asyncio.get_running_loop().create_future())

    async def _later(self, body: bytes) -> Reply:
        return [framed(await self._future(body))]

    async def until_handled(self, count: int) -> None:
        while len(self.handled) < count:
            self._more.clear()
            await self._more.wait()

    def answer(self, *bodies: bytes) -> None:
        for body in bodies:
            self._waiting[body].set_result(body)

    def fail(self, body: bytes) -> None:
        self._waiting[body].set_exception(RuntimeError(f"{body!r} fails"))

    def is_cancelled(self, body: bytes) -> bool:
        return self._waiting[body].cancelled()


def run(scenario: Callable[[Handler, Wire, Server], Awaitable[None]]) -> None:
    async def served() -> None:
        handler = Handler()
        server = Server(lambda peer, listener: handler)
        port = await server.start("127.0.0.1", 0)
        await server.serve()
        wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
        try:
            await within(scenario(handler, wire, server))
        finally:
            wire.writer.transport.abort()
            await server.stop()

    asyncio.run(served())


async def is_alive(handler: Handler, wire: Wire, *expected: bytes) -> None:
    """The connection goes on: all replies so far are these, and then comes that of another request."""
    wire.send(b"a last")
    assert [await wire.receive() for _ in (*expected, b"")] == [*expected, b"a last"]


def test_requests_are_handled_while_those_before_them_wait_and_are_answered_in_order() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"a0", b"w1", b"w2", b"a3", b"n4", b"w5", b"a6")
        await handler.until_handled(7)
        assert await wire.receive() == b"a0"
        handler.answer(b"w2", b"w5")
        handler.answer(b"w1")
        await is_alive(handler, wire, b"w1", b"w2", b"a3", b"w5", b"a6")

    run(scenario)


@pytest.mark.parametrize(
    ("size", "most"), [(3, SMALL_MAX), (SMALL_BYTES // 20, 20), (SMALL_BYTES // 4, UNANSWERED_MAX)]
)
def test_so_many_wait_and_the_next_is_handled_when_one_has_left(size: int, most: int) -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        bodies = [b"w%02d" % number + bytes(size - 3) for number in range(2 * most)]
        wire.send(*bodies[: most + 2])
        await handler.until_handled(most)
        wire.send(*bodies[most + 2 :])
        [connection] = server.connections
        while not connection._paused:
            await asyncio.sleep(0)
        for number, body in enumerate(bodies):
            assert len(handler.handled) == min(number + most, len(bodies))
            handler.answer(body)
            assert await wire.receive() == body
            await handler.until_handled(min(number + 1 + most, len(bodies)))
        assert handler.handled == bodies
        await is_alive(handler, wire)

    run(scenario)


def test_replies_that_wait_count_too_and_room_is_made_by_those_that_leave() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        behind = [b"a%02d" % number + bytes(SMALL_BYTES // 8) for number in range(12)]
        wire.send(b"w", *behind)
        await handler.until_handled(UNANSWERED_MAX)
        assert handler.handled == [b"w", *behind[: UNANSWERED_MAX - 1]]
        handler.answer(b"w")
        await is_alive(handler, wire, b"w", *behind)

    run(scenario)


def test_a_reply_whose_packing_takes_longer_keeps_its_place() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"w0", b"p1", b"a2", b"w3")
        await handler.until_handled(4)
        handler.answer(b"p1", b"w3")
        handler.answer(b"w0")
        assert await wire.receive() == b"w0"
        handler.answer(b"packed p1")
        await is_alive(handler, wire, b"packed p1", b"a2", b"w3")

    run(scenario)


@pytest.mark.parametrize("in_one_read", [True, False])
def test_what_an_unanswered_request_does_not_admit_is_handled_after_its_answer(in_one_read: bool) -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"w1", b"w2")
        if not in_one_read:
            await handler.until_handled(2)
        wire.send(b"f3", b"w4")
        await handler.until_handled(2)
        [connection] = server.connections
        while not connection._blocked:
            await asyncio.sleep(0)
        handler.answer(b"w1")
        assert await wire.receive() == b"w1"
        assert handler.handled == [b"w1", b"w2"]
        handler.answer(b"w2")
        assert [await wire.receive(), await wire.receive()] == [b"w2", b"f3"]
        await handler.until_handled(4)
        handler.answer(b"w4")
        await is_alive(handler, wire, b"w4")

    run(scenario)


def test_a_request_that_is_awaited_and_one_that_mutes_keep_their_places() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"w1", b"l2", b"w3", b"m4", b"w5")
        await handler.until_handled(2)
        while b"l2" not in handler._waiting:
            await asyncio.sleep(0)
        handler.answer(b"l2")
        await handler.until_handled(5)
        handler.answer(b"w5", b"w3")
        handler.answer(b"w1")
        await is_alive(handler, wire, b"w1", b"l2", b"w3", b"m4", b"w5")

    run(scenario)


def test_requests_whose_answers_mute_the_connection_are_answered_and_the_longest_time_counts() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        ever = b"u600000"
        wire.send(ever, b"u1", b"w2")
        await handler.until_handled(3)
        handler.answer(ever)
        assert await wire.receive() == ever
        handler.answer(b"u1", b"w2")
        assert [await wire.receive(), await wire.receive()] == [b"u1", b"w2"]
        wire.send(b"a3")
        other = Wire(*await asyncio.open_connection("127.0.0.1", wire.writer.get_extra_info("peername")[1]))
        for _ in range(3):  # long after the other one's bytes are here
            await asyncio.sleep(0.002)
            await is_alive(handler, other)
        assert b"a3" not in handler.handled
        other.writer.transport.abort()

    run(scenario)


def test_a_connection_is_read_again_after_the_time_that_an_answer_mutes_it_for() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"u1", b"w2")
        await handler.until_handled(2)
        handler.answer(b"w2", b"u1")
        await is_alive(handler, wire, b"u1", b"w2")

    run(scenario)


def test_a_refusal_closes_the_connection_after_the_answers_before_it() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"a0", b"w1", b"w2", b"x3", b"a4")
        await handler.until_handled(4)
        handler.answer(b"w1")
        assert [await wire.receive(), await wire.receive()] == [b"a0", b"w1"]
        handler.answer(b"w2")
        assert await wire.receive() == b"w2"
        assert await wire.is_closed()
        assert handler.handled == [b"a0", b"w1", b"w2", b"x3"]

    run(scenario)


def test_a_request_that_fails_in_the_middle_closes_the_connection_at_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"w1", b"w2", b"a3", b"w4")
        await handler.until_handled(4)
        handler.fail(b"w2")
        handler.answer(b"w1")
        assert await wire.receive() == b"w1"
        assert await wire.is_closed()
        assert handler.is_cancelled(b"w4")

    run(scenario)
    assert "a request from 127.0.0.1" in caplog.text


def test_a_connection_that_goes_leaves_nothing_waiting() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"w1", b"a2", b"w3")
        await handler.until_handled(3)
        wire.writer.transport.abort()
        while server.connections:
            await asyncio.sleep(0)
        assert handler.is_cancelled(b"w1")
        assert handler.is_cancelled(b"w3")

    run(scenario)


def test_a_stop_answers_what_waits_and_takes_no_more() -> None:
    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"w1", b"w2")
        await handler.until_handled(2)
        stopping = asyncio.ensure_future(server.stop())
        await asyncio.sleep(0)
        wire.send(b"a3")
        handler.answer(b"w1", b"w2")
        assert [await wire.receive(), await wire.receive()] == [b"w1", b"w2"]
        assert await wire.is_closed()
        await stopping
        assert handler.handled == [b"w1", b"w2"]

    run(scenario)


def test_a_stop_cuts_off_what_never_gets_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "GRACE_S", 0.05)

    async def scenario(handler: Handler, wire: Wire, server: Server) -> None:
        wire.send(b"w1", b"w2")
        await handler.until_handled(2)
        await server.stop()
        assert await wire.is_closed()
        assert handler.is_cancelled(b"w1")
        assert handler.is_cancelled(b"w2")

    run(scenario)
