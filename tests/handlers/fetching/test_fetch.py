"""Fetch as it stands on the wire: waiting, limits, where slices begin, and what is answered at once."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from harness.logs import append
from moldau import turns
from moldau.errors import ErrorCode
from moldau.names import LeaderEpoch
from moldau.protocol.apis import FETCH, METADATA, PRODUCE
from moldau.protocol.messages.fetch import FetchPartition, ReplicaState
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from tests.handlers.fetching.fetches import LONG_MS, at, fetch, fill, parts_of, values
from tests.handlers.in_sync import FOLLOWER
from tests.handlers.living import NOW_MS, Living, batch, produce, run
from tests.replication.producing import produce as produce_at

NAMED = range(4, 13)


def test_every_version_gets_what_is_there_and_where_the_log_stands(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        await fill(alive, "a", batch(b"x", b"y"), batch(b"z"))
        wire = await alive.dial()
        for version in range(4, 19):
            topic: str | bytes = "a" if version < 13 else topic_id
            (part,) = parts_of(await wire.ask(FETCH, version, fetch((topic, at(0)))))
            assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, 3, 3)
            assert values(part) == [b"x", b"y", b"z"]

    run(scenario, tmp_path)


def test_a_reader_at_the_end_waits_until_something_comes(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        wire = await alive.dial()
        wire.send(FETCH, 12, fetch(("a", at(0, 0)), ("a", at(0, 1)), max_wait_ms=LONG_MS))
        while not alive.replica("a", 1).waiters.for_bytes:
            await asyncio.sleep(0)
        await fill(alive, "a", batch(b"x"), partition=1)
        _, response = await wire.receive(FETCH, 12)
        assert [values(part) for part in parts_of(response)] == [[], [b"x"]]
        assert not alive.replica("a", 0).waiters.for_bytes

    run(scenario, tmp_path)


def test_fewer_bytes_than_asked_for_come_when_the_time_is_over(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(b"x"))
        wire = await alive.dial()
        response = await wire.ask(FETCH, 12, fetch(("a", at(0)), max_wait_ms=20, min_bytes=1 << 20))
        assert [values(part) for part in parts_of(response)] == [[b"x"]]
        wire.send(FETCH, 12, fetch(("a", at(0)), max_wait_ms=LONG_MS, min_bytes=2 * len(batch(b"x"))))
        while not alive.replica("a").waiters.for_bytes:
            await asyncio.sleep(0)
        await fill(alive, "a", batch(b"y"))
        _, response = await wire.receive(FETCH, 12)
        assert [values(part) for part in parts_of(response)] == [[b"x", b"y"]]

    run(scenario, tmp_path)


def test_a_reply_that_may_hold_no_more_files_ends_there_and_does_not_wait_for_more(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 6)
        for partition in range(5):
            await fill(alive, "a", batch(b"x"), partition=partition)
        files = alive.broker.folders.files
        files._held_max = 4
        wire = await alive.dial()
        asked = [("a", at(0, partition)) for partition in range(6)]
        for held, expected in ((0, 3), (2, 2), (4, 1)):
            files.held = held
            response = await wire.ask(FETCH, 12, fetch(*asked, min_bytes=1 << 20, max_wait_ms=LONG_MS))
            assert [bool(values(part)) for part in parts_of(response)] == [True] * expected + [False] * (6 - expected)
            assert [(part.error_code, part.high_watermark) for part in parts_of(response)] == [(0, 1)] * 5 + [(0, 0)]
            assert files.held == held

    run(scenario, tmp_path)


def test_a_partition_behind_the_limit_still_answers_what_is_wrong_with_the_offset(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        await fill(alive, "a", batch(b"x"))
        wire = await alive.dial()
        response = await wire.ask(FETCH, 12, fetch(("a", at(0)), ("a", at(7, 1)), max_bytes=1))
        assert [part.error_code for part in parts_of(response)] == [0, ErrorCode.OFFSET_OUT_OF_RANGE]

    run(scenario, tmp_path)


def test_a_reader_that_waits_holds_no_file(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        for partition in range(3):
            await fill(alive, "a", batch(b"x"), partition=partition)
        wire, files = await alive.dial(), alive.broker.folders.files
        asked = [("a", at(0, partition)) for partition in range(3)]
        wire.send(FETCH, 12, fetch(*asked, max_wait_ms=LONG_MS, min_bytes=5 * len(batch(b"x"))))
        waiters = alive.replica("a").waiters
        for _ in range(2):
            while not waiters.for_bytes:
                await asyncio.sleep(0)
            assert not files.held
            waiters.wake()
            await asyncio.sleep(0)

    run(scenario, tmp_path)


def test_a_reader_that_waits_for_a_topic_is_told_when_it_goes(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        wire, by_id = await alive.dial(), await alive.dial()
        wire.send(FETCH, 12, fetch(("a", at(0)), max_wait_ms=LONG_MS))
        by_id.send(FETCH, 13, fetch((topic_id, at(0)), max_wait_ms=LONG_MS))
        while len(alive.replica("a").waiters.for_bytes) < 2:
            await asyncio.sleep(0)
        await alive.broker.cluster.topics.delete([("a", None)])
        assert parts_of((await wire.receive(FETCH, 12))[1])[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert parts_of((await by_id.receive(FETCH, 13))[1])[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run(scenario, tmp_path)


def test_whoever_hangs_up_while_waiting_is_forgotten(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire = await alive.dial()
        wire.send(FETCH, 12, fetch(("a", at(0)), max_wait_ms=LONG_MS))
        parked = alive.replica("a").waiters.for_bytes
        while not parked:
            await asyncio.sleep(0)
        await alive.broker.server.stop()
        while parked:
            await asyncio.sleep(0)

    run(scenario, tmp_path)


def test_a_segment_that_retention_takes_is_read_to_its_end_by_who_has_begun(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", *[batch(bytes(500_000)) for _ in range(16)])
        wire, replica = await alive.dial(), alive.replica("a")
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        wire.send(FETCH, 12, fetch(("a", at(0, bytes_max=1 << 26)), max_bytes=1 << 26))
        await (await alive.dial()).ask(METADATA, 1, MetadataRequest(topics=[]))
        replica.log.delete_records_before(16)
        while replica.log.active_segment.base_offset == 0:
            replica.log.retain(2**62, 16)
        alive.broker.folder.remove_due(2**62)
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        _, response = await wire.receive(FETCH, 12)
        assert values(parts_of(response)[0]) == [bytes(500_000)] * 16

    run(scenario, tmp_path)


def test_the_limit_of_a_request_holds_over_its_partitions_but_for_the_first_batch(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        one = batch(bytes(1000))
        for partition in (1, 2):
            await fill(alive, "a", one, one, partition=partition)
        wire = await alive.dial()
        asked = [("a", at(0, partition)) for partition in range(3)]
        for version in NAMED:
            small = parts_of(await wire.ask(FETCH, version, fetch(*asked, max_bytes=10)))
            assert [len(bytes(part.records or b"")) for part in small] == [0, len(one), 0]
            middle = parts_of(await wire.ask(FETCH, version, fetch(*asked, max_bytes=3 * len(one))))
            assert [len(values(part)) for part in middle] == [0, 2, 1]
        (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(0, 1, bytes_max=10)))))
        assert len(values(part)) == 1, "the first batch goes out whole"

    run(scenario, tmp_path)


def test_an_offset_in_the_middle_of_a_batch_gets_the_whole_batch(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(b"0", b"1"), batch(b"2", b"3", b"4"))
        wire = await alive.dial()
        (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(3)))))
        assert values(part) == [b"2", b"3", b"4"]

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (at(3), ErrorCode.OFFSET_OUT_OF_RANGE),
        (at(-1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (at(0, partition=5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (at(0, partition=-1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (at(0, current_leader_epoch=7), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_what_is_wrong_is_said_at_once_and_the_others_are_served(
    asked: FetchPartition, error: ErrorCode, tmp_path: Path
):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await alive.make("b")
        await fill(alive, "a", batch(b"x", b"y"))
        wire = await alive.dial()
        response = await wire.ask(FETCH, 12, fetch(("a", asked), ("b", at(0)), max_wait_ms=LONG_MS, min_bytes=1 << 20))
        wrong, right = parts_of(response)
        assert (wrong.error_code, wrong.high_watermark, right.error_code) == (error, -1, 0)
        assert not wrong.records

    run(scenario, tmp_path)


def test_an_old_leader_epoch_is_fenced_and_the_current_one_served(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        alive.replica("a").leadership.leader_epoch = 3  # type: ignore[assignment]
        wire = await alive.dial()
        for epoch, error in ((2, ErrorCode.FENCED_LEADER_EPOCH), (3, 0), (-1, 0), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)):
            (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(0, current_leader_epoch=epoch)))))
            assert part.error_code == error

    run(scenario, tmp_path)


def test_an_id_that_nobody_has_and_a_follower_are_refused(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        wire = await alive.dial()
        (part,) = parts_of(await wire.ask(FETCH, 13, fetch((uuid.uuid4().bytes, at(0)), max_wait_ms=LONG_MS)))
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        (part,) = parts_of(await wire.ask(FETCH, 13, fetch((topic_id, at(0)), replica_id=2, max_wait_ms=LONG_MS)))
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario, tmp_path)


def test_readers_of_committed_records_hear_of_no_aborted_ones(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(b"x"))
        wire = await alive.dial()
        for level, aborted in ((0, None), (1, [])):
            (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(0)), isolation_level=level)))
            assert (part.aborted_transactions, values(part)) == (aborted, [b"x"])

    run(scenario, tmp_path)


def test_a_session_tells_only_what_changed(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        await fill(alive, "a", batch(b"x"), partition=0)
        wire = await alive.dial()
        first = await wire.ask(FETCH, 12, fetch(("a", at(0, 0)), ("a", at(0, 1)), session_epoch=0))
        assert first.session_id > 0
        assert [values(part) for part in parts_of(first)] == [[b"x"], []]
        session: dict[str, Any] = {"session_id": first.session_id, "min_bytes": 0}
        moved = await wire.ask(FETCH, 12, fetch(("a", at(1, 0)), session_epoch=1, **session))
        assert (moved.session_id, moved.responses) == (first.session_id, [])
        await fill(alive, "a", batch(b"y"), partition=1)
        grown = await wire.ask(FETCH, 12, fetch(session_epoch=2, **session))
        assert [(part.partition_index, values(part)) for part in parts_of(grown)] == [(1, [b"y"])]
        stale = await wire.ask(FETCH, 12, fetch(session_epoch=2, **session))
        assert (stale.error_code, stale.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
        ended = await wire.ask(FETCH, 12, fetch(session_epoch=-1, **session))
        assert (ended.error_code, ended.session_id) == (0, 0)
        gone = await wire.ask(FETCH, 12, fetch(session_epoch=3, **session))
        assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    run(scenario, tmp_path)


def test_a_session_waits_for_what_it_was_told_of_before(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        wire = await alive.dial()
        first = await wire.ask(FETCH, 13, fetch((topic_id, at(0)), session_epoch=0))
        wire.send(FETCH, 13, fetch(session_id=first.session_id, session_epoch=1, max_wait_ms=LONG_MS))
        while not alive.replica("a").waiters.for_bytes:
            await asyncio.sleep(0)
        await fill(alive, "a", batch(b"x"))
        _, response = await wire.receive(FETCH, 13)
        assert [values(part) for part in parts_of(response)] == [[b"x"]]

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [12, 17])
def test_a_follower_answers_those_who_compare_replicas_up_to_its_high_watermark(version: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        await fill(alive, "a", batch(b"x"))
        replica = alive.replica("a")
        replica.take_roles(PartitionRoles(FOLLOWER, LeaderEpoch(9), (FOLLOWER,), (FOLLOWER,)), 0)
        append(replica.log, 1)
        wire = await alive.dial()

        async def ask(replica_id: int, **fields: Any) -> Any:
            known = (
                {"replica_id": replica_id} if version < 15 else {"replica_state": ReplicaState(replica_id=replica_id)}
            )
            topic: str | bytes = "a" if version < 13 else topic_id
            (part,) = parts_of(await wire.ask(FETCH, version, fetch((topic, at(0, **fields)), **known)))
            return part

        found = await ask(-2)
        assert (values(found), found.high_watermark) == ([b"x"], 1)
        assert (await ask(-2, current_leader_epoch=8)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await ask(-2, current_leader_epoch=10)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    run(scenario, tmp_path)


def test_a_batch_that_comes_in_the_turn_of_a_fetch_that_found_nothing_ends_its_wait(tmp_path: Path) -> None:
    """Both requests are there when the loop looks at its sockets."""

    async def scenario(alive: Living) -> None:
        await alive.make("a")
        for offset in range(20):
            reader, writer = await alive.dial(), await alive.dial()
            if offset % 2:
                reader, writer = writer, reader
            await asyncio.sleep(0.01)
            reader.send(FETCH, 12, fetch(("a", at(offset)), max_wait_ms=LONG_MS))
            writer.send(PRODUCE, 9, produce(("a", 0, batch(b"x"))))
            _, response = await reader.receive(FETCH, 12)
            assert [values(part) for part in parts_of(response)] == [[b"x"]]

    run(scenario, tmp_path)


def test_a_batch_that_comes_while_a_wide_fetch_looks_elsewhere_ends_its_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ELEMENTS", 100)
    count = 210  # several turns

    async def scenario(alive: Living) -> None:
        await alive.make("a", count)
        first, read, seen = alive.replica("a"), Replica.read, list[int]()
        loop, wire = asyncio.get_running_loop(), await alive.dial()

        def noted(self: Replica, *more: Any, **named: Any) -> Any:
            if self is first and not seen:
                seen.append(1)
                loop.call_soon(produce_at, first, batch(b"x"), NOW_MS)
            return read(self, *more, **named)

        monkeypatch.setattr(Replica, "read", noted)
        wire.send(FETCH, 12, fetch(*(("a", at(0, number)) for number in range(count)), max_wait_ms=LONG_MS))
        _, response = await wire.receive(FETCH, 12)
        assert values(parts_of(response)[0]) == [b"x"]

    run(scenario, tmp_path)
