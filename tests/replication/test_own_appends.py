"""What a broker writes itself is done when it is committed: coordinators' records and the ends of transactions."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moldau.errors import ErrorCode, KafkaError
from moldau.log.producers import verification_guards
from moldau.names import LeaderEpoch
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, encode_batch, read_header
from moldau.replication.leadership import PartitionRoles
from moldau.replication.own_appends import append_marker, append_own, append_own_in_transaction, committed
from moldau.replication.replica import Replica
from tests.handlers.in_sync import FOLLOWER, in_sync, reached
from tests.handlers.living import NOW_MS, Living, batch, run

ABORTED = Marker(False, 0)
Write = Callable[..., Awaitable[None]]


async def own(replica: Replica, seconds: float = 30) -> None:
    await committed(replica, await append_own(replica, bytearray(batch(b"x")), NOW_MS), seconds)


async def marker(replica: Replica, seconds: float = 30) -> None:
    await committed(replica, await append_marker(replica, 7, 0, ABORTED, 0, NOW_MS), seconds)


async def in_transaction(replica: Replica, seconds: float = 30) -> None:
    rows = [Row(b"k", b"x", NOW_MS)]
    records = encode_batch(rows, attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=0)
    guard = verification_guards.obtain(replica.log.producers, read_header(records), NOW_MS)
    await committed(replica, await append_own_in_transaction(replica, records, guard, NOW_MS), seconds)


def play(folder: Path, scenario: Callable[[Replica], Awaitable[None]]) -> None:
    async def live(alive: Living) -> None:
        await alive.make("a")
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await scenario(alive.replica("a"))

    run(live, folder)


async def parked(replica: Replica) -> None:
    while not replica.waiters.until_committed:
        await asyncio.sleep(0)


@pytest.mark.parametrize("write", [own, in_transaction, marker])
def test_it_returns_when_the_other_replica_has_it(tmp_path: Path, write: Write) -> None:
    async def scenario(replica: Replica) -> None:
        writing = asyncio.ensure_future(write(replica))
        await parked(replica)
        assert not writing.done()
        reached(replica, 1)
        await writing

    play(tmp_path, scenario)


@pytest.mark.parametrize("write", [own, in_transaction, marker])
def test_in_another_leader_epoch_nobody_knows_whether_it_is_there(tmp_path: Path, write: Write) -> None:
    async def scenario(replica: Replica) -> None:
        writing = asyncio.ensure_future(write(replica))
        await parked(replica)
        me = replica.leadership.local
        replica.take_roles(PartitionRoles(me, LeaderEpoch(9), (me,), (me, FOLLOWER), 9), 0)
        with pytest.raises(KafkaError) as failed:
            await writing
        assert failed.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    play(tmp_path, scenario)


@pytest.mark.parametrize("write", [own, in_transaction, marker])
def test_it_waits_for_a_time_only(tmp_path: Path, write: Write) -> None:
    async def scenario(replica: Replica) -> None:
        with pytest.raises(KafkaError) as failed:
            await write(replica, 0.01)
        assert failed.value.code is ErrorCode.REQUEST_TIMED_OUT

    play(tmp_path, scenario)


@pytest.mark.parametrize("write", [own, in_transaction, marker])
def test_nothing_is_appended_while_the_log_is_replaced_by_its_copy(tmp_path: Path, write: Write) -> None:
    async def scenario(replica: Replica) -> None:
        replica.hold()
        writing = asyncio.ensure_future(write(replica))
        for _ in range(5):
            await asyncio.sleep(0)
        assert replica.log.log_end_offset == 0
        replica.release()
        await parked(replica)
        assert replica.log.log_end_offset == 1
        reached(replica, 1)
        await writing

    play(tmp_path, scenario)
