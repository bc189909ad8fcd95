"""The socket that HTTP servers of ours listen on, with a client over TCP."""

import asyncio
import errno
import socket

import pytest

from moldau.errors import CannotListen
from moldau.http.serving import HttpServer, bound


def test_an_answer_in_two_writes_does_not_wait_for_the_clients_ack() -> None:
    async def run() -> bool:
        at_once: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            at_once.set_result(bool(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            writer.close()

        server = await asyncio.start_server(connected, sock=bound("127.0.0.1", 0))
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            told = await at_once
            writer.close()
            await writer.wait_closed()
        return told

    assert asyncio.run(run())


def test_a_server_whose_port_another_one_took_after_it_was_bound_does_not_start() -> None:
    async def application(scope: object, receive: object, send: object) -> None: ...

    async def run() -> None:
        first = HttpServer("127.0.0.1", 0)
        second = HttpServer("127.0.0.1", first.port)  # neither of them listens yet
        for one in (first, second):
            one.use(application)
        await first.start()
        with pytest.raises(CannotListen, match=f"cannot listen on 127.0.0.1:{first.port}: ") as refused:
            await second.start()
        assert refused.value.errno == errno.EADDRINUSE
        for one in (second, first):
            await one.stop()
            one.close()

    asyncio.run(run())
