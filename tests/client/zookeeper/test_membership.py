"""A member whose session may be over hands out nothing more, whatever its program is in the middle of."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.consuming.consumer import AsyncConsumer
from moldau.client.producing.producer import AsyncProducer
from moldau.errors import CommitFailed
from moldau.metadata_store.store import Create
from moldau.simulation.ports import SimulatedClock
from moldau.simulation.world import World
from moldau.simulation.zookeeper_session import ModelSession

RECORDS = 20


class StoppedClock(SimulatedClock):
    """That of a process which stands still now and then, for `stopped_s` in all."""

    stopped_s = 0.0

    def elapsed_s(self) -> float:
        return super().elapsed_s() + self.stopped_s


class Reading:
    """One consumer of a topic of 20 records, and its process's clock."""

    def __init__(self, world: World, consumer: AsyncConsumer, clock: StoppedClock, sessions: list[ModelSession]):
        self.world, self.consumer, self.clock, self.sessions = world, consumer, clock, sessions

    def offsets(self) -> dict[str, str]:
        nodes = self.world.zookeeper.nodes
        return {path: nodes[path].data.decode() for path in nodes if path.startswith("/consumers/g/offsets/t/")}


def play(scenario: Callable[[Reading], Awaitable[None]]) -> None:
    async def whole(world: World) -> None:
        await world.join_broker("broker")
        async with AsyncAdmin("broker:9092", runtime=world.runtime(world.host("admin"))) as admin:
            await admin.create_topic("t", partitions=1)
        async with AsyncProducer("broker:9092", runtime=world.runtime(world.host("producer"))) as producer:
            for number in range(RECORDS):
                await producer.send("t", b"%d" % number)
        host, sessions = world.host("reader"), list[ModelSession]()
        host.clock = clock = StoppedClock(world.loop)

        async def opened() -> ModelSession:
            sessions.append(ModelSession(world.zookeeper, 6.0))
            return sessions[-1]

        async with AsyncConsumer(
            zookeeper_connect="zk:2181",
            zookeeper_session=opened,
            group_id="g",
            auto_offset_reset="earliest",
            runtime=world.runtime(host),
            max_poll_interval_ms=20_000,
        ) as consumer:
            async with asyncio.timeout(100):
                await scenario(Reading(world, consumer, clock, sessions))

    World(0).run(whole)


def test_iteration_ends_in_the_middle_of_its_records_and_begins_anew_at_the_commit() -> None:
    async def scenario(reading: Reading) -> None:
        reading.consumer.subscribe("t")
        seen: list[int] = []
        async for record in reading.consumer:
            seen.append(record.offset)
            if len(seen) == 3:
                await reading.consumer.commit()
            if len(seen) == 5:
                reading.clock.stopped_s = 6.5  # no step of the loop notices it
            if record.offset == RECORDS - 1:
                break
        assert seen == [0, 1, 2, 3, 4, *range(3, RECORDS)]
        assert len(reading.sessions) == 2, "a session that may be over is not used again"

    play(scenario)


def test_a_stream_hands_out_nothing_more_and_goes_on_with_its_new_session() -> None:
    async def scenario(reading: Reading) -> None:
        [stream] = reading.consumer.create_message_streams({"t": 1})["t"]
        seen: list[int] = []
        async for record in stream:
            seen.append(record.offset)
            if len(seen) == 5:
                reading.clock.stopped_s = 6.5
            if record.offset == RECORDS - 1:
                break
        assert seen == [*range(5), *range(RECORDS)], "nothing was committed"

    play(scenario)


def test_records_that_a_stream_may_not_hand_out_stay_unprocessed() -> None:
    """The process goes on after a stop, and commits before it has noticed anything: ZooKeeper may still allow it."""

    async def scenario(reading: Reading) -> None:
        [stream] = reading.consumer.create_message_streams({"t": 1})["t"]
        seen: list[int] = []
        async for record in stream:
            seen.append(record.offset)
            if len(seen) == 5:
                reading.clock.stopped_s = 6.5
                reading.world.loop.call_soon(setattr, reading.clock, "stopped_s", 0.0)
                reading.world.loop.call_soon(reading.consumer.commit_async)
            if record.offset == RECORDS - 1:
                break
        assert seen[:5] == [*range(5)]
        assert sorted(set(seen)) == [*range(RECORDS)], "no record is skipped"

    play(scenario)


def test_a_commit_after_the_end_of_a_session_is_refused_by_zookeeper() -> None:
    async def scenario(reading: Reading) -> None:
        reading.consumer.subscribe("t")
        await anext(reading.consumer)
        [session] = reading.sessions
        reading.world.zookeeper.end(session.link)  # it is over, and the client does not know yet
        await ModelSession(reading.world.zookeeper).multi([Create("/consumers/g/owners/t/0", b"other-0", True)])
        with pytest.raises(CommitFailed, match="others may own its partitions now"):
            await reading.consumer.commit()
        assert reading.offsets() == {}

    play(scenario)


def test_a_program_that_does_not_come_back_is_out_of_the_group() -> None:
    async def scenario(reading: Reading) -> None:
        reading.consumer.subscribe("t")
        await anext(reading.consumer)
        assert "/consumers/g/owners/t/0" in reading.world.zookeeper.nodes
        await asyncio.sleep(19)
        assert "/consumers/g/owners/t/0" in reading.world.zookeeper.nodes
        await asyncio.sleep(5)
        assert "/consumers/g/owners/t/0" not in reading.world.zookeeper.nodes, "max_poll_interval_ms"
        assert (await anext(reading.consumer)).offset == 0, "it is a member again"

    play(scenario)
