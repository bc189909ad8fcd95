"""Fetch from followers (KIP-392): they answer readers, and leaders send those that name a rack on to them."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from harness.logs import append
from moldau.errors import ErrorCode
from moldau.handlers.fetching.fetch import FetchHandler, Near
from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.protocol import codec
from moldau.protocol.apis import FETCH
from moldau.protocol.hot_fetch import pack_fetch, read_fetch
from moldau.protocol.messages.fetch import FetchRequest
from moldau.replication.leadership import Leadership, PartitionRoles
from moldau.replies import FileSlice
from moldau.runtime import Runtime
from moldau.turns import Turns
from tests.handlers.fetching.fetches import LONG_MS, at, fetch, fill, parts_of, topic_of, values
from tests.handlers.in_sync import FOLLOWER
from tests.handlers.living import Living, batch, run
from tests.requests.calling import call


def follow(alive: Living, epoch: int = 9, leader: BrokerId = FOLLOWER) -> None:
    alive.replica("a").take_roles(PartitionRoles(leader, LeaderEpoch(epoch), (leader,), (leader,)), 0)


def by_rack(alive: Living, near: Near) -> FetchHandler:
    """The handler of a broker with a selector."""
    return FetchHandler(
        alive.broker.replicas, 1 << 20, 9, alive.broker.runtime, Turns(Runtime()), None, lambda rack, listener: near
    )


async def asked_of(handler: FetchHandler, version: int, request: FetchRequest) -> Any:
    """The handler's answer, as it is read on the wire."""
    frame = codec.write_request(FETCH, version, 7, "asker", request)[4:]
    read = read_fetch(memoryview(frame), version, codec.read_header(frame).body)
    answer = handler(read, call(FETCH, version))
    answer = await answer if isinstance(answer, Awaitable) else answer
    pieces = pack_fetch(version, 1, read, answer)
    whole = b"".join(one.file.read(one.length, one.offset) if isinstance(one, FileSlice) else one for one in pieces)
    return codec.read_reply(FETCH, version, memoryview(whole)[4:])


@pytest.mark.parametrize("version", [11, 12, 17])
def test_a_follower_answers_readers_in_a_rack_up_to_its_high_watermark(version: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        await fill(alive, "a", batch(b"x"))
        follow(alive)
        append(alive.replica("a").log, 1)
        handler = by_rack(alive, lambda leadership, offset: None)

        async def ask(offset: int, rack: str = "b", **fields: Any) -> Any:
            request = fetch((topic_of(version, topic_id), at(offset, **fields)), rack_id=rack)
            (part,) = parts_of(await asked_of(handler, version, request))
            return part

        for fields in ({}, {"current_leader_epoch": 9}):
            found = await ask(0, **fields)
            assert (values(found), found.high_watermark, found.preferred_read_replica) == ([b"x"], 1, -1)
            for offset in (1, 2):  # the high watermark, and the end of the log
                found = await ask(offset, **fields)
                assert (values(found), found.error_code) == ([], 0)
            assert (await ask(3, **fields)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            assert values(await ask(0, "", **fields)) == [b"x"]
        assert (await ask(0, current_leader_epoch=8)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await ask(0, current_leader_epoch=10)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [11, 12, 17])
def test_without_a_selector_a_follower_answers_every_reader_up_to_its_high_watermark(version: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        await fill(alive, "a", batch(b"x"))
        follow(alive)
        append(alive.replica("a").log, 1)
        wire = await alive.dial()

        async def ask(offset: int, epoch: int, rack: str) -> Any:
            request = fetch((topic_of(version, topic_id), at(offset, current_leader_epoch=epoch)), rack_id=rack)
            (part,) = parts_of(await wire.ask(FETCH, version, request))
            return part

        for rack in ("", "b"):
            for epoch in (9, -1):
                found = await ask(0, epoch, rack)
                assert (values(found), found.high_watermark, found.preferred_read_replica) == ([b"x"], 1, -1)
                for offset in (1, 2):  # the high watermark, and the end of the log
                    found = await ask(offset, epoch, rack)
                    assert (values(found), found.error_code, found.high_watermark) == ([], 0, 1)
                assert (await ask(3, epoch, rack)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            assert (await ask(0, 8, rack)).error_code == ErrorCode.FENCED_LEADER_EPOCH
            assert (await ask(0, 10, rack)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    run(scenario, tmp_path)


@pytest.mark.parametrize("known", [{}, {"current_leader_epoch": 9}])
def test_before_version_11_a_follower_is_not_read(known: dict[str, int], tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        follow(alive)
        wire = await alive.dial()
        for version in (4, 8, 9, 10, 11):
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if version < 11 else ErrorCode.NONE
            two = fetch(("a", at(0, **known)), ("a", at(0, **known)))  # read in another way than one
            for asked in (fetch(("a", at(0, **known))), two):
                found = parts_of(await wire.ask(FETCH, version, asked))
                assert {part.error_code for part in found} == {error}

    run(scenario, tmp_path)


def test_a_leader_that_is_cut_off_and_a_follower_that_truncates_are_not_read(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica = alive.replica("a")
        handler = by_rack(alive, lambda leadership, offset: FOLLOWER if leadership.leads else None)

        async def errors() -> set[int]:
            asked = [fetch(("a", at(0)), rack_id=rack) for rack in ("", "b")]
            return {part.error_code for one in asked for part in parts_of(await asked_of(handler, 12, one))}

        replica.cut_off(True)
        assert await errors() == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        follow(alive)
        assert await errors() == {ErrorCode.NONE}
        replica.cutting = asyncio.ensure_future(asyncio.sleep(0))
        assert await errors() == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        replica.cutting = None

    run(scenario, tmp_path)


def test_a_reader_that_waits_at_a_follower_wakes_when_the_watermark_or_the_roles_change(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        follow(alive)
        replica = alive.replica("a")
        append(replica.log, 1)
        wire = await alive.dial()
        asked = fetch(("a", at(0, current_leader_epoch=9)), max_wait_ms=LONG_MS, rack_id="b")
        waiting = asyncio.ensure_future(wire.ask(FETCH, 12, asked))
        while not replica.waiters.for_bytes:
            await asyncio.sleep(0)
        replica.follow_watermark(Offset(1))
        (part,) = parts_of(await waiting)
        assert (len(values(part)), part.high_watermark) == (1, 1)
        asked = fetch(("a", at(1, current_leader_epoch=9)), max_wait_ms=LONG_MS, rack_id="b")
        waiting = asyncio.ensure_future(wire.ask(FETCH, 12, asked))
        while not replica.waiters.for_bytes:
            await asyncio.sleep(0)
        follow(alive, 10)
        (part,) = parts_of(await waiting)
        assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH

    run(scenario, tmp_path)


def test_a_reader_is_sent_on_without_records_and_at_once(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a", 2)
        await fill(alive, "a", batch(b"x"))
        await fill(alive, "a", batch(b"y"), partition=1)
        seen: list[tuple[str, str, int]] = []

        def near(rack: str, listener: str) -> Near:
            def chosen(_: Leadership, offset: int) -> int | None:
                seen.append((rack, listener, offset))
                return FOLLOWER if offset else None

            return chosen

        handler = FetchHandler(alive.broker.replicas, 1 << 20, 9, alive.broker.runtime, Turns(Runtime()), None, near)
        for version in (11, 12, 17):
            topic = topic_of(version, topic_id)
            request = fetch((topic, at(1)), (topic, at(0, 1)), rack_id="b", max_wait_ms=LONG_MS, min_bytes=1 << 20)
            answer = await asked_of(handler, version, request)
            sent_on, read = parts_of(answer)
            assert (sent_on.preferred_read_replica, sent_on.high_watermark, sent_on.records) == (FOLLOWER, 1, b"")
            assert (read.preferred_read_replica, values(read)) == (-1, [b"y"])
            assert set(seen) == {("b", "PLAINTEXT", 1), ("b", "PLAINTEXT", 0)}
            # One partition alone, and in a session, where only news are told.
            alone = fetch((topic, at(1)), rack_id="b", session_epoch=-1)
            assert parts_of(await asked_of(handler, version, alone))[0].preferred_read_replica == FOLLOWER
            fenced = fetch((topic, at(1, current_leader_epoch=99)), rack_id="b")
            assert parts_of(await asked_of(handler, version, fenced))[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
            begun = await asked_of(handler, version, fetch((topic, at(1)), rack_id="b", session_epoch=0))
            on = fetch(rack_id="b", session_id=begun.session_id, session_epoch=1)
            (again,) = parts_of(await asked_of(handler, version, on))
            assert again.preferred_read_replica == FOLLOWER
            seen.clear()
            without = fetch((topic, at(1)))
            assert parts_of(await asked_of(handler, version, without))[0].preferred_read_replica == -1
            assert not seen

    run(scenario, tmp_path)
