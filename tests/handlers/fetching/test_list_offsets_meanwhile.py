"""ListOffsets by time where there is much to look at: not on the loop, and what becomes of the partition meanwhile."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.patience import stretched
from moldau.errors import ErrorCode
from moldau.protocol.apis import API_VERSIONS, PRODUCE
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.records import columns, compression
from moldau.records.batch import Row, encode_batch
from moldau.records.compression import GZIP
from moldau.records.validation import INLINE_BYTES
from tests.handlers.fetching.test_list_offsets import MAX_TIMESTAMP, ask, at
from tests.handlers.living import NOW_MS, Living, Wire, outcomes, produce, run

MANY = 9000


def events(count: int = MANY) -> bytes:
    return bytes(encode_batch([Row(None, b"event", NOW_MS + number) for number in range(count)], codec=GZIP))


async def filled(alive: Living, partitions: int) -> Wire:
    await alive.make("a", partitions)
    wire = await alive.dial()
    for number in range(partitions):
        assert outcomes(await wire.ask(PRODUCE, 9, produce(("a", number, events())))) == [(number, 0, 0)]
    return wire


def on_loop(name: str, of: Any, size: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of a function's calls on this thread: `size` of their arguments and results."""
    loop, sizes, real = threading.get_ident(), [], getattr(of, name)

    def noting(*given: Any) -> Any:
        result = real(*given)
        if threading.get_ident() == loop:
            sizes.append(size(given, result))
        return result

    monkeypatch.setattr(of, name, noting)
    return sizes


def test_a_look_into_large_batches_makes_no_objects_and_inflates_nothing_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def scenario(alive: Living) -> None:
        wire = await filled(alive, 10)
        inflated = on_loop("decompress", compression, lambda _, result: len(result), monkeypatch)
        objects = on_loop("rows", columns, lambda _, result: len(result), monkeypatch)
        for timestamp, offset in ((NOW_MS + 8000, 8000), (MAX_TIMESTAMP, MANY - 1)):
            parts = await ask(wire, 7, *[at(timestamp, number) for number in range(10)])
            assert [(part.error_code, part.offset) for part in parts] == [(0, offset)] * 10
        assert max(inflated, default=0) <= INLINE_BYTES
        assert sum(objects) == 0

    run(scenario, tmp_path)


def test_others_are_served_while_a_batch_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def scenario(alive: Living) -> None:
        wire, other = await filled(alive, 8), await alive.dial()
        over, decompress = threading.Event(), compression.decompress

        def slow(codec: int, data: Any, limit: int, *arena: Any) -> Any:
            if limit > INLINE_BYTES:
                assert over.wait(stretched(20))
            return decompress(codec, data, limit, *arena)

        monkeypatch.setattr(compression, "decompress", slow)
        askers = [wire, *[await alive.dial() for _ in range(9)]]
        answers = [
            asyncio.ensure_future(ask(asker, 7, *[at(NOW_MS + 5, number) for number in range(8)])) for asker in askers
        ]
        for _ in range(20):
            await other.ask(API_VERSIONS, 0, ApiVersionsRequest())
        monkeypatch.setattr(compression, "decompress", decompress)
        assert outcomes(await other.ask(PRODUCE, 9, produce(("a", 0, events())))) == [(0, 0, MANY)]
        assert not any(answer.done() for answer in answers)
        over.set()
        for parts in await asyncio.gather(*answers):
            assert [part.offset for part in parts] == [5] * 8

    run(scenario, tmp_path)


def test_a_topic_that_is_deleted_meanwhile_is_led_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def scenario(alive: Living) -> None:
        wire = await filled(alive, 3)
        begun, over = threading.Event(), threading.Event()
        decompress = compression.decompress

        def slow(codec: int, data: Any, limit: int, *arena: Any) -> Any:
            if limit > INLINE_BYTES:
                begun.set()
                assert over.wait(stretched(20))
            return decompress(codec, data, limit, *arena)

        monkeypatch.setattr(compression, "decompress", slow)
        answer = asyncio.ensure_future(ask(wire, 7, *[at(NOW_MS + 5, number) for number in range(3)]))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        deleting = asyncio.ensure_future(alive.broker.cluster.topics.delete([("a", None)]))
        while alive.broker.replicas.find("a", None, 0) is not None:
            await asyncio.sleep(0.001)
        over.set()
        await deleting
        errors = [part.error_code for part in await answer]
        assert errors[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert set(errors[1:]) <= {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert not alive.broker.folders.lost

    run(scenario, tmp_path)


def test_a_request_for_very_many_places_is_answered_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        wire, turns, sleep = await alive.dial(), [], asyncio.sleep

        async def noting(seconds: float) -> None:
            turns.append(seconds)
            await sleep(seconds)

        monkeypatch.setattr(asyncio, "sleep", noting)
        parts = await ask(wire, 7, *[at(-1, number) for number in range(20_000)])
        assert [part.error_code for part in parts] == [0] * 3 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 19_997
        assert turns.count(0) >= 2 * 20_000 // 1024

    run(scenario, tmp_path)
