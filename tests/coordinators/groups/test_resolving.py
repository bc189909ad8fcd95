"""What expressions match among very many topics is found out beside the requests, and reaches the members."""

import asyncio
import uuid
from collections.abc import Coroutine
from inspect import isawaitable
from typing import Any

import pytest

from moldau.cluster.state.image import Image, TopicImage
from moldau.coordinators.consumer import expressions
from moldau.coordinators.consumer.expressions import Expressions, compiled
from moldau.coordinators.consumer.messages import ConsumerHeartbeatReply
from moldau.coordinators.groups import resolving
from moldau.coordinators.groups.coordinator import RESOLVE_WAIT_S, GroupCoordinator
from moldau.coordinators.groups.resolving import WANTED_MAX, Resolver
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.errors import ErrorCode
from moldau.runtime import Runtime
from moldau.simulation.loop import SimulatedLoop
from tests.coordinators.consumer.scene import LEADER, beat_of, consumer_settings
from tests.coordinators.fake_log import FakeLog, LoopClock, in_virtual_time

pytestmark = pytest.mark.re2

TOPICS = 3000


def image_of(*names: str, before: Image | None = None) -> Image:
    topics = {name: TopicImage(name, uuid.uuid5(uuid.NAMESPACE_DNS, name), (LEADER,), {}) for name in names}
    return (before or Image("")).with_topics(topics)


class Members:
    """A coordinator of a cluster with many topics, and who asks it."""

    def __init__(self) -> None:
        self.image = image_of(*(f"t{number}" for number in range(TOPICS)))
        settings = GroupCoordinatorSettings(consumer=consumer_settings({}))
        runtime = Runtime(clock=LoopClock())
        self.coordinator = GroupCoordinator(settings, FakeLog(), runtime, 1, lambda: self.image)

    async def beat(self, name: str, **pairs: str) -> ConsumerHeartbeatReply:
        answer = self.coordinator.beat(beat_of(name, pairs))
        return await answer if isawaitable(answer) else answer


def play(scene: Coroutine[Any, Any, None]) -> None:
    in_virtual_time(scene)


def slow(seconds: float) -> None:
    """The executor takes so long for every piece of work from now on."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    loop.work_s = lambda: seconds


def counted(beaten: ConsumerHeartbeatReply) -> int | None:
    return None if beaten.assignment is None else sum(map(len, beaten.assignment.values()))


async def joined(members: Members, name: str, expression: str) -> ConsumerHeartbeatReply:
    members.coordinator.lead(0, 0)
    await members.coordinator.loaded("g")
    return await members.beat(name, epoch="0", expression=expression)


def test_who_joins_with_an_expression_has_its_topics_at_once_though_they_are_many() -> None:
    async def scene() -> None:
        members = Members()
        slow(0.1)
        assert counted(await joined(members, "a", "t1..")) == 100
        assert 0 < asyncio.get_running_loop().time() < RESOLVE_WAIT_S
        await members.coordinator.stop()

    play(scene())


def test_who_joins_with_an_expression_that_takes_very_long_has_its_topics_with_a_later_heartbeat() -> None:
    async def scene() -> None:
        members = Members()
        slow(2 * RESOLVE_WAIT_S)
        first = await joined(members, "a", "t1..")
        assert (first.error, counted(first)) == (ErrorCode.NONE, 0)
        beaten = first
        while not counted(beaten):
            await asyncio.sleep(1)
            beaten = await members.beat("a", epoch=str(beaten.epoch))
        assert (counted(beaten), beaten.epoch > first.epoch) == (100, True)
        assert members.coordinator.describe_consumers("g").state == "Stable"
        await members.coordinator.stop()

    play(scene())


def test_topics_that_come_reach_the_members_with_a_heartbeat_however_many_they_are() -> None:
    async def scene() -> None:
        members = Members()
        beaten = await joined(members, "a", "[tu]1..")
        slow(0.1)
        members.image = image_of(*(f"u{number}" for number in range(TOPICS)), before=members.image)
        while counted(beaten) != 200:
            await asyncio.sleep(1)
            beaten = await members.beat("a", epoch=str(beaten.epoch))
        assert asyncio.get_running_loop().time() < 10
        await members.coordinator.stop()

    play(scene())


def test_more_expressions_than_are_remembered_are_all_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        members = Members()
        for number in range(15):
            assert counted(await joined(members, f"m{number}", f"t1{number}|other")) is not None
        members.image = image_of("other", before=members.image)
        group = members.coordinator.shard(0).consumer.live["g"]
        for name in [*group.members] * 10:
            await members.beat(name, epoch=str(group.members[name].epoch))
        assert group.checked is members.image
        assert all("other" in topics for topics in group.expressions.values())
        await members.coordinator.stop()

    monkeypatch.setattr(expressions, "KEPT_MAX", 10)
    play(scene())


def test_an_expression_that_is_none_is_refused_at_once_and_resolves_nothing() -> None:
    async def scene() -> None:
        members = Members()
        assert (await joined(members, "a", "(")).error is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert asyncio.get_running_loop().time() == 0
        await members.coordinator.stop()

    play(scene())


def test_a_turn_of_the_loop_matches_few_names_however_many_members_ask() -> None:
    async def scene() -> None:
        understood = Expressions()
        names = dict.fromkeys(f"t{number}" for number in range(TOPICS))
        resolver = Resolver(understood, lambda: image_of(*names), Runtime())
        known = 0
        for turn in range(5):
            for number in range(20):
                resolver.match(f"t{turn}{number}.*", names)
            now = sum(TOPICS - len(answer.left) for answer in understood._answers.values())
            assert 0 < now - known < 500
            known = now
            slow(1000)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await resolver.stop()

    play(scene())


def test_of_many_expressions_that_are_none_one_is_read_in_a_turn_and_all_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def counting(expression: str) -> object:
        read.append(expression)
        return compiled(expression)

    async def scene() -> None:
        members = Members()
        await joined(members, "a", "t")
        read.clear()
        asked = [asyncio.ensure_future(members.beat(f"m{n}", epoch="0", expression="(" * (n + 2))) for n in range(20)]
        before = 0
        while not all(one.done() for one in asked):
            await asyncio.sleep(0)
            assert len(read) - before <= 2
            before = len(read)
        assert {one.result().error for one in asked} == {ErrorCode.INVALID_REGULAR_EXPRESSION}
        assert len(read) == len(asked)
        await members.coordinator.stop()

    monkeypatch.setattr(expressions, "compiled", counting)
    play(scene())


def test_expressions_beyond_the_limit_wait_for_the_next_heartbeat() -> None:
    async def scene() -> None:
        names = dict.fromkeys(f"t{number}" for number in range(TOPICS))
        image = image_of(*names)
        resolver = Resolver(Expressions(), lambda: image, Runtime())
        slow(1)
        waiting = [resolver.resolving(f"t{number}.*") for number in range(WANTED_MAX + 10)]
        assert [later is None for later in waiting] == [False] * WANTED_MAX + [True] * 10
        assert not any(later.done() for later in waiting if later is not None)
        await resolver.stop()

    play(scene())


def test_an_expression_that_takes_too_long_makes_way_and_goes_on_when_it_is_asked_about_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        image = image_of(*("x" * 200 + str(number) for number in range(100)))
        resolver = Resolver(Expressions(), lambda: image, Runtime())
        hostile, rounds = "(x?){900}.*", 0
        while (later := resolver.resolving(hostile)) is not None:
            rounds += 1
            await later
        assert rounds > 3
        assert len(resolver.match(hostile, image.topics) or ()) == 100

    monkeypatch.setattr(resolving, "TASKS_MAX", 5)
    play(scene())
