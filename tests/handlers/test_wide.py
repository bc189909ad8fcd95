"""The widest requests of every API: none holds the loop for long, whatever is in it.

A request is made for each API from its table: its arrays are long, everything in them is different. What counts is the
processor time of the loop's thread in one turn, beside the time that reading the same bytes takes at the same moment: a
broker that reads, handles and answers in one turn needs a multiple of that.
"""

import asyncio
import dataclasses
import gc
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.handlers.find_coordinator import GROUP, TRANSACTION
from moldau.protocol import apis, codec
from moldau.protocol.apis import APIS, FETCH, PRODUCE, Api
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.schema import Spec, specs
from tests.handlers.living import Living, living

ELEMENTS = 30_000
SHARE = 0.4
"""Of the time that reading the whole request takes: the longest turn."""
LEAST_S = 0.02
WHOLE = {"timeout_ms": 30_000, "response_partition_limit": ELEMENTS}
BY_HAND = (PRODUCE, FETCH)


def arrays(message: type) -> Iterator[tuple[str, Spec]]:
    return ((name, spec) for name, spec, _ in specs(message) if spec.array)


def filled(kind: Any, number: int) -> Any:
    """One element, different from all others."""
    if not isinstance(kind, type):
        texts = {"string": f"wide-{number}", "bytes": b"", "uuid": uuid.UUID(int=number + 1), "bool": False}
        return texts.get(kind, number % 100)
    values: dict[str, Any] = {}
    for name, spec, _ in specs(kind):
        values[name] = [filled(spec.kind, number)] if spec.array else filled(spec.kind, number)
        if not spec.array and spec.kind not in ("string", "uuid") and not isinstance(spec.kind, type):
            del values[name]
    return kind(**values)


def elements_of(kind: Any) -> int:
    nested = arrays(kind) if isinstance(kind, type) else ()
    return 1 + sum(elements_of(spec.kind) for _, spec in nested)


def wide_requests() -> Iterator[tuple[Api, str]]:
    for api in APIS.values():
        if api not in BY_HAND:
            for name, spec in arrays(api.request):
                if spec.since <= api.high <= spec.until:
                    yield api, name


def request_of(api: Api, array: str) -> Any:
    (kind,) = (spec.kind for name, spec in arrays(api.request) if name == array)
    request = api.request(**{array: [filled(kind, n) for n in range(ELEMENTS // elements_of(kind))]})
    known = {field.name for field in dataclasses.fields(request)}
    for name, value in {"group_id": "wide", "member_id": "wide", "transactional_id": "wide", **WHOLE}.items():
        if name in known and array != name:
            setattr(request, name, value)
    return request


class LongestTurn:
    """The longest turn of the running loop, in processor time of its thread."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def __aenter__(self) -> "LongestTurn":
        gc.collect()
        gc.disable()
        self._watching = asyncio.ensure_future(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watching.cancel()
        gc.enable()

    async def _watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.seconds = max(self.seconds, now - before)
            before = now


def read_s(api: Api, frame: bytes) -> float:
    header = codec.read_header(frame)
    took = []
    for _ in range(3):
        began = time.thread_time()
        codec.read_request(api, header.version, frame, header.body)
        took.append(time.thread_time() - began)
    return min(took)


async def held(alive: Living, api: Api, request: Any) -> tuple[float, float]:
    """The longest turn while the broker answers the request, and how long reading it takes."""
    frame = codec.write_request(api, api.high, 7, "wide", request)
    took_s = read_s(api, frame[4:])
    reader, writer = await asyncio.open_connection("127.0.0.1", alive.broker.port, limit=1 << 26)
    async with LongestTurn() as longest:
        writer.write(frame)
        await writer.drain()
        try:
            size = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            pass  # a violation of the protocol, as an API may call it
    writer.close()
    return longest.seconds, took_s


@pytest.mark.parametrize(("api", "array"), list(wide_requests()), ids=lambda value: getattr(value, "name", value))
def test_no_wide_request_holds_the_loop(api: Api, array: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with asyncio.timeout(120), living(tmp_path, offsets_topic_num_partitions=2) as alive:
            wire = await alive.dial()
            for kind in (GROUP, TRANSACTION):
                asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=["wide"])
                await wire.ask(apis.FIND_COORDINATOR, 6, asked)
            longest_s, took_s = await held(alive, api, request_of(api, array))
            assert longest_s < max(SHARE * took_s, LEAST_S), f"{longest_s * 1000:.0f} ms, read in {took_s * 1000:.0f}"

    asyncio.run(scene())
