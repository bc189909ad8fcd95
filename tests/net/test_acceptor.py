"""TLS connections of the server over real sockets, on both event loops: handshakes, large replies, hostile clients."""

import asyncio
import contextlib
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
import uvloop

from harness.certificates import PASSWORD, Authority
from harness.patience import within
from moldau.net import acceptor
from moldau.net.limits import Limits
from moldau.net.server import Handle, Peer, Server
from moldau.replies import Answer, FileSlice
from moldau.runtime import RealDisk
from moldau.transport.key_stores import Store, identify, trust
from moldau.transport.tls import server_context

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


class Tls:
    """What the server knows of a listener with TLS; counts the contexts that it was asked for."""

    def __init__(self, authority: Authority, client_auth: ssl.VerifyMode = ssl.CERT_NONE):
        self.authority = authority
        self.asked = 0
        self.made = self.new("broker", client_auth)
        self.certificates: list[bytes | None] = []

    def new(self, name: str, client_auth: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
        made = server_context(("TLSv1.2", "TLSv1.3"), (), "ssl")
        file = self.authority.signed(name, "localhost", "127.0.0.1")
        identify(made, Store(str(file), None, PASSWORD, "ssl.keystore"))
        trust(made, Store(str(self.authority.trusted), None, None, "ssl.truststore"))
        made.verify_mode = client_auth
        return made

    def context(self) -> ssl.SSLContext:
        self.asked += 1
        return self.made

    def principal(self, certificate: bytes | None) -> str | None:
        self.certificates.append(certificate)
        if certificate is not None and len(self.certificates) > 1:
            raise ValueError("its name is not allowed")
        return None if certificate is None else "User:somebody"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def echo(frame: memoryview) -> Answer:
    return [framed(bytes(frame))]


@contextlib.asynccontextmanager
async def serving(tls: Tls, handle: Handle = echo, **limits: int) -> AsyncIterator[tuple[Server, int]]:
    server = Server(lambda peer, listener: handle, Limits(**limits))
    port = await server.start("127.0.0.1", 0, "SECURE", tls)
    await server.serve()
    try:
        yield server, port
    finally:
        await server.stop()


def trusting(authority: Authority, own: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.trusted))
    if own is not None:
        context.load_cert_chain(own, password=PASSWORD)
    return context


async def asked(port: int, context: ssl.SSLContext, body: bytes = b"ping") -> bytes:
    """The reply to one frame on a connection of its own."""
    reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
    try:
        writer.write(framed(body))
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(size)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def run(
    scenario: Awaitable[None],
    loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
    seconds: float = 60,
) -> None:
    async def bounded() -> None:
        await within(scenario, seconds)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(bounded())


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_frames_are_answered_over_each_version_of_tls(
    authority: Authority, loop: Callable[[], asyncio.AbstractEventLoop], version: ssl.TLSVersion
) -> None:
    async def scenario() -> None:
        context = trusting(authority)
        context.minimum_version = context.maximum_version = version
        async with serving(Tls(authority)) as (_, port):
            for body in (b"x", b"y" * 300_000):
                assert await asked(port, context, body) == body

    run(scenario(), loop)


def test_whatever_host_a_client_asks_for_it_is_shown_the_one_certificate(authority: Authority) -> None:
    async def scenario() -> None:
        context = trusting(authority)
        context.check_hostname = False
        async with serving(Tls(authority)) as (_, port):
            for name in ("elsewhere.example", "x" * 60, "xn--bcher-kva.example"):
                _, writer = await asyncio.open_connection("localhost", port, ssl=context, server_hostname=name)
                assert writer.get_extra_info("peercert")["subject"][0][0][1] == "broker"
                writer.close()

    run(scenario())


def test_an_older_version_of_tls_is_refused(authority: Authority) -> None:
    assert server_context(("TLS",), (), "ssl").minimum_version == ssl.TLSVersion.TLSv1_2
    assert server_context(("TLSv1.3",), (), "ssl").options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_slices_of_files_arrive_whole_and_in_order(
    authority: Authority, tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    data = bytes(range(251)) * 40_000
    (tmp_path / "segment").write_bytes(data)
    left: list[int] = []

    async def scenario() -> None:
        file = RealDisk().open(tmp_path / "segment")

        def slices(frame: memoryview) -> Answer:
            pieces = [
                FileSlice(file, 1, 5_000_000, lambda: left.append(1)),
                FileSlice(file, 0, len(data), lambda: left.append(2)),
            ]
            return [struct.pack(">i", 5_000_004 + len(data)) + b"head", *pieces]

        async with serving(Tls(authority), slices) as (_, port):
            assert await asked(port, trusting(authority)) == b"head" + data[1:5_000_001] + data
            assert left == [1, 2]
            reader, writer = await asyncio.open_connection("localhost", port, ssl=trusting(authority))
            for _ in range(4):  # the client reads none of them before it has asked for all
                writer.write(framed(b"ask"))
            await writer.drain()
            assert len(await reader.readexactly(4 * (8 + 5_000_000 + len(data)))) > 0
            writer.close()
        file.close()

    run(scenario(), loop)


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (framed(b"\0\x12\0\3\0\0\0\1\xff\xff"), "it does not speak TLS"),
        (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "it speaks HTTP without TLS"),
        (b"", "it closed the connection"),
    ],
)
def test_a_client_without_tls_is_refused_in_one_line(
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
    sent: bytes,
    reason: str,
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    caplog.set_level(logging.INFO)
    tls = Tls(authority)

    async def scenario() -> None:
        async with serving(tls) as (server, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            writer.write_eof()
            with contextlib.suppress(ConnectionResetError):
                await reader.read()  # an alert, or nothing
            writer.close()
            while server.shaking:
                await asyncio.sleep(0.01)
            assert await asked(port, trusting(authority)) == b"ping"

    run(scenario(), loop)
    assert [record.exc_info for record in caplog.records] == [None]
    assert f"on the listener SECURE: the TLS handshake failed: {reason}" in caplog.text


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_client_must_have_a_certificate_where_one_is_required(
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    caplog.set_level(logging.INFO)
    tls = Tls(authority, ssl.CERT_REQUIRED)
    peers: list[Peer] = []

    async def scenario() -> None:
        def connected(peer: Peer, listener: str) -> Handle:
            peers.append(peer)
            return echo

        async with serving(tls) as (server, port):
            server.connected = connected
            for own in (None, Authority(tmp_path, "other").signed("stranger")):
                with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
                    await asked(port, trusting(authority, own))
            mine = trusting(authority, authority.signed("client"))
            assert await asked(port, mine) == b"ping"
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await asked(port, mine)

    run(scenario(), loop)
    assert [peer.principal for peer in peers] == ["User:somebody"]
    assert "it has no certificate, and ssl.client.auth is required" in caplog.text
    assert "its certificate is refused: unable to get local issuer certificate" in caplog.text
    assert "on the listener SECURE: its name is not allowed" in caplog.text
    assert len([record for record in caplog.records if record.name.startswith("moldau.net")]) >= 3
    assert not any(record.exc_info for record in caplog.records)


def test_a_client_that_does_not_trust_the_listener_is_named_in_the_log(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with serving(Tls(authority)) as (server, port):
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.to_thread(shaken, port, trusting(Authority(tmp_path, "other")))
            while server.shaking:
                await asyncio.sleep(0.01)

    run(scenario())
    assert "it refuses this listener's certificate or settings (unknown ca)" in caplog.text


def shaken(port: int, context: ssl.SSLContext) -> None:
    with silent(port) as plain, context.wrap_socket(plain, server_hostname="localhost"):
        pass


def silent(port: int) -> socket.socket:
    """A connection that says nothing."""
    return socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("limit", ["HANDSHAKES_MAX", "HANDSHAKES_OF_HOST_MAX"])
def test_slow_handshakes_hold_up_nobody_and_the_oldest_end_first(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, loop: Callable[[], asyncio.AbstractEventLoop], limit: str
) -> None:
    monkeypatch.setattr(acceptor, limit, 20)

    async def scenario() -> None:
        async with serving(Tls(authority)) as (server, port):
            slow = []
            for _ in range(60):
                slow.append(await asyncio.to_thread(silent, port))
                assert len(server.shaking) <= 20
            assert await asked(port, trusting(authority)) == b"ping"
            ended = [await within(asyncio.to_thread(one.recv, 1), 10) for one in slow[:40]]
            assert ended == [b""] * 40
            for one in slow:
                one.close()

    run(scenario(), loop)


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_handshake_that_takes_too_long_is_closed(
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKE_S", 0.05)
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with serving(Tls(authority)) as (_, port):
            with silent(port) as one:
                assert await within(asyncio.to_thread(one.recv, 1), 10) == b""

    run(scenario(), loop)
    assert "the TLS handshake failed: it took longer than" in caplog.text


def test_handshakes_count_as_connections_of_their_host(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with serving(Tls(authority), max_connections_per_ip=2) as (server, port):
            with silent(port), silent(port), silent(port) as third:
                assert await within(asyncio.to_thread(third.recv, 1), 10) == b""
                assert len(server.shaking) == 2

    run(scenario())
    assert "on the listener SECURE: too many connections" in caplog.text


def test_where_all_connections_are_taken_the_oldest_handshake_makes_room(authority: Authority) -> None:
    async def scenario() -> None:
        async with serving(Tls(authority), room=2) as (_, port):
            with silent(port) as first, silent(port):
                assert await asked(port, trusting(authority)) == b"ping"
                assert await within(asyncio.to_thread(first.recv, 1), 10) == b""

    run(scenario())


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_connection_above_the_maximum_is_served_when_another_has_ended(
    authority: Authority, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        async with serving(Tls(authority), max_connections=1) as (server, port):
            _, first = await asyncio.open_connection("localhost", port, ssl=trusting(authority))
            reader, second = await asyncio.open_connection("localhost", port, ssl=trusting(authority))
            second.write(framed(b"waits"))
            await second.drain()
            while server.shaking:
                await asyncio.sleep(0.01)
            assert len(server.connections) == 1
            third = await asyncio.to_thread(silent, port)
            await asyncio.sleep(0.1)
            assert not server.shaking, "no handshake is begun while another connection waits"
            first.close()
            assert await reader.readexactly(9) == framed(b"waits")
            second.write(framed(b"again"))
            assert await reader.readexactly(9) == framed(b"again")
            while not server.shaking:
                await asyncio.sleep(0.01)
            third.close()
            second.close()

    run(scenario(), loop)


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_handshake_that_is_ended_before_it_has_begun_closes_its_connection(
    authority: Authority, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        async with serving(Tls(authority)) as (server, port):
            listener = cast(acceptor.SecureAcceptor, server._listening[0])
            one = silent(port)
            listener._accept()
            [task] = server.shaking
            task.cancel()  # in the same turn of the loop
        assert await within(asyncio.to_thread(one.recv, 1), 10) == b""
        one.close()

    run(scenario(), loop)


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_server_stops_in_the_middle_of_handshakes(
    authority: Authority, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        async with serving(Tls(authority)) as (server, port):
            one = silent(port)
            while not server.shaking:
                await asyncio.sleep(0.01)
        assert await within(asyncio.to_thread(one.recv, 1), 10) == b""
        one.close()
        with pytest.raises(ConnectionRefusedError):
            silent(port)

    run(scenario(), loop)


def test_a_new_context_is_used_from_the_next_handshake_on(authority: Authority) -> None:
    tls = Tls(authority)

    async def scenario() -> None:
        async with serving(tls) as (_, port):
            reader, writer = await asyncio.open_connection("localhost", port, ssl=trusting(authority))
            tls.made = tls.new("newer")
            _, newer = await asyncio.open_connection("localhost", port, ssl=trusting(authority))
            names = [one.get_extra_info("peercert")["subject"][0][0][1] for one in (writer, newer)]
            assert names == ["broker", "newer"]
            writer.write(framed(b"still"))
            assert await reader.readexactly(9) == framed(b"still")
            for one in (writer, newer):
                one.close()

    run(scenario())
