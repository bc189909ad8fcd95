"""The longest turn of the loop while a broker answers a request, counted in function calls: the same number on a busy
machine and an idle one. The watchdog and the benchmarks measure the time that the calls take."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moldau.protocol import codec
from moldau.protocol.apis import Api
from tests.handlers.living import Living

SHARE = 0.15
"""Of the calls that reading the whole request takes: the longest turn."""
LEAST_CALLS = 80_000
"""A turn of the thousand costliest elements makes 65,000 calls, which take about 10 ms."""


class LongestTurn:
    """The longest turn of the running loop, in function calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def __aenter__(self) -> "LongestTurn":
        self._watching = asyncio.ensure_future(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()
        await asyncio.wait([self._watching])

    async def _watch(self) -> None:
        with counted_calls() as counted:
            before = 0
            while True:
                await asyncio.sleep(0)
                self.calls = max(self.calls, counted.calls - before)
                before = counted.calls


class Counted:
    calls = 0


@contextmanager
def counted_calls() -> Iterator[Counted]:
    """Count the calls of functions in this thread."""
    counted = Counted()

    def count(_frame: object, event: str, _argument: object) -> None:
        if event.endswith("call"):
            counted.calls += 1

    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(None)


def calls_to_read(api: Api, frame: bytes) -> int:
    header = codec.read_header(frame)
    with counted_calls() as counted:
        codec.read_request(api, header.version, frame, header.body)
    return counted.calls


async def held(alive: Living, api: Api, request: Any, version: int | None = None) -> tuple[int, int, bytes]:
    """The calls of the longest turn while the broker answers, those of reading the request, and the reply, if any."""
    frame, reply = codec.write_request(api, api.high if version is None else version, 7, "wide", request), b""
    reading = calls_to_read(api, frame[4:])
    reader, writer = await asyncio.open_connection("127.0.0.1", alive.broker.port, limit=1 << 26)
    async with LongestTurn() as longest:
        writer.write(frame)
        await writer.drain()
        try:
            size = int.from_bytes(await reader.readexactly(4), "big")
            reply = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            pass  # a violation of the protocol, as an API may call it
    writer.close()
    return longest.calls, reading, reply


async def answered_in_turns(
    alive: Living, api: Api, request: Any, version: int | None = None, least_calls: int = LEAST_CALLS
) -> Any:
    """The reply to a request that must not hold the loop; None without one."""
    longest, reading, reply = await held(alive, api, request, version)
    assert longest < max(SHARE * reading, least_calls), (
        f"{longest} calls in a turn; reading the request takes {reading}"
    )
    return codec.read_reply(api, api.high if version is None else version, reply) if reply else None
