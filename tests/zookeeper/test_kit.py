"""The kit of every metadata store on a real ZooKeeper, and on an ensemble whose leader is killed."""

import asyncio
import os
import signal

import pytest

from harness.tiers import sized
from harness.zookeeper import ZooKeeper, mode
from moldau.metadata_store.store import Create, node_at
from tests.metadata_store.store_kit import Play, StoreKit, count_up
from tests.zookeeper.sessions import OpenSession, play

COUNTS = sized(100, 100, 1000)


class TestOneServer(StoreKit):
    @pytest.fixture
    def play(self, single: ZooKeeper) -> Play:
        return lambda scenario: play(single.connect, scenario)


@pytest.mark.check  # its own JVMs: one server shows the same in `make test`
class TestThreeServers(StoreKit):
    @pytest.fixture
    def play(self, three: ZooKeeper) -> Play:
        return lambda scenario: play(three.connect, scenario)


@pytest.mark.check  # three JVMs, started again and again
def test_every_answer_given_holds_when_the_leader_is_killed_again_and_again(three: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        sessions = [await open_session() for _ in range(3)]
        await sessions[0].multi([Create("/n", b"0"), Create("/e", ephemeral=True)])
        for session in sessions:
            while await session.read(node_at("/n")) is None:
                await asyncio.sleep(0.01)
        counting = [asyncio.ensure_future(count_up(session, "/n", COUNTS)) for session in sessions]
        kills = 0
        while not all(task.done() for task in counting) or kills < 2:
            await asyncio.sleep(0.3)
            addresses = three.addresses
            if all([await asyncio.to_thread(mode, address) for address in addresses]):
                leader = await asyncio.to_thread(three.leader)
                os.kill((await asyncio.to_thread(three.servers))[leader], signal.SIGKILL)
                kills += 1
        counts = [await task for task in counting]
        answered, unknown = sum(one for one, _ in counts), sum(one for _, one in counts)
        node, other = await sessions[1].read(node_at("/n")), await sessions[1].read(node_at("/e"))
        assert node is not None
        assert answered <= int(node.data) <= answered + unknown
        assert other is not None, "the session outlives its server"
        assert other.owner == sessions[0].session_id

    play(three.connect, scenario)
