"""Work that lasts goes on with every controller, whoever began it: a reassignment ends once its target is in sync."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.controlling.lasting import LastingWork, NextChange
from moldau.cluster.state.elections import Elected, steps_of
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.isr_changes import ProposedIsr
from moldau.cluster.state.reassignment import begun, is_under_way
from moldau.metadata_store.store import NodeOperation, OutcomeUnknown, Written
from tests.cluster.controlling.test_acting import three
from tests.cluster.several import Member, Members, place, play
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
