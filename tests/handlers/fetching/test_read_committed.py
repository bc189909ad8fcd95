"""What readers of committed records see on the wire: up to where, which aborted transactions they are told of, and when
they are woken. A client cannot write in a transaction yet, so that is done beside the wire."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moldau.client.consuming.consumer import AsyncConsumer
from moldau.client.offsets import LATEST
from moldau.errors import ConfigError, ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH, LIST_OFFSETS
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.records.batch import TRANSACTIONAL_BIT, Marker
from moldau.replication.client_appends import append_off_loop
from moldau.replication.own_appends import append_marker
from tests.handlers.fetching.fetches import LONG_MS, at, fetch, parts_of, values
from tests.handlers.living import NOW_MS, Living, Wire, batch, run
from tests.replication.producing import planned
from tests.replication.producing import produce as produce_at

COMMIT, ABORT = Marker(True, 0), Marker(False, 0)
COMMITTED, UNCOMMITTED = 1, 0


class Writer:
    """A transactional producer and its coordinator, in partition 0 of the topic "a"."""

    def __init__(self, alive: Living, producer_id: int):
        self.replica = alive.replica("a")
        self.producer_id = producer_id
        self.epoch = self.sequence = 0

    def records(self, value: bytes) -> bytes:
        self.sequence += 1
        return batch(
            value,
            attributes=TRANSACTIONAL_BIT,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence - 1,
        )

    def write(self, value: bytes) -> None:
        outcome = produce_at(self.replica, self.records(value), NOW_MS)
        assert not outcome.error, outcome

    async def end(self, marker: Marker) -> None:
        self.epoch, self.sequence = self.epoch + 1, 0
        assert not (await append_marker(self.replica, self.producer_id, self.epoch, marker, 2, NOW_MS)).error


def told(part: Any) -> list[tuple[int, int]] | None:
    if part.aborted_transactions is None:
        return None
    return [(one.producer_id, one.first_offset) for one in part.aborted_transactions]


async def latest(wire: Wire, isolation: int, timestamp: int = -1) -> int:
    topic = ListOffsetsTopic(name="a", partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[topic])
    (part,) = (await wire.ask(LIST_OFFSETS, 9, request)).topics[0].partitions
    assert part.error_code == 0
    return int(part.offset)


def test_readers_see_up_to_the_last_stable_offset_and_are_told_what_was_aborted(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a")
        one, two = Writer(alive, 1), Writer(alive, 2)
        for writer, value in ((one, b"x"), (two, b"y"), (two, b"z")):
            writer.write(value)
        await one.end(ABORT)
        one.write(b"w")
        await one.end(COMMIT)
        wire = await alive.dial()
        for version in range(4, 19):
            topic: str | bytes = "a" if version < 13 else topic_id
            (part,) = parts_of(await wire.ask(FETCH, version, fetch((topic, at(0)), isolation_level=COMMITTED)))
            assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, 6, 1)
            assert (values(part), told(part)) == ([b"x"], [(1, 0)])
            (part,) = parts_of(await wire.ask(FETCH, version, fetch((topic, at(0)))))
            assert (part.high_watermark, part.last_stable_offset) == (6, 1)
            assert (values(part), told(part)) == ([b"x", b"y", b"z", b"w"], None)
        for offset in (1, 5, 6):
            (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(offset)), isolation_level=COMMITTED)))
            assert (part.error_code, values(part), told(part)) == (0, [], [])
        (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(7)), isolation_level=COMMITTED)))
        assert (part.error_code, part.last_stable_offset, told(part)) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, None)
        await two.end(COMMIT)
        (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(0)), isolation_level=COMMITTED)))
        assert (part.last_stable_offset, values(part), told(part)) == (7, [b"x", b"y", b"z", b"w"], [(1, 0)])

    run(scenario, tmp_path)


def test_several_partitions_are_told_of_in_one_reply(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        one = Writer(alive, 1)
        one.write(b"x")
        await one.end(ABORT)
        wire = await alive.dial()
        for version in range(4, 13):
            request = fetch(("a", at(0, 1)), ("a", at(0, 0)), isolation_level=COMMITTED)
            parts = parts_of(await wire.ask(FETCH, version, request))
            assert [(told(part), values(part)) for part in parts] == [([], []), ([(1, 0)], [b"x"])]

    run(scenario, tmp_path)


def test_a_waiting_reader_is_woken_by_the_end_of_a_transaction_not_by_its_records(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one, two = Writer(alive, 1), Writer(alive, 2)
        waiters = alive.replica("a").waiters
        committed, uncommitted = await alive.dial(), await alive.dial()
        committed.send(FETCH, 12, fetch(("a", at(0)), isolation_level=COMMITTED, max_wait_ms=LONG_MS))
        while not waiters.for_bytes:
            await asyncio.sleep(0)
        size = len(batch(b"x"))
        uncommitted.send(FETCH, 12, fetch(("a", at(0)), min_bytes=4 * size, max_wait_ms=LONG_MS))
        while len(waiters.for_bytes) < 2:
            await asyncio.sleep(0)
        (before,) = (wait for wait in list(waiters.for_bytes)[:1])
        one.write(b"x")
        two.write(b"y")
        while len(waiters.for_bytes) < 2 or before in waiters.for_bytes:
            await asyncio.sleep(0)
        await one.end(ABORT)
        (part,) = parts_of((await committed.receive(FETCH, 12))[1])
        assert (values(part), told(part), part.last_stable_offset) == ([b"x"], [(1, 0)], 1)
        while len(waiters.for_bytes) != 1:
            await asyncio.sleep(0)
        one.write(b"z")
        (part,) = parts_of((await uncommitted.receive(FETCH, 12))[1])
        assert values(part) == [b"x", b"y", b"z"]
        assert not waiters.for_bytes

    run(scenario, tmp_path)


def test_the_latest_offset_is_the_last_stable_one_for_readers_of_committed_records(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one = Writer(alive, 1)
        one.write(b"x")
        await one.end(COMMIT)
        one.write(b"y")
        wire = await alive.dial()
        assert (await latest(wire, COMMITTED), await latest(wire, UNCOMMITTED)) == (2, 3)
        assert (await latest(wire, COMMITTED, NOW_MS), await latest(wire, UNCOMMITTED, NOW_MS)) == (0, 0)
        alive.replica("a").log.delete_records_before(2)
        assert (await latest(wire, COMMITTED, NOW_MS), await latest(wire, UNCOMMITTED, NOW_MS)) == (-1, 2)
        alive.replica("a").log.delete_records_before(3)
        assert await latest(wire, COMMITTED) == 3
        await one.end(ABORT)
        assert await latest(wire, COMMITTED) == 4

    run(scenario, tmp_path)


def test_transactions_outlast_a_restart(tmp_path: Path) -> None:
    async def filled(alive: Living) -> None:
        await alive.make("a")
        one, two = Writer(alive, 1), Writer(alive, 2)
        one.write(b"x")
        await one.end(ABORT)
        two.write(b"y")

    async def again(alive: Living) -> None:
        wire = await alive.dial()
        assert (await latest(wire, COMMITTED), await latest(wire, UNCOMMITTED)) == (2, 3)
        (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(0)), isolation_level=COMMITTED)))
        assert (values(part), told(part)) == ([b"x"], [(1, 0)])
        await append_marker(alive.replica("a"), 2, 1, COMMIT, 2, NOW_MS)
        assert await latest(wire, COMMITTED) == 4

    run(filled, tmp_path)
    run(again, tmp_path)


def test_our_consumer_gives_out_committed_records_only(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one, two, three = (Writer(alive, number) for number in (1, 2, 3))
        for writer, value in ((one, b"x"), (two, b"y"), (one, b"x2")):
            writer.write(value)
        await two.end(COMMIT)
        await one.end(ABORT)
        one.write(b"z")
        await one.end(COMMIT)
        three.write(b"open")
        tp = TopicPartition("a", 0)
        for level, expected in (
            ("read_committed", [b"y", b"z"]),
            ("read_uncommitted", [b"x", b"y", b"x2", b"z", b"open"]),
        ):
            async with AsyncConsumer(
                f"127.0.0.1:{alive.broker.port}", auto_offset_reset="earliest", isolation_level=level
            ) as consumer:
                consumer.assign([tp])
                found: list[bytes | None] = []
                while len(found) < len(expected):
                    found += [record.value for record in await consumer.poll(100)]
                assert found == expected
                assert consumer.end_offset(tp) == (7 if level == "read_committed" else 8)
                await consumer.seek_to({tp: LATEST})
                assert await consumer.position(tp) == consumer.end_offset(tp)

    run(scenario, tmp_path)


def test_an_isolation_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="read_uncommitted, read_committed"):
        AsyncConsumer("127.0.0.1:1", isolation_level="serializable")


def test_the_end_of_a_transaction_is_flushed_where_every_record_is(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", flush_messages=1)
        one = Writer(alive, 1)
        await append_off_loop(planned(one.replica, one.records(b"x"), NOW_MS), NOW_MS)
        await one.end(COMMIT)
        assert (one.replica.log.recovery_point, one.replica.last_stable_offset) == (2, 2)

    run(scenario, tmp_path)
