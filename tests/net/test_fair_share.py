"""However much some connections ask, each gets its share of the loop and the others get theirs. Shares are counted in
requests, because each request takes a time that the test sets."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvloop

from harness.patience import within
from moldau.errors import ProtocolViolation
from moldau.net.fair_share import ROUND_S, SHARE_S, FairShare
from moldau.net.server import Server
from moldau.replies import Answer

NEW_LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
REQUEST_S = SHARE_S / 20
SHARE, ROUND = 21, round(ROUND_S / REQUEST_S) + 21
"""Requests in a share and in a round: the last one exceeds the time."""
POLITE = b"polite"


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def run(new_loop: Callable[[], asyncio.AbstractEventLoop], scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        await within(scenario, 60)

    loop = new_loop()
    try:
        loop.run_until_complete(bounded())
    finally:
        loop.close()


class Requests:
    """A server for which every request takes `REQUEST_S`; `handled` says whose they were.

    The polite client has one request on its way, and sends it while one of the greedy ones is handled; `waited` are the
    requests of others that were handled meanwhile.
    """

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self.waited: list[int] = []
        self.polite: socket.socket | None = None
        self._sent_at: int | None = None
        self._now_s = 0.0
        self.server = Server(lambda peer, listener: self.handle, stopwatch=lambda: self._now_s)

    def handle(self, frame: memoryview) -> Answer:
        body = bytes(frame)
        if body == b"broken":
            raise ProtocolViolation("broken")
        self._now_s += REQUEST_S
        if body == POLITE:
            assert self._sent_at is not None
            self.waited.append(len(self.handled) - self._sent_at)
            self._sent_at = None
        else:
            self.handled.append(body[:1])
            if self.polite and self._sent_at is None:
                self.polite.sendall(framed(POLITE))
                self._sent_at = len(self.handled)
        return [framed(body)]

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        port = await self.server.start("127.0.0.1", 0)
        await self.server.serve()
        with socket.create_connection(("127.0.0.1", port)) as self.polite:
            try:
                yield port
            finally:
                self.polite = None
                await self.server.stop()


async def pipeline(port: int, frames: bytes, size: int) -> bytes:
    """Send all of it, read this many bytes of replies."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        for at in range(0, len(frames), 1 << 16):
            writer.write(frames[at : at + (1 << 16)])
            await writer.drain()

    sending = asyncio.ensure_future(send())
    replies = await reader.readexactly(size)
    await sending
    writer.close()
    return replies


@NEW_LOOPS
def test_a_client_that_asks_once_at_a_time_waits_for_a_share_of_one_that_pipelines(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
):
    async def scenario() -> None:
        requests = Requests()
        bodies = [b"a%05d" % number for number in range(10_000)]
        frames = b"".join(map(framed, bodies))
        async with requests.serving() as port:
            assert await pipeline(port, frames, len(frames)) == frames, "every reply, in the order of the requests"
        assert len(requests.waited) > len(bodies) / (2 * SHARE)
        assert max(requests.waited) <= 2 * SHARE

    run(new_loop, scenario())


@NEW_LOOPS
def test_beside_twenty_that_pipeline_it_waits_for_a_round(new_loop: Callable[[], asyncio.AbstractEventLoop]):
    async def scenario() -> None:
        connections, each = 20, 2000
        requests = Requests()
        async with requests.serving() as port:
            frames = [framed(bytes([ord("a") + number])) * each for number in range(connections)]
            replies = await asyncio.gather(*(pipeline(port, some, len(some)) for some in frames))
            assert replies == frames
        assert len(requests.waited) > 100
        assert sorted(requests.waited)[-len(requests.waited) // 100] <= 2 * ROUND
        assert max(requests.waited) <= connections * SHARE + 2 * ROUND, "if all of them bring their first at once"

    run(new_loop, scenario())


@NEW_LOOPS
def test_those_that_pipeline_get_equal_shares(new_loop: Callable[[], asyncio.AbstractEventLoop]):
    """Also one that had much more to ask than the others."""

    async def scenario() -> None:
        requests = Requests()
        async with requests.serving() as port:
            much, some = framed(b"a") * 20_000, [framed(name) * 1000 for name in (b"b", b"c", b"d")]
            await asyncio.gather(*(pipeline(port, one, len(one)) for one in (much, *some)))
        handled = b"".join(requests.handled)
        last = max(handled.rindex(name) for name in (b"b", b"c", b"d"))
        first = max(handled.index(name) for name in (b"b", b"c", b"d"))
        shares = handled[first : last + 1]
        for name in (b"b", b"c", b"d"):
            assert shares.count(b"a") <= 1.5 * shares.count(name) + 4 * ROUND

    run(new_loop, scenario())


@pytest.mark.parametrize("size", [1000, 5000, 30_000])
@NEW_LOOPS
def test_reads_that_follow_each_other_in_one_turn_share_one_share(
    new_loop: Callable[[], asyncio.AbstractEventLoop], size: int
):
    """libuv repeats a read that filled its buffer up to 32 times before it looks at another socket."""

    async def scenario() -> None:
        requests = Requests()
        bodies = [b"a" * size for _ in range((16 << 20) // size)]
        frames = b"".join(map(framed, bodies))
        async with requests.serving() as port:
            assert await pipeline(port, frames, len(frames)) == frames
        assert max(requests.waited) <= 3 * SHARE

    run(new_loop, scenario())


@NEW_LOOPS
@pytest.mark.parametrize("broken", [struct.pack(">i", -1), struct.pack(">i", 2**31 - 1), framed(b"broken")])
def test_what_breaks_the_protocol_after_a_share_closes_the_connection_after_the_replies_before_it(
    new_loop: Callable[[], asyncio.AbstractEventLoop], broken: bytes, caplog: pytest.LogCaptureFixture
):
    async def scenario() -> None:
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        requests = Requests()
        for before in range(SHARE - 2, SHARE + 3):
            async with requests.serving() as port:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(framed(b"a") * before + broken)
                assert await reader.read() == framed(b"a") * before
                writer.close()
            requests = Requests()
        assert not faults

    run(new_loop, scenario())


class Shares:
    """A `FairShare` whose connections use a whole share each time, in the time of the test."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now_s = 0.0
        self.served: list[str] = []
        self.fair_share = FairShare(loop, lambda: self.now_s)

    def wait(self, name: str, is_urgent: bool = False, again: int = 0) -> None:
        def serve() -> None:
            self.served.append(name)
            self.now_s += SHARE_S
            if again:
                self.wait(name, is_urgent, again - 1)

        self.fair_share.wait(serve, is_urgent)


def test_under_overload_what_is_urgent_is_served_in_the_next_round() -> None:
    async def scenario() -> None:
        shares = Shares(asyncio.get_running_loop())
        for number in range(500):
            shares.wait(f"greedy {number}", again=5)
        await asyncio.sleep(0)
        for _ in range(20):
            shares.wait("urgent", is_urgent=True)
            before = len(shares.served)
            await asyncio.sleep(0)
            assert "urgent" in shares.served[before : before + 1]

    run(asyncio.new_event_loop, scenario())


def test_urgent_connections_leave_the_others_their_part() -> None:
    async def scenario() -> None:
        shares = Shares(asyncio.get_running_loop())
        for number in range(20):
            shares.wait("urgent", is_urgent=True, again=50)
            shares.wait(f"other {number}", again=50)
        for _ in range(40):
            await asyncio.sleep(0)
        others = sum(name != "urgent" for name in shares.served)
        assert 0.3 < others / len(shares.served) < 0.7

    run(asyncio.new_event_loop, scenario())


@NEW_LOOPS
def test_a_broker_is_served_before_twenty_clients_that_pipeline(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """Its requests take more than a share each time, so that it waits as well."""

    async def scenario() -> None:
        requests = Requests()
        requests.server.urgent = lambda frame: frame[:1] == b"u"
        async with requests.serving() as port:
            greedy = [b"%c%05d" % (97 + number % 20, number) for number in range(20 * 500)]
            frames = [b"".join(framed(body) for body in greedy[number::20]) for number in range(20)]
            urgent = b"".join(framed(b"u%05d" % number) for number in range(500))
            replies = [pipeline(port, one, len(one)) for one in (*frames, urgent)]
            await asyncio.gather(*replies)
        last = max(at for at, who in enumerate(requests.handled) if who == b"u")
        assert last < len(requests.handled) / 2

    run(new_loop, scenario())
