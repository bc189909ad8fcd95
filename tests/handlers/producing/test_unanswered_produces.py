"""Produces of one connection with acks=all: each is appended while those before it wait for the other replica."""

import asyncio
from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.net.unanswered import SMALL_BYTES, SMALL_MAX, UNANSWERED_MAX
from moldau.protocol.apis import FETCH, PRODUCE
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce import ProduceRequest
from moldau.records.compression import GZIP
from moldau.replication.replica import Replica
from tests.handlers.in_sync import FOLLOWER, in_sync, reached
from tests.handlers.living import Living, Wire, batch, outcomes, produce, producer_id, run

ALL = -1
NONE = ErrorCode.NONE
HOUR_MS = 3_600_000


def request(*parts: tuple[str, int, bytes], acks: int = ALL, timeout_ms: int = HOUR_MS) -> ProduceRequest:
    asked = produce(*parts, acks=acks)
    asked.timeout_ms = timeout_ms
    return asked


async def led(alive: Living, name: str = "a", **settings: object) -> Replica:
    """A new partition that another replica follows."""
    await alive.make(name, **settings)
    replica = alive.replica(name)
    in_sync(replica, 1, FOLLOWER)
    return replica


async def until_appended(replica: Replica, end: int) -> None:
    while replica.log.log_end_offset < end:
        await asyncio.sleep(0)


async def answers(wire: Wire, count: int) -> list[tuple[int, int, int]]:
    return [one for _ in range(count) for one in outcomes((await wire.receive(PRODUCE, 9))[1])]


def test_so_many_are_appended_and_the_next_one_waits_for_the_first(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        large = SMALL_BYTES // 4
        for number in range(20):
            wire.send(PRODUCE, 9, request(("a", 0, batch(b"%d" % number + bytes(large)))))
        await until_appended(replica, UNANSWERED_MAX)
        other = await alive.dial()
        await other.ask(PRODUCE, 9, request(("a", 0, batch(b"other")), acks=1))
        assert replica.log.log_end_offset == UNANSWERED_MAX + 1
        reached(replica, 3)
        assert await answers(wire, 3) == [(0, NONE, number) for number in range(3)]
        await until_appended(replica, UNANSWERED_MAX + 4)
        while replica.log.log_end_offset < 21:
            reached(replica, replica.log.log_end_offset)
            await asyncio.sleep(0)
        reached(replica, 21)
        expected = [(0, NONE, number + (number >= UNANSWERED_MAX)) for number in range(3, 20)]
        assert await answers(wire, 17) == expected
        assert not replica.waiters.until_committed

    run(scenario, tmp_path)


def test_more_small_ones_are_appended(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        for number in range(SMALL_MAX + 5):
            wire.send(PRODUCE, 9, request(("a", 0, batch(b"%d" % number))))
        await until_appended(replica, SMALL_MAX)
        await (await alive.dial()).ask(PRODUCE, 9, request(("a", 0, batch(b"other")), acks=1))
        assert replica.log.log_end_offset == SMALL_MAX + 1
        reached(replica, SMALL_MAX)
        await until_appended(replica, SMALL_MAX + 6)
        reached(replica, SMALL_MAX + 6)
        bases = [base for _, _, base in await answers(wire, SMALL_MAX + 5)]
        assert bases == [number for number in range(SMALL_MAX + 6) if number != SMALL_MAX]

    run(scenario, tmp_path)


def test_refusals_other_acks_and_heavy_batches_keep_their_places(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        heavy = batch(b"x" * 200_000, codec=GZIP)
        for records, acks in ((batch(b"0"), ALL), (batch(b"1"), 0), (heavy, ALL), (batch(b"3"), 1), (batch(b"4"), ALL)):
            wire.send(PRODUCE, 9, request(("a", 0, records), acks=acks))
        wire.send(PRODUCE, 9, request(("nowhere", 0, batch(b"5"))))
        wire.send(PRODUCE, 9, request(("a", 0, bytes(reversed(batch(b"6"))))))
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"7"))))
        await until_appended(replica, 6)
        reached(replica, 6)
        found = await answers(wire, 7)
        assert [base for _, error, base in found if not error] == [0, 2, 3, 4, 5]
        assert [error != NONE for _, error, _ in found] == [False, False, False, False, True, True, False]
        assert found[4][1] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario, tmp_path)


def test_each_has_a_time_limit_of_its_own(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        for timeout_ms in (50, HOUR_MS, 1):
            wire.send(PRODUCE, 9, request(("a", 0, batch(b"x")), timeout_ms=timeout_ms))
        assert await answers(wire, 1) == [(0, ErrorCode.REQUEST_TIMED_OUT, 0)]
        reached(replica, 3)
        assert await answers(wire, 2) == [(0, NONE, 1), (0, ErrorCode.REQUEST_TIMED_OUT, 2)]

    run(scenario, tmp_path)


def test_a_refused_acks_0_closes_the_connection_after_the_answers_before_it(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"0"))))
        wire.send(PRODUCE, 9, request(("nowhere", 0, batch(b"1")), acks=0))
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"2"))))
        await until_appended(replica, 1)
        reached(replica, 1)
        assert await answers(wire, 1) == [(0, NONE, 0)]
        assert await wire.is_closed()
        assert replica.log.log_end_offset == 1

    run(scenario, tmp_path)


def test_a_fetch_behind_them_sees_what_they_wrote(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        for number in range(3):
            wire.send(PRODUCE, 9, request(("a", 0, batch(b"%d" % number))))
        part = FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1 << 20)
        wire.send(FETCH, 12, FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic="a", partitions=[part])]))
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"3")), acks=1))
        await until_appended(replica, 3)
        reached(replica, 2)
        assert await answers(wire, 2) == [(0, NONE, 0), (0, NONE, 1)]
        assert replica.log.log_end_offset == 3
        reached(replica, 3)
        assert await answers(wire, 1) == [(0, NONE, 2)]
        _, fetched = await wire.receive(FETCH, 12)
        [found] = fetched.responses[0].partitions
        assert (found.error_code, found.high_watermark) == (0, 3)
        assert found.records
        assert await answers(wire, 1) == [(0, NONE, 3)]

    run(scenario, tmp_path)


def test_one_idempotent_producer_has_several_on_their_way_and_its_repetitions_wait_too(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        producer = await producer_id(wire)
        for sequence in (0, 1, 2, 1, 4, 3):
            records = batch(b"x", producer_id=producer, producer_epoch=0, base_sequence=sequence)
            wire.send(PRODUCE, 9, request(("a", 0, records)))
        await until_appended(replica, 4)
        reached(replica, 4)
        out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await answers(wire, 6) == [
            (0, NONE, 0), (0, NONE, 1), (0, NONE, 2), (0, NONE, 1), (0, out_of_order, -1), (0, NONE, 3),
        ]  # fmt: skip

    run(scenario, tmp_path)


def test_a_leader_that_is_replaced_answers_all_of_them_at_once(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        for number in range(3):
            wire.send(PRODUCE, 9, request(("a", 0, batch(b"%d" % number))))
        await until_appended(replica, 3)
        reached(replica, 1)
        assert await answers(wire, 1) == [(0, NONE, 0)]
        replica.leave()
        gone = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [error for _, error, _ in await answers(wire, 2)] == [gone, gone]

    run(scenario, tmp_path)


def test_a_client_that_goes_leaves_its_records_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive), await alive.dial()
        for number in range(5):
            wire.send(PRODUCE, 9, request(("a", 0, batch(b"%d" % number))))
        await until_appended(replica, 5)
        assert len(replica.waiters.until_committed) == 5
        wire.writer.transport.abort()
        while replica.waiters.until_committed:
            await asyncio.sleep(0)
        assert replica.log.log_end_offset == 5

    run(scenario, tmp_path)


def test_nothing_waits_for_a_client_that_goes_in_the_turn_in_which_its_batch_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = Replica.flush

    async def scenario(alive: Living) -> None:
        replica, wire = await led(alive, flush_messages=1), await alive.dial()

        async def flush_and_lose(self: Replica, size: int | None = None) -> bool:
            has_moved = await flush(self, size)
            for connection in alive.broker.server.connections:
                asyncio.get_running_loop().call_soon(connection.lose, "it is idle")
            return has_moved

        monkeypatch.setattr(Replica, "flush", flush_and_lose)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x"))))
        assert await wire.is_closed()
        while alive.broker.server.connections:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        assert not replica.waiters.until_committed

    run(scenario, tmp_path)
