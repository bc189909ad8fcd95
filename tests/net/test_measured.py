"""The times of requests, as connections count them: each request once, whenever its answer comes."""

import asyncio
import itertools
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from harness.patience import within
from moldau.net.accepted import NOTED_MAX, Connection
from moldau.net.durations import Durations
from moldau.net.measured import RequestTimes
from moldau.net.server import Server
from moldau.replies import Answer, Muting, Reply, Unanswered

AT_ONCE, AWAITED, PARKED, MUTED, LOGIN = range(5)


class OneCallback:
    """A response with room for one callback, as those of Produce and of followers' Fetches."""

    def __init__(self) -> None:
        self._call: Callable[[Any], object] | None = None
        self._is_there = False

    def answer(self) -> None:
        self._is_there = True
        assert self._call is not None
        self._call(self)

    def done(self) -> bool:
        return self._is_there

    def result(self) -> bytes:
        return b"parked"

    def cancel(self) -> None:
        self._is_there = True

    def add_done_callback(self, call: Callable[[Any], object], /) -> None:
        self._call = call


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Counted:
    """A server that counts, with one client. The first two bytes of a frame are the API; the third one is `p` for an
    awaited answer that is parked in the end."""

    def __init__(self, counts: bool = True, stopwatch: Callable[[], float] = time.perf_counter) -> None:
        self.counts_requests = counts
        self.times = RequestTimes()
        self.parked: list[OneCallback] = []
        self.may_go_on = asyncio.Event()
        times = self.times if counts else None
        self.server = Server(lambda peer, listener: self.handle, times=times, stopwatch=stopwatch)

    def handle(self, frame: memoryview) -> Answer:
        key = frame[1]
        if key != LOGIN and self.counts_requests:
            self.times.noted.append(~key)
        if key == PARKED:
            return self._parked()
        if key in (AWAITED, LOGIN):
            return self._awaited(bytes(frame))
        return Muting([framed(bytes(frame))], 1) if key == MUTED else [framed(bytes(frame))]

    def _parked(self) -> Unanswered:
        self.parked.append(OneCallback())
        return Unanswered(self.parked[-1], lambda body: [framed(body)], lambda frame: frame[1] == PARKED)

    async def _awaited(self, body: bytes) -> Reply | Unanswered:
        await self.may_go_on.wait()
        return self._parked() if body[2:] == b"p" else [framed(body)]

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            await asyncio.sleep(0.001)

    def counts(self) -> dict[int, int]:
        return {key: one.count for key, one in self.times.answered().items()}

    def requests(self) -> dict[int, int]:
        return {key: self.times.requests(key) for key in self.times.seen()}


def run(
    scenario: Callable[[Counted, Callable[..., None], Callable[[], Awaitable[bytes]]], Awaitable[None]],
    make: Callable[[], Counted] = Counted,
) -> None:
    async def served() -> None:
        counted = make()
        port = await counted.server.start("127.0.0.1", 0)
        await counted.server.serve()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        def send(*keys: int, more: bytes = b"") -> None:
            writer.write(b"".join(framed(bytes((0, key)) + more) for key in keys))

        async def receive() -> bytes:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            return await reader.readexactly(size)

        try:
            await within(scenario(counted, send, receive))
        finally:
            writer.transport.abort()
            await counted.server.stop()

    asyncio.run(served())


@pytest.mark.parametrize("reads", [1, 2, 200])
def test_reads_are_counted_as_one_by_one_whatever_they_bring(reads: int) -> None:
    chance = random.Random(reads)
    for _ in range(20):
        times, expected = RequestTimes(), dict[int, Durations]()
        apis, most = chance.choice([(AT_ONCE,), (7,), (AT_ONCE, 7)]), chance.choice([1, 1, 5])
        for _ in range(reads):
            keys = [chance.choice(apis) for _ in range(chance.randint(1, most))]
            seconds = chance.choice([0.0, 1.5e-6, 3e-6, chance.expovariate(10_000), chance.expovariate(0.1), 100.0])
            times.noted += [*(~key for key in keys), seconds]
            for key in keys:
                expected.setdefault(key, Durations()).add(seconds)
            if chance.random() < 0.1:
                times.count()
        assert {key: one.counts for key, one in times.answered().items()} == {
            key: one.counts for key, one in expected.items()
        }
        for key, one in times.answered().items():
            assert one.sum_s == pytest.approx(expected[key].sum_s)


def test_many_reads_are_counted_before_anybody_asks() -> None:
    async def scenario(counted: Counted, send: Callable[..., None], receive: Callable[[], Awaitable[bytes]]) -> None:
        together, rounds = 128, NOTED_MAX // 128 + 1
        for _ in range(rounds):
            send(*[AT_ONCE] * together)
            for _ in range(together):
                await receive()
            assert len(counted.times.noted) <= NOTED_MAX + 2 * together
        assert len(counted.times.noted) < rounds * together
        assert counted.requests() == {AT_ONCE: rounds * together}

    run(scenario)


def test_a_read_that_is_counted_calls_no_function_of_ours_more() -> None:
    """Seconds would depend on the machine: metrics may cost a one-record Produce a fiftieth, which is one such call."""
    found: list[dict[str, Counter[str]]] = []

    async def scenario(counted: Counted, send: Callable[..., None], receive: Callable[[], Awaitable[bytes]]) -> None:
        send(AT_ONCE)
        await receive()
        (connection,) = counted.server.connections
        assert isinstance(connection, Connection)
        of = {"call": Counter[str](), "c_call": Counter[str]()}

        def called(frame: FrameType, event: str, about: Any) -> None:
            if event in of:
                of[event][about.__name__ if event == "c_call" else frame.f_code.co_qualname] += 1

        read = framed(bytes((0, AT_ONCE)))
        connection.get_buffer(-1)[: len(read)] = read
        sys.setprofile(called)
        try:
            connection.buffer_updated(len(read))
        finally:
            sys.setprofile(None)
        assert await receive() == bytes((0, AT_ONCE))
        found.append(of)

    for counts in (False, True):
        stopwatch = partial(next, itertools.count(0.0, 1e-6))  # no read is too long for its share of the loop
        run(scenario, partial(Counted, counts, stopwatch))
    plain, measured = found
    assert plain["call"] == measured["call"]
    assert measured["c_call"] - plain["c_call"] == Counter(append=2, len=1)


def test_requests_of_one_read_are_counted_by_their_apis() -> None:
    async def scenario(counted: Counted, send: Callable[..., None], receive: Callable[[], Awaitable[bytes]]) -> None:
        send(AT_ONCE, AT_ONCE, AT_ONCE)
        send(AT_ONCE, MUTED)
        for _ in range(5):
            await receive()
        await counted.until(lambda: isinstance(counted.times.noted[-1], float))
        assert counted.counts() == counted.requests() == {AT_ONCE: 4, MUTED: 1}

    run(scenario)


def test_a_request_that_waits_takes_until_its_answer_is_there() -> None:
    now_s = 100.0

    async def scenario(counted: Counted, send: Callable[..., None], receive: Callable[[], Awaitable[bytes]]) -> None:
        send(AT_ONCE, AWAITED)
        await receive()
        await counted.until(lambda: counted.requests() == {AT_ONCE: 1, AWAITED: 1})
        assert counted.counts() == {AT_ONCE: 1}
        nonlocal now_s
        now_s += 5
        counted.may_go_on.set()
        await receive()
        assert counted.counts() == counted.requests() == {AT_ONCE: 1, AWAITED: 1}
        assert counted.times.answered()[AWAITED].sum_s == pytest.approx(5)
        assert counted.times.answered()[AT_ONCE].sum_s == pytest.approx(0, abs=1e-3)

    run(scenario, lambda: Counted(stopwatch=lambda: now_s))


def test_requests_behind_one_that_is_parked_are_counted_one_by_one() -> None:
    """Their responses have room for one callback, which the connection needs itself."""

    async def scenario(counted: Counted, send: Callable[..., None], receive: Callable[[], Awaitable[bytes]]) -> None:
        send(AT_ONCE, PARKED, PARKED)
        await counted.until(lambda: len(counted.parked) == 2)
        send(AWAITED, more=b"p")
        await receive()
        for one in counted.parked:
            one.answer()
        assert await receive() == await receive() == b"parked"
        counted.may_go_on.set()
        await counted.until(lambda: len(counted.parked) == 3)
        assert (counted.counts(), counted.requests()[AWAITED]) == ({AT_ONCE: 1, PARKED: 2}, 1)
        counted.parked[-1].answer()
        assert await receive() == b"parked"
        assert counted.counts() == counted.requests() == {AT_ONCE: 1, PARKED: 2, AWAITED: 1}

    run(scenario)


def test_a_message_of_a_login_is_no_request() -> None:
    async def scenario(counted: Counted, send: Callable[..., None], receive: Callable[[], Awaitable[bytes]]) -> None:
        counted.may_go_on.set()
        send(AT_ONCE, LOGIN)
        await receive()
        await receive()
        assert counted.requests() == {AT_ONCE: 1}

    run(scenario)
