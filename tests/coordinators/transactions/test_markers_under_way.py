"""A coordinator that stops, or loads anew, while markers are on their way."""

import asyncio
from collections.abc import Mapping

from moldau.coordinators.transactions.messages import AddPartitions, EndTransaction, InitProducer
from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers
from tests.coordinators.fake_log import in_virtual_time
from tests.coordinators.transactions.world import T0, T1, Producer, World, answered


def test_a_coordinator_that_stops_leaves_no_round_behind() -> None:
    async def play() -> None:
        world = World()
        coordinator = await world.leading("x", "y")
        x, y = Producer(coordinator), Producer(coordinator, "y")
        await x.start()
        await y.start()
        await x.add(T0)
        await y.add(T1)
        world.gate.clear()  # the marker of x is under way
        world.errors[T1] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1000
        assert await x.end(commits=True) is ErrorCode.NONE
        described = coordinator.describe("y")
        coordinator.end(EndTransaction("y", described.producer_id, described.epoch, True, 2))
        await coordinator.stop()
        world.gate.set()
        await asyncio.sleep(60)
        assert world.tries == []

    in_virtual_time(play())


class SlowAtFirst(World):
    """The first request for markers is on its way for two seconds, others are there at once."""

    is_first = True

    async def write(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
        is_first, self.is_first = self.is_first, False
        if is_first:
            await asyncio.sleep(2)
        return await super().write(markers)


def test_a_marker_that_is_on_its_way_ends_no_later_transaction_of_the_same_epoch() -> None:
    async def play() -> None:
        world = SlowAtFirst()
        coordinator = await world.leading("x")
        started = await answered(coordinator.init_producer_id(InitProducer("x", 60_000)))
        add = AddPartitions("x", started.producer_id, started.epoch, (T0,))
        end = EndTransaction("x", started.producer_id, started.epoch, True)
        assert await answered(coordinator.add_partitions(add)) is ErrorCode.NONE
        assert (await answered(coordinator.end(end))).error is ErrorCode.NONE
        # A record of another id is not committed in time: the partition is loaded again, in the same leader epoch.
        world.log.refusals = [ErrorCode.REQUEST_TIMED_OUT]
        other = next(f"o{n}" for n in range(500) if coordinator.partition_of(f"o{n}") == coordinator.partition_of("x"))
        assert (await answered(coordinator.init_producer_id(InitProducer(other, 60_000)))).error
        await coordinator.loaded("x")
        while await answered(coordinator.add_partitions(add)) is not ErrorCode.NONE:
            await asyncio.sleep(0.01)
        markers = len(world.markers[T0])
        await asyncio.sleep(5)
        assert coordinator.describe("x").state == "Ongoing"
        assert len(world.markers[T0]) == markers, "the marker of the first transaction has ended the second one"
        await coordinator.stop()

    in_virtual_time(play())
