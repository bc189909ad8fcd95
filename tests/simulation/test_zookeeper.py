"""The model ZooKeeper fails as the real one does: in virtual time, as told or from a seed."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from moldau.errors import StorageError
from moldau.metadata_store.store import Create, Node, OutcomeUnknown, SessionOver, Set, children_of, node_at
from moldau.simulation.world import World
from moldau.simulation.zookeeper import TICK_S, Manners, ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession
from tests.metadata_store.store_kit import count_up, eventually, plain_node_at

TIMEOUT_S = 6.0
Scenario = Callable[[World], Awaitable[None]]


def play(scenario: Scenario, seed: int = 0) -> None:
    async def whole(world: World) -> None:
        await scenario(world)

    World(seed).run(whole)


def test_a_session_without_a_connection_expires_at_the_tick_after_its_time_out() -> None:
    async def scenario(world: World) -> None:
        zookeeper = ModelZooKeeper()
        mine, other = ModelSession(zookeeper, TIMEOUT_S), ModelSession(zookeeper)
        await mine.multi([Create("/e", ephemeral=True)])
        looked = asyncio.Event()
        await mine.watch("/e", looked.set)
        await asyncio.sleep(0.5)
        zookeeper.cut(mine.link)
        with pytest.raises(SessionOver):
            await mine.read(node_at("/e"))
        assert world.loop.time() == 0.5 + TIMEOUT_S, "here it is over first"
        await looked.wait()
        assert await other.read(node_at("/e")) is not None
        await eventually(other, lambda: node_at("/e"), None)
        assert world.loop.time() == pytest.approx(TIMEOUT_S + TICK_S, abs=0.02)

    play(scenario)


def test_a_session_whose_connection_comes_back_in_time_goes_on_and_looks_at_everything() -> None:
    async def scenario(_: World) -> None:
        zookeeper = ModelZooKeeper()
        mine, other = ModelSession(zookeeper, TIMEOUT_S), ModelSession(zookeeper)
        await mine.multi([Create("/e", ephemeral=True), Create("/w")])
        looked = asyncio.Event()
        await mine.watch("/w", looked.set)
        zookeeper.cut(mine.link)
        await other.multi([Set("/w", b"1")])
        await asyncio.sleep(TIMEOUT_S - 1)
        assert not looked.is_set(), "a connection that was lost has no watches"
        zookeeper.mend(mine.link)
        await looked.wait()
        assert await mine.read(plain_node_at("/w")) == Node(b"1", 1)
        await asyncio.sleep(10 * TIMEOUT_S)
        assert await other.read(node_at("/e")) is not None
        looked.clear()
        await other.multi([Set("/w", b"2")])
        await looked.wait()

    play(scenario)


def test_a_session_that_expired_meanwhile_hears_of_it_when_it_is_back() -> None:
    async def scenario(_: World) -> None:
        zookeeper = ModelZooKeeper()
        mine = ModelSession(zookeeper, TIMEOUT_S)
        await mine.multi([Create("/e", ephemeral=True)])
        zookeeper.end(mine.link)
        with pytest.raises(SessionOver):
            await mine.multi([Create("/a")])
        assert list(zookeeper.nodes) == ["/"]

    play(scenario)


def test_an_answer_that_is_lost_leaves_the_write_done_and_its_outcome_unknown() -> None:
    async def scenario(_: World) -> None:
        zookeeper = ModelZooKeeper()
        mine = ModelSession(zookeeper)
        zookeeper.lose_next_answer(mine.link)
        with pytest.raises(OutcomeUnknown):
            await mine.multi([Create("/a")])
        assert await mine.read(children_of("/")) == ["a"]
        await mine.multi([Create("/b")])

    play(scenario)


def test_a_write_is_not_answered_by_a_connection_that_is_back_after_it_was_lost() -> None:
    async def scenario(_: World) -> None:
        zookeeper = ModelZooKeeper(random.Random(0), Manners(answer_s=0.1, drop=1.0))
        session = ModelSession(zookeeper, TIMEOUT_S)
        with pytest.raises(OutcomeUnknown):
            await session.multi([Create("/never")])

    play(scenario)


def test_a_server_fires_a_watch_once() -> None:
    async def scenario(_: World) -> None:
        zookeeper = ModelZooKeeper()
        fired: list[str] = []
        link = zookeeper.connect(TIMEOUT_S, fired.append, lambda: None)
        link.server.watches["/a"] = {link: None}
        other = ModelSession(zookeeper)
        await other.multi([Create("/a")])
        await other.multi([Set("/a", b"1")])
        assert fired == ["/a"]

    play(scenario)


def test_a_read_may_be_old_but_never_older_than_what_its_session_has_seen() -> None:
    stale = 0

    async def scenario(world: World) -> None:
        nonlocal stale
        zookeeper = ModelZooKeeper(world.random, Manners(servers=3, answer_s=0.01, lag_s=1.0))
        writer, reader = ModelSession(zookeeper), ModelSession(zookeeper)
        await writer.multi([Create("/n", b"0")])
        seen = -1
        for number in range(1, 20):
            await writer.multi([Set("/n", str(number).encode())])
            if number % 5 == 0:
                zookeeper.cut(reader.link)
                zookeeper.mend(reader.link)
            node = await reader.read(node_at("/n"))
            read = int(node.data) if node else -1
            assert seen <= read <= number, "also on another server"
            stale += read < number
            seen = read
            own = await writer.read(plain_node_at("/n"))
            assert own == Node(str(number).encode(), number), "its own writes are there"

    for seed in range(5):
        play(scenario, seed)
    assert stale > 10


def test_without_a_quorum_calls_wait_and_nothing_expires() -> None:
    async def scenario(world: World) -> None:
        zookeeper = ModelZooKeeper(world.random, Manners(servers=3))
        mine, gone = ModelSession(zookeeper, 4 * TIMEOUT_S), ModelSession(zookeeper, TIMEOUT_S)
        await gone.multi([Create("/e", ephemeral=True)])
        zookeeper.lose_quorum()
        gone.abandon()
        writing = asyncio.ensure_future(mine.multi([Create("/a")]))
        await asyncio.sleep(3 * TIMEOUT_S)
        assert not writing.done()
        zookeeper.regain_quorum()
        await writing
        assert await mine.read(children_of("/")) == ["a", "e"]
        await eventually(mine, lambda: children_of("/"), ["a"])
        assert world.loop.time() > 4 * TIMEOUT_S, "its time-out began anew"

    play(scenario)


def test_a_change_that_is_too_large_is_refused() -> None:
    async def scenario(_: World) -> None:
        mine = ModelSession(ModelZooKeeper())
        with pytest.raises(StorageError, match="larger than ZooKeeper takes"):
            await mine.multi([Create("/a", bytes(1 << 20))])
        assert await mine.read(children_of("/")) == []

    play(scenario)


def test_with_connections_that_break_every_answer_given_holds_and_an_unknown_one_may() -> None:
    done_and_unknown = lost = 0

    async def scenario(world: World) -> None:
        nonlocal done_and_unknown, lost
        manners = Manners(servers=3, answer_s=0.01, lag_s=0.1, drop=0.1, away_s=2.0)
        zookeeper = ModelZooKeeper(world.random, manners)
        sessions = [ModelSession(zookeeper) for _ in range(3)]
        while "/n" not in zookeeper.nodes:
            try:
                await sessions[0].multi([Create("/n", b"0")])
            except OutcomeUnknown:
                lost += "/n" not in zookeeper.nodes
        for session in sessions:
            while await session.read(node_at("/n")) is None:
                await asyncio.sleep(0.01)
        counts = await asyncio.gather(*(count_up(session, "/n", 30) for session in sessions))
        answered, unknown = sum(one for one, _ in counts), sum(one for _, one in counts)
        total = int(zookeeper.nodes["/n"].data)
        assert answered <= total <= answered + unknown
        done_and_unknown += total - answered
        lost += answered + unknown - total

    for seed in range(10):
        play(scenario, seed)
    assert done_and_unknown
    assert lost
