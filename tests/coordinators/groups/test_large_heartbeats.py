"""A heartbeat about very many topics waits for its decision in the executor, and others are answered meanwhile."""

import asyncio
from collections.abc import Callable

import pytest

from moldau.coordinators.consumer.large_heartbeats import LargeHeartbeat
from moldau.coordinators.groups.coordinator import LARGE_ATTEMPTS_MAX
from moldau.errors import ErrorCode
from tests.coordinators.groups.test_resolving import TOPICS, Members, counted, image_of, play, slow

EVERYTHING = "+".join(f"t{number}" for number in range(TOPICS))


async def begun() -> Members:
    members = Members()
    members.coordinator.lead(0, 0)
    await members.coordinator.loaded("g")
    return members


def decided(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None] = lambda: None) -> list[LargeHeartbeat]:
    """The heartbeats that are decided in the executor; `meanwhile` is called during each."""
    found: list[LargeHeartbeat] = []
    decide = LargeHeartbeat.decide

    def noted(self: LargeHeartbeat) -> None:
        found.append(self)
        decide(self)
        meanwhile()

    monkeypatch.setattr(LargeHeartbeat, "decide", noted)
    return found


def test_a_small_group_is_answered_while_a_large_heartbeat_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    large = decided(monkeypatch)

    async def scene() -> None:
        members = await begun()
        slow(1.0)
        joining = asyncio.ensure_future(members.beat("a", epoch="0", topics=EVERYTHING))
        await asyncio.sleep(0.1)
        small = await members.beat("b", group="other", epoch="0", topics="t1")
        assert counted(small) == 1
        assert not joining.done()
        assert counted(await joining) == TOPICS
        assert len(large) == 1
        assert members.coordinator.describe_consumers("g").state == "Stable"
        await members.coordinator.stop()

    play(scene())


def test_members_of_one_large_group_are_decided_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    large = decided(monkeypatch)

    async def scene() -> None:
        members = await begun()
        slow(0.1)
        names = [f"m{number}" for number in range(5)]
        joined = [asyncio.ensure_future(members.beat(name, epoch="0", topics=EVERYTHING)) for name in names]
        epochs = [(await reply).epoch for reply in joined]
        assert sorted(epochs) == epochs
        assert len(set(epochs)) == len(names)
        assert len(large) == len(names)
        await members.coordinator.stop()

    play(scene())


def test_topics_that_come_while_a_heartbeat_is_decided_are_in_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    large = decided(monkeypatch)

    async def scene() -> None:
        members = await begun()
        slow(1.0)
        joining = asyncio.ensure_future(members.beat("a", epoch="0", topics=f"{EVERYTHING}+new"))
        await asyncio.sleep(0.1)
        members.image = image_of("new", before=members.image)
        assert counted(await joining) == TOPICS + 1
        assert len(large) == 2
        await members.coordinator.stop()

    play(scene())


def test_a_heartbeat_whose_group_never_stops_changing_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    holder: list[Members] = []

    def change() -> None:
        holder[0].image = image_of(f"new-{len(large)}", before=holder[0].image)

    large = decided(monkeypatch, change)

    async def scene() -> None:
        holder.append(await begun())
        assert counted(await holder[0].beat("a", epoch="0", topics=EVERYTHING)) == TOPICS
        assert len(large) == LARGE_ATTEMPTS_MAX
        await holder[0].coordinator.stop()

    play(scene())


def test_a_heartbeat_is_refused_if_its_partition_goes_elsewhere_meanwhile() -> None:
    async def scene() -> None:
        members = await begun()
        slow(1.0)
        joining = asyncio.ensure_future(members.beat("a", epoch="0", topics=EVERYTHING))
        await asyncio.sleep(0.1)
        members.coordinator.resign(0)
        assert (await joining).error is ErrorCode.NOT_COORDINATOR
        await members.coordinator.stop()

    play(scene())
