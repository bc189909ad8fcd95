"""The dialling end against a peer that says whatever the test wants."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from moldau.errors import ErrorCode, KafkaError
from moldau.net.connection import MUTED_S_MAX, PIECES_MAX, READ_BUFFER_BYTES, ClientConnection, dial

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def connected(peer: Peer, max_reply_bytes: int = 1 << 20) -> AsyncIterator[ClientConnection]:
    """A connection to a server that treats it with `peer`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await dial("127.0.0.1", port, max_reply_bytes=max_reply_bytes)
    try:
        yield connection
    finally:
        connection.close()
        server.close()
        await server.wait_closed()


def frame(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


async def request(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Correlation id and body of the next frame that `ask` sent."""
    size, correlation_id = struct.unpack(">ii", await reader.readexactly(8))
    return correlation_id, await reader.readexactly(size - 4)


def ask(connection: ClientConnection, body: bytes, timeout_ms: int = 10_000) -> asyncio.Future[memoryview]:
    correlation_id = connection.next_correlation_id()
    return connection.send(correlation_id, [frame(correlation_id, body)], timeout_ms)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(frame(*await request(reader)))


def failure_of(reply: "asyncio.Future[memoryview]") -> KafkaError:
    error = reply.exception()
    assert isinstance(error, KafkaError)
    return error


def test_replies_go_to_the_requests_in_their_order() -> None:
    async def run() -> None:
        async with connected(echo) as connection:
            replies = [ask(connection, b"%d" % number) for number in range(1000)]
            assert connection.in_flight == 1000
            assert [bytes((await reply)[4:]) for reply in replies] == [b"%d" % number for number in range(1000)]
            assert connection.in_flight == 0

    asyncio.run(run())


@pytest.mark.parametrize("size", [0, 1, READ_BUFFER_BYTES - 8, READ_BUFFER_BYTES - 7, READ_BUFFER_BYTES, 700_000])
def test_a_reply_of_any_size_arrives_whole_between_its_neighbours(size: int) -> None:
    async def run() -> None:
        async with connected(echo) as connection:
            bodies = [b"before", bytes(index % 251 for index in range(size)), b"after"]
            replies = [ask(connection, body) for body in bodies]
            assert [bytes((await reply)[4:]) for reply in replies] == bodies

    asyncio.run(run())


def test_a_reply_stays_as_it_was_when_later_ones_arrive() -> None:
    async def run() -> None:
        async with connected(echo) as connection:
            first = await ask(connection, b"first")
            for _ in range(100):
                await ask(connection, b"x" * 5000)
            assert bytes(first[4:]) == b"first"

    asyncio.run(run())


def test_a_large_reply_is_received_into_the_memory_its_request_provides() -> None:
    async def run() -> None:
        async with connected(echo) as connection:
            memory = bytearray(100_000)
            body, number = b"x" * 90_000, connection.next_correlation_id()
            reply = await connection.send(number, [frame(number, body)], 10_000, lambda size: memoryview(memory)[:size])
            assert reply.obj is memory
            assert bytes(reply[4:]) == body
            assert bytes((await ask(connection, body))[4:]) == body

    asyncio.run(run())


def test_the_loop_is_woken_seldom_while_a_large_reply_arrives_and_as_usual_afterwards() -> None:
    async def in_halves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = frame(*await request(reader))
        writer.write(reply[: len(reply) // 2])
        writer.write(reply[len(reply) // 2 :] if (await request(reader))[1] == b"go on" else b"")
        await reader.read()

    async def run() -> None:
        async with connected(in_halves) as connection:
            assert connection._transport is not None
            endpoint = connection._transport.get_extra_info("socket")
            reply = ask(connection, b"x" * 700_000)
            while (bytes_wanted := endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)) == 1:
                await asyncio.sleep(0.001)
            assert READ_BUFFER_BYTES < bytes_wanted < 700_000
            number = connection.next_correlation_id()
            connection.send_unanswered([frame(number, b"go on")])
            assert len(await reply) == 700_004
            assert endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1

    asyncio.run(run())


def test_a_request_in_many_pieces_of_any_size_arrives_whole_and_in_order() -> None:
    async def run() -> None:
        async with connected(echo, 1 << 25) as connection:
            replies, sent = [], []
            for count, size in ((3, 10), (40, 400_000), (PIECES_MAX + 10, 7), (5, 1), (2, 3_000_000)):
                pieces = [bytes([number % 251]) * size for number in range(count)]
                number = connection.next_correlation_id()
                head = struct.pack(">ii", count * size + 4, number)
                replies.append(connection.send(number, [head, *map(memoryview, pieces)], 60_000))
                sent.append(b"".join(pieces))
            for reply, body in zip(replies, sent, strict=True):
                assert (await reply)[4:] == body

    asyncio.run(run())


def test_a_reply_in_single_bytes_is_put_together() -> None:
    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = frame(*await request(reader))
        for at in range(len(reply)):
            writer.write(reply[at : at + 1])
            await writer.drain()
        await reader.read()

    async def run() -> None:
        async with connected(dribble) as connection:
            assert bytes((await ask(connection, b"hello"))[4:]) == b"hello"

    asyncio.run(run())


def test_a_reply_larger_than_allowed_closes_the_connection_before_it_is_read() -> None:
    async def boast(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(struct.pack(">ii", 2_000_000_000, 1))
        await reader.read()

    async def run() -> None:
        async with connected(boast) as connection:
            reply = ask(connection, b"x")
            await asyncio.wait([reply])
            assert "2000000000 bytes" in str(failure_of(reply))
            assert connection.closed

    asyncio.run(run())


def test_an_answer_to_something_else_fails_everything_that_is_awaited() -> None:
    async def confuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(frame(99, b""))
        await reader.read()

    async def run() -> None:
        async with connected(confuse) as connection:
            replies = [ask(connection, b"x") for _ in range(3)]
            await asyncio.wait(replies)
            assert {failure_of(reply).code for reply in replies} == {ErrorCode.NETWORK_EXCEPTION}

    asyncio.run(run())


def test_a_request_that_waits_too_long_ends_the_connection_and_the_requests_behind_it() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def run() -> None:
        async with connected(silence) as connection:
            replies = [ask(connection, b"x", timeout_ms=20), ask(connection, b"y")]
            await asyncio.wait(replies)
            assert {failure_of(reply).code for reply in replies} == {ErrorCode.REQUEST_TIMED_OUT}
            late = ask(connection, b"z")
            assert failure_of(late).code == ErrorCode.NETWORK_EXCEPTION

    asyncio.run(run())


def test_a_peer_that_leaves_fails_what_is_awaited() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)

    async def run() -> None:
        async with connected(leave) as connection:
            reply = ask(connection, b"x")
            await asyncio.wait([reply])
            assert failure_of(reply).retriable

    asyncio.run(run())


def test_nobody_at_the_address_is_one_sentence_that_names_it() -> None:
    async def run() -> None:
        with pytest.raises(KafkaError, match=r"cannot connect to 127\.0\.0\.1:1: .*refused"):
            await dial("127.0.0.1", 1)

    asyncio.run(run())


@pytest.mark.parametrize("turns", range(4))
def test_a_cancellation_is_not_lost_when_the_connection_is_made_in_the_same_turn(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        made = loop.create_future()

        async def connect(
            make: Callable[[], ClientConnection], host: str, port: int, **_: Any
        ) -> tuple[None, ClientConnection]:
            await made
            return None, make()

        monkeypatch.setattr(loop, "create_connection", connect)
        dialling = asyncio.ensure_future(dial("127.0.0.1", 1))
        for _ in range(3):
            await asyncio.sleep(0)
        made.set_result(None)
        for _ in range(turns):
            await asyncio.sleep(0)
        was_cancelled = dialling.cancel()
        await asyncio.wait([dialling])
        assert dialling.cancelled() == was_cancelled

    asyncio.run(scenario())


def test_time_outs_begin_when_the_broker_reads_again_that_has_muted_the_connection() -> None:
    async def scenario() -> None:
        answered = asyncio.Event()

        async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await answered.wait()
            writer.write(frame(1, b"a"))
            await reader.read()

        async with connected(peer) as connection:
            now_s = asyncio.get_running_loop().time()
            first, second = ask(connection, b"1"), ask(connection, b"2")
            connection.muted_for(3_600)
            assert now_s + MUTED_S_MAX <= connection._muted_until_s < now_s + 3_600
            connection._timed_out(1, 1_000)
            connection._timed_out(2, 1_000)
            assert not connection.closed
            answered.set()
            await first
            connection._muted_until_s = 0.0
            connection._timed_out(1, 0)
            assert not connection.closed, "it was answered"
            connection._timed_out(2, 0)
            assert connection.closed and failure_of(second).code is ErrorCode.REQUEST_TIMED_OUT

    asyncio.run(scenario())


@pytest.mark.parametrize("alive", [True, False])
def test_a_host_whose_first_address_is_dead_is_reached_by_another_one(
    alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        loop, dialled = asyncio.get_running_loop(), list[str]()
        create_connection = loop.create_connection

        async def connect(make: Callable[[], ClientConnection], host: str, port: int, **named: Any) -> Any:
            dialled.append(host)
            if host not in ("127.0.0.1", "127.0.0.2") or not alive:
                await loop.create_future()
            if host == "127.0.0.2":
                raise ConnectionRefusedError
            return await create_connection(make, host, port, **named)

        async def resolved(host: str, port: int, **_: Any) -> Any:
            return [(2, 1, 6, "", (one, port)) for one in ("192.0.2.1", "127.0.0.2", "127.0.0.1", "127.0.0.1")]

        monkeypatch.setattr(loop, "create_connection", connect)
        monkeypatch.setattr(loop, "getaddrinfo", resolved)
        if alive:
            connection = await dial("kafka.test", port, timeout_ms=100)
            assert connection.name == f"kafka.test:{port}"
            connection.close()
        else:
            with pytest.raises(KafkaError, match=r"cannot connect to kafka\.test:[0-9]+ within 100 ms"):
                await dial("kafka.test", port, timeout_ms=100)
        assert dialled == ["kafka.test", "127.0.0.2", "127.0.0.1"]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        server.close()
        await server.wait_closed()

    asyncio.run(scenario())
