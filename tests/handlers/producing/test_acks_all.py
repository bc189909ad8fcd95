"""Produce with acks=all where another replica is in sync: the answer waits until it has the batch."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.logs import NOW_MS, append, open_log
from harness.patience import within
from moldau.errors import ErrorCode
from moldau.handlers.producing.acknowledging import BatchBehind
from moldau.handlers.producing.produce import ProduceHandler
from moldau.log import replicated, truncation
from moldau.log.appended import Appended
from moldau.log.log import Log
from moldau.names import LeaderEpoch, Offset
from moldau.protocol.apis import PRODUCE
from moldau.protocol.messages.produce import ProduceRequest
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from moldau.replication.waiting import Waiters
from moldau.runtime import Runtime
from moldau.turns import Turns
from tests.handlers.in_sync import FOLLOWER, in_sync, reached
from tests.handlers.living import Living, Wire, batch, outcomes, produce, run

ALL = -1
NONE = ErrorCode.NONE
HOUR_MS = 3_600_000


def request(*parts: tuple[str, int, bytes], timeout_ms: int = HOUR_MS, acks: int = ALL) -> ProduceRequest:
    asked = produce(*parts, acks=acks)
    asked.timeout_ms = timeout_ms
    return asked


async def parked(replica: Replica, count: int = 1) -> None:
    while len(replica.waiters.until_committed) < count:
        await asyncio.sleep(0)


async def answer(wire: Wire) -> list[tuple[int, int, int]]:
    return outcomes((await wire.receive(PRODUCE, 9))[1])


def test_the_answer_comes_when_the_other_replica_has_the_batch_and_replies_keep_their_order(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica, wire = alive.replica("a"), await alive.dial()
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x", b"y"))))
        await parked(replica)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"z")), acks=1))
        while replica.log.log_end_offset < 3:
            await asyncio.sleep(0)
        other = await alive.dial()
        assert outcomes(await other.ask(PRODUCE, 9, request(("a", 0, batch(b"z")), acks=1))) == [(0, NONE, 3)]
        assert replica.high_watermark == 0
        reached(replica, 1)
        assert replica.waiters.until_committed, "one record of two"
        reached(replica, 2)
        assert await answer(wire) == [(0, NONE, 0)]
        assert await answer(wire) == [(0, NONE, 2)]
        assert not replica.waiters.until_committed

    run(scenario, tmp_path)


def test_every_partition_of_a_request_has_to_be_there(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        wire = await alive.dial()
        for partition in (0, 1):
            in_sync(alive.replica("a", partition), 1, FOLLOWER)
        bad = bytes(reversed(batch(b"x")))
        wire.send(PRODUCE, 9, request(*(("a", number, batch(b"x")) for number in range(3)), ("a", 1, bad)))
        await parked(alive.replica("a", 0))
        await parked(alive.replica("a", 1))
        reached(alive.replica("a", 1), 1)
        reached(alive.replica("a", 1), 1)
        assert alive.replica("a", 0).waiters.until_committed
        reached(alive.replica("a", 0), 1)
        answered = await answer(wire)
        assert answered[:3] == [(0, NONE, 0), (1, NONE, 0), (2, NONE, 0)]
        assert answered[3][1]

    run(scenario, tmp_path)


def test_after_its_timeout_a_batch_that_is_not_everywhere_is_told_so_and_where_it_is(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        wire = await alive.dial()
        in_sync(alive.replica("a", 0), 1, FOLLOWER)
        both = ("a", 0, batch(b"x")), ("a", 1, batch(b"x"))
        timed_out = ErrorCode.REQUEST_TIMED_OUT
        for timeout_ms, base_offset in ((1, 0), (0, 1), (-1, 2)):
            reply = await wire.ask(PRODUCE, 9, request(*both, timeout_ms=timeout_ms))
            assert outcomes(reply) == [(0, timed_out, base_offset), (1, NONE, base_offset)]
        assert not alive.replica("a", 0).waiters.until_committed
        assert alive.replica("a", 0).log.log_end_offset == 3

    run(scenario, tmp_path)


def test_a_batch_that_too_few_replicas_have_in_the_end_is_told_so(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2, min_insync_replicas=2)
        replica, other, wire = alive.replica("a", 0), alive.replica("a", 1), await alive.dial()
        refused = [(0, ErrorCode.NOT_ENOUGH_REPLICAS, -1)]
        in_sync(replica, 1)
        in_sync(other, 1, FOLLOWER)
        assert outcomes(await wire.ask(PRODUCE, 9, request(("a", 0, batch(b"x"))))) == refused
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x")), ("a", 1, batch(b"y"))))
        await parked(other)
        reached(replica, 1)
        in_sync(replica, 1)
        assert replica.high_watermark == 1
        reached(other, 1)
        assert await answer(wire) == [(0, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0), (1, NONE, 0)]

    run(scenario, tmp_path)


def test_a_batch_that_enough_replicas_had_is_acknowledged_although_one_has_left_since(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", min_insync_replicas=2)
        replica, wire = alive.replica("a"), await alive.dial()
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x"))))
        await parked(replica)
        reached(replica, 1)
        in_sync(replica, 1)
        assert await answer(wire) == [(0, NONE, 0)]

    run(scenario, tmp_path)


def test_nothing_is_acknowledged_while_too_few_replicas_are_in_sync(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", min_insync_replicas=2)
        replica, wire = alive.replica("a"), await alive.dial()
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x")), timeout_ms=50))
        await parked(replica)
        in_sync(replica, 1)
        assert replica.high_watermark == 0
        assert await answer(wire) == [(0, ErrorCode.REQUEST_TIMED_OUT, 0)]

    run(scenario, tmp_path)


def test_a_partition_that_gets_another_leader_or_is_deleted_answers_at_once(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        first, second = alive.replica("a", 0), alive.replica("a", 1)
        wires = [await alive.dial() for _ in range(2)]
        for number, (wire, replica) in enumerate(zip(wires, (first, second), strict=True)):
            in_sync(replica, 1, FOLLOWER)
            wire.send(PRODUCE, 9, request(("a", number, batch(b"x"))))
            await parked(replica)
        first.take_roles(PartitionRoles(FOLLOWER, LeaderEpoch(9), (FOLLOWER,), (FOLLOWER,)), 0)
        assert await answer(wires[0]) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]
        await alive.broker.cluster.topics.delete([("a", None)])
        assert await answer(wires[1]) == [(1, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]

    run(scenario, tmp_path)


def test_a_leader_that_is_cut_off_from_the_cluster_does_not_wait_for_other_replicas(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica, wire = alive.replica("a"), await alive.dial()
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x"))))
        await parked(replica)
        assert replica.cut_off(True)
        assert await answer(wire) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]

    run(scenario, tmp_path)


def test_a_batch_of_an_earlier_leader_epoch_is_not_acknowledged(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica, wire = alive.replica("a"), await alive.dial()
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x"))))
        await parked(replica)
        me = replica.leadership.local
        replica.take_roles(PartitionRoles(me, LeaderEpoch(9), (me, FOLLOWER), (me, FOLLOWER)), 0)
        reached(replica, 1)
        assert replica.high_watermark == 1
        assert await answer(wire) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]

    run(scenario, tmp_path)


def test_what_only_makes_it_look_again_does_not_end_its_wait(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica, wire = alive.replica("a"), await alive.dial()
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x"))))
        await parked(replica)
        replica.waiters.wake()
        await asyncio.sleep(0)
        await parked(replica)
        reached(replica, 1)
        assert await answer(wire) == [(0, NONE, 0)]

    run(scenario, tmp_path)


def test_a_reader_waits_for_the_other_replica_as_well(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica = alive.replica("a")
        in_sync(replica, 1, FOLLOWER)
        wire = await alive.dial()
        records = batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0)
        wire.send(PRODUCE, 9, request(("a", 0, records)))
        await parked(replica)
        assert replica.read(0, 1000, committed=False).records is None
        reached(replica, 1)
        result = replica.read(0, 1000, committed=False)
        assert result.records is not None
        assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (1, 1, 0)
        assert await answer(wire) == [(0, NONE, 0)]
        # The same batch again is a duplicate, and committed already.
        assert outcomes(await wire.ask(PRODUCE, 9, request(("a", 0, records)))) == [(0, NONE, 0)]

    run(scenario, tmp_path)


def test_the_high_watermark_stays_where_it_is_when_a_replica_with_less_comes_into_sync(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica, wire = alive.replica("a"), await alive.dial()
        for expected in range(2):
            assert outcomes(await wire.ask(PRODUCE, 9, request(("a", 0, batch(b"x"))))) == [(0, NONE, expected)]
        in_sync(replica, 1, FOLLOWER)
        reached(replica, 1)
        assert replica.high_watermark == 2
        reached(replica, 2)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x"))))
        await parked(replica)
        assert replica.high_watermark == 2
        reached(replica, 3)
        assert await answer(wire) == [(0, NONE, 2)]
        assert replica.high_watermark == 3

    run(scenario, tmp_path)


def test_a_batch_that_another_leader_cut_off_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, released = Log.flush, threading.Event()

    def slow(self: Log, closing: bool = False) -> None:
        if self.tp.partition == 1:
            released.wait()
        flush(self, closing)

    async def scenario(alive: Living) -> None:
        await alive.make("a", 2, flush_messages=1)
        replica, wire = alive.replica("a"), await alive.dial()
        for number in range(2):
            in_sync(alive.replica("a", number), 1, FOLLOWER)
        monkeypatch.setattr(Log, "flush", slow)
        wire.send(PRODUCE, 9, produce(("a", 0, batch(b"mine")), ("a", 1, batch(b"mine")), acks=-1))
        while not alive.replica("a", 1).log.log_end_offset:
            await asyncio.sleep(0.001)
        leadership, both = replica.leadership, (replica.leadership.local, FOLLOWER)
        epoch, change = LeaderEpoch(leadership.leader_epoch + 1), leadership.partition_epoch + 1
        replica.take_roles(PartitionRoles(FOLLOWER, epoch, both, both, change), 0)
        truncation.truncate_to(replica.log, 0, 0, NOW_MS)
        replica.truncated()
        others = open_log(tmp_path / "others")
        append(others, 1, leader_epoch=epoch)
        replicated.append(replica.log, others.read_batches(0, 1 << 20), epoch, NOW_MS)
        replica.follow_watermark(Offset(1))
        in_sync(alive.replica("a", 1), 1)
        released.set()
        found = outcomes((await wire.receive(PRODUCE, 9))[1])
        assert [error for _, error, _ in found] == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]

    run(scenario, tmp_path / "broker")


class Partition:
    def __init__(self) -> None:
        self.waiters, self.high_watermark = Waiters(), 0

    def acknowledged(self, appended: Appended) -> ErrorCode | None:
        return ErrorCode.NONE if self.high_watermark > appended.last_offset else None

    def commit(self) -> None:
        self.high_watermark = 1
        self.waiters.moved(None, 1)


def test_a_watermark_that_moves_while_a_wide_request_looks_is_not_missed() -> None:
    async def live() -> None:
        partitions = [Partition() for _ in range(1500)]
        behind: list[Any] = [
            BatchBehind(number, one, Appended(0, 0, -1, 0, ErrorCode.NONE, False, 0))  # type: ignore[arg-type]
            for number, one in enumerate(partitions)
        ]
        results: list[Any] = [(number, ErrorCode.NONE, 0, -1, 0) for number in range(1500)]
        handler: Any = SimpleNamespace(_turns=Turns(Runtime()))
        waiting = asyncio.ensure_future(ProduceHandler._acknowledged(handler, behind, results, 20_000))
        await asyncio.sleep(0)
        for one in partitions:
            one.commit()
        await within(waiting)

    asyncio.run(live())
