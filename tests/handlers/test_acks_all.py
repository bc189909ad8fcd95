"""Produce with acks=all where another replica is in sync: the answer waits until it has the batch."""

import asyncio
from pathlib import Path

from moldau.errors import ErrorCode
from moldau.names import LeaderEpoch
from moldau.protocol.apis import PRODUCE
from moldau.protocol.messages.produce import ProduceRequest
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
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
        await alive.make("a", min_insync_replicas=2)
        replica, wire = alive.replica("a"), await alive.dial()
        refused = [(0, ErrorCode.NOT_ENOUGH_REPLICAS, -1)]
        in_sync(replica, 1)
        assert outcomes(await wire.ask(PRODUCE, 9, request(("a", 0, batch(b"x"))))) == refused
        in_sync(replica, 1, FOLLOWER)
        wire.send(PRODUCE, 9, request(("a", 0, batch(b"x"))))
        await parked(replica)
        reached(replica, 1)
        in_sync(replica, 1)
        assert replica.high_watermark == 1
        assert await answer(wire) == [(0, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)]

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
