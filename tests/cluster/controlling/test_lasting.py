"""Work that lasts goes on with every controller, whoever began it: a reassignment ends once its target is in sync."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

import pytest

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.controlling.lasting import LastingWork, NextChange
from moldau.cluster.state.elections import Elected, steps_of
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.isr_changes import ProposedIsr
from moldau.cluster.state.move_throttles import FOLLOWERS, LEADERS, MOVE_RATES, RATES, RATES_S
from moldau.cluster.state.reassignment import begun, is_under_way
from moldau.metadata_store.store import NodeOperation, OutcomeUnknown, Written
from moldau.names import TopicPartition
from tests.cluster.controlling.test_acting import three
from tests.cluster.several import Member, Members, followed_by, place, play
from tests.replacing import Instead, nothing, replaced

IDLE = "moldau.cluster.controlling.lasting:LastingWork.go_on"
MANY = 600
"""More partitions than one step of the store may change."""


def parts(image: Image) -> tuple[PartitionImage, ...]:
    return image.topics["t"].partitions


async def moved(controller: Member, *target: int, count: int = 1) -> None:
    """The topic `t` on brokers 1 and 2 is on its way to these."""
    await place(controller, "t", *[PartitionImage(1, 0, (1, 2), (1, 2))] * count)
    plan = [begun(part, target, 1) for part in parts(controller.image)]
    steps = steps_of(controller.image, [Elected("t", at, part) for at, part in enumerate(plan) if part is not None])
    await controller.acting.queue.made(partial(controller.acting.queue.commit, steps))


async def in_sync(controller: Member, *isr: int) -> None:
    """The leader of every partition proposes this ISR."""
    image, leader = controller.image, parts(controller.image)[0].leader
    members = tuple((one, image.brokers[one].epoch) for one in isr)
    asked = [
        ProposedIsr(image.topics["t"].id, number, part.leader_epoch, part.partition_epoch, members)
        for number, part in enumerate(parts(image))
    ]
    found = await controller.acting.isr.alter(leader, image.brokers[leader].epoch, asked)
    assert all(isinstance(one, PartitionImage) for one in found)


def is_at_rest(image: Image) -> bool:
    return not any(map(is_under_way, parts(image)))


def test_a_reassignment_ends_when_its_last_target_replica_is_in_sync() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await moved(controller, 2, 3, count=2)
        assert [part.replicas for part in parts(controller.image)] == [(2, 3, 1)] * 2
        await asyncio.sleep(2)
        assert not is_at_rest(controller.image)
        await in_sync(controller, 1, 2, 3)
        image = await members.shown(is_at_rest)
        assert [part[:4] for part in parts(image)] == [(2, 1, (2, 3), (2, 3))] * 2
        assert controller.acting.stream is not None
        assert controller.acting.stream.image.topics == image.topics, "brokers hear of it"

    play(scenario)


@pytest.mark.parametrize("is_ready", [False, True], ids=["before the target is in sync", "before it has ended it"])
def test_the_next_controller_ends_what_one_that_was_killed_had_begun(is_ready: bool) -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await members.join(4)
        await members.shown(lambda image: 4 in image.brokers)
        with replaced([Instead(IDLE, nothing)]):
            await moved(controller, 3, 4)
            await in_sync(controller, *((1, 2, 3, 4) if is_ready else (1, 2, 3)))
            controller.die()
            del members[1]
        later = await members.controller()
        assert later.image.controller_epoch == 2
        if not is_ready:
            await members.shown(lambda image: parts(image)[0].leader == 3)
            assert not is_at_rest(later.image)
            await in_sync(later, 2, 3, 4)
        image = await members.shown(is_at_rest)
        assert (parts(image)[0].leader, parts(image)[0].replicas, parts(image)[0].isr) == (3, (3, 4), (3, 4))

    play(scenario)


def is_free(image: Image) -> bool:
    """Whether nothing is throttled."""
    own = [*image.broker_overrides.values(), *(topic.overrides for topic in image.topics.values())]
    return not any("throttled" in name for one in own for name in one)


async def throttled_by_kafkas_tool(controller: Member, count: int = 1) -> None:
    """As for a plan that moves partitions from 1 and 2 to 2 and 3."""
    leaders = ",".join(f"{number}:{broker}" for number in range(count) for broker in (1, 2))
    followers = ",".join(f"{number}:3" for number in range(count))
    listed = [Alteration(LEADERS, OpType.SET, leaders), Alteration(FOLLOWERS, OpType.SET, followers)]
    assert await controller.acting.configs.alter_topics([("t", listed)]) == [None]
    for broker in "123":
        rates = [Alteration(name, OpType.SET, "1000") for name in RATES]
        assert await controller.acting.configs.alter_broker(broker, rates) is None


@pytest.mark.parametrize("ends_under", ["the same controller", "the next one"])
def test_a_move_takes_along_the_throttles_that_kafkas_tool_has_set_for_it(ends_under: str) -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await moved(controller, 2, 3, count=MANY)
        await throttled_by_kafkas_tool(controller, MANY)
        if ends_under == "the next one":
            with replaced([Instead(IDLE, nothing)]):
                await in_sync(controller, 1, 2, 3)
                controller.die()
                del members[1]
            controller = await members.controller()
            await members.shown(lambda image: parts(image)[0].leader == 2)
        else:
            await in_sync(controller, 1, 2, 3)
        assert is_free(await members.shown(is_at_rest))

    play(scenario)


@pytest.mark.parametrize("how", ["cancelled", "refused", "deleted"])
def test_throttles_go_with_a_move_that_does_not_come_to_its_end(how: str) -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        topics, tp = controller.acting.topics, TopicPartition("t", 0)
        if how == "refused":
            await place(controller, "t", PartitionImage(1, 0, (1, 2), (1, 2)))
        else:
            await moved(controller, 2, 3)
        await throttled_by_kafkas_tool(controller)
        assert not is_free(controller.image)
        if how == "deleted":
            await topics.delete([("t", None)])
        else:
            [refusal] = await topics.reassign([(tp, None if how == "cancelled" else [2, 9])])
            assert (refusal is None) == (how == "cancelled")
        assert is_free(controller.image)

    play(scenario)


def test_rates_of_moves_go_when_none_has_been_under_way_for_a_while_whoever_is_the_controller_then() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        following = [asyncio.ensure_future(followed_by(controller, 1, 2, 3))]
        await moved(controller, 2, 3)
        rates = [Alteration(name, OpType.SET, "1000") for name in sorted(MOVE_RATES)]
        assert await controller.acting.configs.alter_broker("2", rates) is None
        await asyncio.sleep(3 * RATES_S)
        assert not is_free(controller.image), "a move is under way"
        await in_sync(controller, 1, 2, 3)
        await members.shown(is_at_rest)
        await asyncio.sleep(RATES_S / 2)
        assert not is_free(controller.image), "the next partitions of a plan may begin"
        following.pop().cancel()
        controller.die()
        del members[1]
        later = await members.controller()
        following.append(asyncio.ensure_future(followed_by(later, 2, 3)))
        await asyncio.sleep(RATES_S * 2)
        assert is_free(later.image)
        following.pop().cancel()

    play(scenario)


def test_a_controller_that_dies_in_the_middle_of_many_leaves_what_the_next_one_can_end() -> None:
    """The end of many partitions is more than one step of the store: the first is written, and the second is not."""

    async def scenario(members: Members) -> None:
        controller = await three(members)
        with replaced([Instead(IDLE, nothing)]):
            await moved(controller, 2, 3, count=MANY)
            await in_sync(controller, 1, 2, 3)
        multi, steps = controller.session.multi, list[int]()

        async def lost(operations: Sequence[NodeOperation]) -> list[Written | None]:
            steps.append(len(operations))
            if len(steps) == 2:
                raise OutcomeUnknown("the connection is lost")
            return await multi(operations)

        controller.session.multi = lost  # type: ignore[method-assign]
        controller.acting.look_at_brokers()
        image = await members.shown(lambda image: image.controller_epoch == 2)
        assert len(steps) > 1 and {part.leader in part.replicas for part in parts(image)} == {True}
        image = await members.shown(is_at_rest)
        assert {(part.leader, part.replicas, part.isr) for part in parts(image)} == {(2, (2, 3), (2, 3))}

    play(scenario)


def test_work_is_looked_at_when_brokers_come_and_go() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t")])
        seen: list[list[int]] = []

        def notes(image: Image, topics: Collection[TopicImage]) -> NextChange | None:
            if topics:
                seen.append(list(image.brokers))
            return None

        controller.acting._lasting._kinds = (notes,)
        await members.join(4)
        while [1, 2, 3, 4] not in seen:
            await asyncio.sleep(0.1)
        await members[4].membership.close()
        del members[4]
        while seen[-1] != [1, 2, 3]:
            await asyncio.sleep(0.1)

    play(scenario)


def test_what_changes_while_a_change_is_made_is_looked_at_again() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t")])
        work = LastingWork(controller.acting.metadata, controller.acting.queue, lambda _: 1)
        asked = 0

        def waits(image: Image, topics: object) -> NextChange | None:
            nonlocal asked
            asked += 1
            if asked == 1:
                work.brokers_changed()
            return None

        work._kinds = (waits,)
        work.brokers_changed()
        await work.go_on()
        assert asked == 2
        await work.go_on()
        assert asked == 2, "nothing is due"

    play(scenario)
