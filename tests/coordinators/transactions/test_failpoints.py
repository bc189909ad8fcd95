"""Crashed at every named point, before and after each append and each marker, a transaction ends as it was decided."""

import asyncio

import pytest

from moldau.coordinators.transactions.transaction import TransactionState
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from tests.coordinators.fake_log import in_virtual_time
from tests.coordinators.transactions.scene import transaction_of
from tests.coordinators.transactions.world import T0, T1, Points, Producer, World

STEPS = (
    ("starting", ["Empty"]),
    ("adding", ["Ongoing"]),
    ("adding more", ["Ongoing"]),
    ("committing", ["PrepareCommit", "marker in t-0", "marker in t-1", "CompleteCommit"]),
    ("beginning again", ["Ongoing"]),
    ("aborting", ["PrepareAbort", "marker in t-0", "marker in t-1", "CompleteAbort"]),
    ("aborting nothing", ["PrepareAbort", "CompleteAbort"]),
    ("being taken over", ["Ongoing", "PrepareAbort", "marker in t-0", "CompleteAbort", "Empty"]),
    ("being late", ["Ongoing", "PrepareAbort", "marker in t-0", "CompleteAbort"]),
    ("being forgotten", ["Gone"]),
)
POINTS = [f"{when} {what} of {step}" for step, whats in STEPS for what in whats for when in ("before", "after")]
SETTINGS = {"id_expiration_ms": 3_600_000, "remove_expired_interval_ms": 600_000}


async def settled(world: World) -> None:
    """Until the last record leaves nothing to be done."""
    while True:
        records = world.log.records()
        last = transaction_of(records[-1])[1] if records else None
        if last is None or last.state in (
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        ):
            return
        await asyncio.sleep(0.05)


async def story(world: World, producer: Producer) -> None:
    points = world.log.points
    points.step = "starting"
    await producer.start()
    points.step = "adding"
    await producer.add(T0)
    points.step = "adding more"
    await producer.add(T1)
    points.step = "committing"
    await producer.end(commits=True)
    await settled(world)
    points.step = "beginning again"
    await producer.add(T0, T1)
    points.step = "aborting"
    await producer.end(commits=False)
    await settled(world)
    points.step = "aborting nothing"
    await producer.end(commits=False)
    await settled(world)
    points.step = "being taken over"
    await producer.add(T0)
    await producer.start()
    points.step = "being late"
    await producer.add(T0)
    await settled(world)
    points.step = "being forgotten"
    while True:
        try:
            producer.coordinator.describe("x")
        except KafkaError:
            return
        await asyncio.sleep(60)


def check(world: World, producer: Producer) -> None:
    """What the log has decided is in every partition, and nothing else; what the client was told is so."""
    decided: dict[tuple[int, int], tuple[bool, frozenset[TopicPartition]]] = {}
    before: TransactionState | None = None
    for record in world.log.records():
        _, found = transaction_of(record)
        state = None if found is None else found.state
        if found is not None and found.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
            commits = found.state is TransactionState.PREPARE_COMMIT
            assert (found.producer_id, found.epoch) not in decided, "decided twice"
            decided[found.producer_id, found.epoch] = (commits, frozenset(found.partitions))
        if before in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
            done = (
                TransactionState.COMPLETE_COMMIT
                if before is TransactionState.PREPARE_COMMIT
                else TransactionState.COMPLETE_ABORT
            )
            assert state is done, f"{before} was followed by {state}"
        before = state
    for (producer_id, epoch), (commits, partitions) in decided.items():
        for tp in partitions:
            marks = [one for one in world.markers.get(tp, []) if (one.producer_id, one.epoch) == (producer_id, epoch)]
            assert marks and all(one.commits is commits for one in marks), f"half a transaction in {tp}"
    for tp, marks in world.markers.items():
        for one in marks:
            commits, partitions = decided[one.producer_id, one.epoch]
            assert one.commits is commits and tp in partitions
    for what, producer_id, epoch in producer.told:
        assert decided[producer_id, epoch + 1][0] is (what == "commit"), "the client was told something else"


@pytest.mark.parametrize("point", POINTS)
def test_a_transaction_ends_as_decided_wherever_the_broker_crashes(point: str) -> None:
    async def play() -> None:
        world = World()
        world.log.points = Points(point)
        first = await world.leading(**SETTINGS)
        producer = Producer(first)
        playing = asyncio.ensure_future(story(world, producer))
        crashed = asyncio.ensure_future(world.log.points.crashed.wait())
        await asyncio.wait([playing, crashed], return_when=asyncio.FIRST_COMPLETED)
        assert crashed.done(), f"the story does not pass this point, but {world.log.points.passed}"
        playing.cancel()
        await first.stop()
        told = producer.told

        world.log.points = Points()
        second = await world.leading(epoch=6, **SETTINGS)
        await asyncio.sleep(120)
        await settled(world)
        check(world, producer)
        heir = Producer(second)
        await heir.start()
        assert await heir.add(T0, T1) is ErrorCode.NONE
        assert await heir.end(commits=True) is ErrorCode.NONE
        await settled(world)
        check(world, heir)
        assert world.markers[T1][-1].commits and world.markers[T1][-1].coordinator_epoch == 6
        assert told == producer.told
        await second.stop()

    in_virtual_time(play())


def test_the_points_are_those_that_the_story_passes() -> None:
    async def play() -> list[str]:
        world = World()
        coordinator = await world.leading(**SETTINGS)
        producer = Producer(coordinator)
        await story(world, producer)
        check(world, producer)
        await coordinator.stop()
        return world.log.points.passed

    assert in_virtual_time(play()) == POINTS
    assert len(POINTS) >= 15
