"""Owner nodes and offsets, step by step, on the model ZooKeeper: lost answers, foreign owners, ended sessions."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.client.consuming.groups.zookeeper.group_reading import read_offsets
from moldau.client.consuming.groups.zookeeper.ownership import Ownership
from moldau.client.consuming.groups.zookeeper.registered_members import GroupNodes
from moldau.client.consuming.groups.zookeeper.sharing import OwnedPartition
from moldau.client.zookeeper.group_names import GroupLayout
from moldau.errors import CommitFailed
from moldau.metadata_store.store import Create, Delete, Node, SessionOver, Set
from moldau.names import TopicPartition
from moldau.simulation.world import World
from moldau.simulation.zookeeper import Manners, ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession

NODES = GroupNodes("g", GroupLayout.KAFKA_0_8)
TPS = [TopicPartition("t", number) for number in range(3)]
OWNER, OFFSET = "/consumers/g/owners/t/{}", "/consumers/g/offsets/t/{}"


def wanted(member: str) -> dict[TopicPartition, OwnedPartition]:
    return {tp: OwnedPartition(f"{member}-0", 0, str(tp.partition)) for tp in TPS}


class Two:
    """Two members with a session each."""

    def __init__(self) -> None:
        self.zookeeper = ModelZooKeeper(manners=Manners(servers=1))
        self.a, self.b = (ModelSession(self.zookeeper, 6.0) for _ in range(2))
        self.of_a, self.of_b = Ownership(NODES), Ownership(NODES)

    def node(self, path: str, number: int) -> Node | None:
        return self.zookeeper.nodes.get(path.format(number))

    def offsets(self) -> list[bytes | None]:
        return [None if (node := self.node(OFFSET, number)) is None else node.data for number in range(3)]


def play(scenario: Callable[[Two], Awaitable[None]]) -> None:
    async def whole(_: World) -> None:
        await scenario(Two())

    World(0).run(whole)


def test_a_claim_is_whole_or_nothing() -> None:
    async def scenario(two: Two) -> None:
        assert await two.of_a.claim(two.a, wanted("a")) is None
        assert await two.of_b.claim(two.b, wanted("b")) == TPS[0]
        await two.a.multi([Delete(OWNER.format(0)), Delete(OWNER.format(1))])
        assert await two.of_b.claim(two.b, wanted("b")) == TPS[2]
        assert two.node(OWNER, 0) is None and two.of_b.owned == {}
        await two.of_a.release(two.a)
        assert await two.of_b.claim(two.b, wanted("b")) is None
        assert [node.data for number in range(3) if (node := two.node(OWNER, number))] == [b"b-0"] * 3

    play(scenario)


def test_what_was_created_before_its_answer_was_lost_is_ours() -> None:
    async def scenario(two: Two) -> None:
        await two.of_a.claim(two.a, {})
        for lost in (two.of_a.claim(two.a, wanted("a")), two.of_a.commit(two.a, dict.fromkeys(TPS, 5))):
            two.zookeeper.lose_next_answer(two.a.link)
            assert await lost is None
        assert two.offsets() == [b"5"] * 3
        two.zookeeper.lose_next_answer(two.a.link)
        await two.of_a.release(two.a)
        assert two.node(OWNER, 0) is None
        assert await two.of_b.claim(two.b, wanted("b")) is None

    play(scenario)


def test_a_former_owner_cannot_write_an_offset() -> None:
    """Its owner node was deleted by somebody, and its session lives."""

    async def scenario(two: Two) -> None:
        assert await two.of_a.claim(two.a, wanted("a")) is None
        await two.of_a.commit(two.a, dict.fromkeys(TPS, 5))
        await two.b.multi([Delete(OWNER.format(number)) for number in range(3)])
        assert await two.of_b.claim(two.b, wanted("b")) is None
        with pytest.raises(CommitFailed, match="committing t-0 for group g: this consumer does not own it"):
            await two.of_a.commit(two.a, dict.fromkeys(TPS, 6))
        assert two.offsets() == [b"5"] * 3
        await two.of_b.commit(two.b, dict.fromkeys(TPS, 7))
        assert two.offsets() == [b"7"] * 3
        assert two.of_a.owned == {}

    play(scenario)


def test_an_owner_that_is_not_ours_is_as_good_a_fence() -> None:
    """A client of Kafka 0.8 creates its owner node, and looks at no version of an offset."""

    async def scenario(two: Two) -> None:
        assert await two.of_a.claim(two.a, wanted("a")) is None
        await two.b.multi([Delete(OWNER.format(1)), Create(OWNER.format(1), b"b-0", ephemeral=True)])
        with pytest.raises(CommitFailed, match="t-1"):
            await two.of_a.commit(two.a, dict.fromkeys(TPS, 6))
        assert two.offsets() == [b"6", None, b"6"], "those that are still owned are written"

    play(scenario)


def test_after_the_session_nothing_is_written() -> None:
    async def scenario(two: Two) -> None:
        assert await two.of_a.claim(two.a, wanted("a")) is None
        two.zookeeper.cut(two.a.link)
        writing = asyncio.ensure_future(two.of_a.commit(two.a, dict.fromkeys(TPS, 5)))
        await asyncio.sleep(9)
        assert await two.of_b.claim(two.b, wanted("b")) is None
        two.zookeeper.mend(two.a.link)
        with pytest.raises(SessionOver):
            await writing
        assert two.offsets() == [None] * 3

    play(scenario)


def test_an_offset_is_read_as_of_the_claim_and_not_from_before() -> None:
    async def scenario(two: Two) -> None:
        assert await two.of_a.claim(two.a, wanted("a")) is None
        read = two.b.read

        async def slow(reading: Any) -> Any:
            found = await read(reading)
            if found and isinstance(found, dict):  # the offsets, before the owner nodes are looked at
                two.b.read = read  # type: ignore[method-assign]
                await two.of_a.commit(two.a, dict.fromkeys(TPS, 9))
                await two.of_a.release(two.a)
            return found

        two.b.read = slow  # type: ignore[method-assign]
        assert await two.of_b.claim(two.b, wanted("b")) is None
        assert [claim.node.offset for claim in two.of_b.claims.values()] == [9] * 3
        found = await two.b.read(read_offsets(NODES, wanted("b")))
        assert [node.offset for node in found.values()] == [9] * 3

    play(scenario)


def test_an_application_goes_back_and_nobody_else_does() -> None:
    async def scenario(two: Two) -> None:
        [tp, *_] = TPS
        assert await two.of_a.claim(two.a, wanted("a")) is None
        await two.of_a.commit(two.a, {tp: 8})
        await two.of_a.commit(two.a, {tp: 3})
        assert two.offsets()[0] == b"3"
        await two.b.multi([Set(OFFSET.format(0), b"6")])
        await two.of_a.commit(two.a, {tp: 5})
        assert two.offsets()[0] == b"6", "a tool has moved it on"
        await two.of_a.commit(two.a, {tp: 7})
        assert two.offsets()[0] == b"7"

    play(scenario)
