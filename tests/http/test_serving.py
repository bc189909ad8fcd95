"""The socket that HTTP servers of ours listen on, with a client over TCP."""

import asyncio
import errno
import socket
import threading
from typing import Any

import pytest

from harness.patience import stretched, within
from moldau.errors import CannotListen
from moldau.http import in_thread, serving
from moldau.http.in_thread import ServerThread
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


async def _asked(server: HttpServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return reader, writer


def test_a_stop_answers_what_has_begun() -> None:
    async def run() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def application(scope: object, receive: object, send: Any) -> None:
            begun.set()
            await may_end.wait()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})

        server = HttpServer("127.0.0.1", 0)
        server.use(application)
        await server.start()
        reader, writer = await _asked(server)
        await begun.wait()
        stopping = asyncio.ensure_future(server.stop())
        while server._server is None or server._server.servers[0].sockets:  # until it listens no more
            await asyncio.sleep(0.01)
        may_end.set()
        assert (await reader.read()).endswith(b"ok")
        await stopping
        server.close()
        writer.close()

    asyncio.run(within(run()))


@pytest.mark.parametrize("is_large", [False, True])
def test_a_stop_ends_what_does_not_end_by_itself_and_says_so_in_one_line(
    is_large: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A request that waits for a cluster that does not answer, or whose client takes no more of the answer."""
    monkeypatch.setattr(serving, "STOP_S", 0)

    async def run() -> list[str]:
        begun, ended = asyncio.Event(), list[str]()

        async def application(scope: object, receive: object, send: Any) -> None:
            try:
                if is_large:
                    await send({"type": "http.response.start", "status": 200, "headers": []})
                    await send({"type": "http.response.body", "body": bytes(64 << 20), "more_body": True})
                    asyncio.get_running_loop().call_soon(begun.set)
                    await send({"type": "http.response.body", "body": b"more", "more_body": True})
                begun.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            finally:
                ended.append("ended")

        server = HttpServer("127.0.0.1", 0)
        server.use(application)
        await server.start()
        reader, writer = await _asked(server)
        await begun.wait()
        await server.stop()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(128 << 20)
        server.close()
        writer.close()
        return ended

    assert asyncio.run(within(run())) == ["cancelled", "ended"]
    assert caplog.messages == ["the stop ends 1 request unanswered, after 0 s"]


def test_a_call_that_blocks_a_thread_does_not_hold_up_the_stop_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_thread, "LEFT_S", 0)
    may_end, ended = threading.Event(), list[str]()

    class Asking:
        """Its executor waits for somebody who does not answer."""

        def __init__(self) -> None:
            self.addresses: list[str] = []

        async def start(self) -> None:
            asyncio.get_running_loop().run_in_executor(None, may_end.wait, stretched(60))

        async def stop(self) -> None:
            ended.append("stopped")

    running = ServerThread(Asking(), "server")
    running.start()
    running.stop()
    assert ended == ["stopped"]
    assert running._thread.is_alive()
    may_end.set()
    running._thread.join(stretched(60))
    assert not running._thread.is_alive()
