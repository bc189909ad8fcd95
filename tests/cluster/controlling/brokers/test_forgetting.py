"""A broker that has left for good is forgotten: by the eligible leaders, by deletions, and by the next controller."""

import asyncio

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state import layout
from moldau.cluster.state.image import PartitionImage
from moldau.cluster.state.registrations import read_known
from moldau.errors import ErrorCode
from moldau.metadata_store.store import node_at
from tests.cluster.several import Member, Members, followed_by, place, play


async def three(members: Members) -> Member:
    for number in (1, 2, 3):
        await members.join(number)
    await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
    return await members.controller()


def test_only_a_broker_that_registered_and_is_not_up_is_forgotten() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        forget = controller.acting.forget_broker
        unknown = Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 99 is not currently registered")
        assert await forget(99) == unknown
        running = await forget(3)
        assert running is not None and running.code is ErrorCode.INVALID_REQUEST and "is running" in running.message
        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        members.pop(3).die()
        await members.shown(lambda image: 3 not in image.brokers)
        known = await controller.session.read(read_known())
        assert [*known] == [1, 2, 3] and known[3].endpoint("PLAINTEXT") == ("PLAINTEXT", "PLAINTEXT", "host3", 9092)
        assert await forget(3) is None
        assert 3 not in await controller.session.read(read_known())
        assert await controller.session.read(node_at(f"{layout.BROKER_EPOCHS}/3")) is None
        again = await forget(3)
        assert again is not None and again.code is ErrorCode.BROKER_ID_NOT_REGISTERED
        await members.join(3)
        await members.shown(lambda image: 3 in image.brokers)
        assert await controller.session.read(node_at(f"{layout.BROKER_EPOCHS}/3")) is not None
        asking.cancel()

    play(scenario)


def test_it_is_no_eligible_leader_any_more() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        part = PartitionImage(1, 0, (1, 2, 3), (1,), elr=(2, 3))
        await place(controller, "t", part, min_insync_replicas="3")
        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        members.pop(3).die()
        await members.shown(lambda image: 3 not in image.brokers)
        assert controller.image.topics["t"].partitions[0].elr == (2, 3)
        assert await controller.acting.forget_broker(3) is None
        after = controller.image.topics["t"].partitions[0]
        assert (after.elr, after.replicas, after.leader) == ((2,), (1, 2, 3), 1)
        asking.cancel()

    play(scenario)


def test_a_deleted_topic_that_it_may_still_have_is_waited_for_no_more() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await place(controller, "t", PartitionImage(3, 0, (3,), (3,)))
        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        members.pop(3).die()
        await members.shown(lambda image: 3 not in image.brokers)
        await controller.acting.topics.delete([("t", None)])
        assert controller.image.deleted
        assert await controller.acting.forget_broker(3) is None
        await members.shown(lambda image: not image.deleted)
        asking.cancel()

    play(scenario)
