"""The controller's stream in virtual time: brokers get every change in order, wake at once, and are waited for."""

import asyncio
import random
import uuid
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from moldau.cluster.controlling import change_stream
from moldau.cluster.controlling.change_stream import KNOWN_S, NOTHING, POLL_S, ChangeStream, Followed
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.image_changes import applied
from moldau.errors import ErrorCode, KafkaError
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.network import Network

T = TypeVar("T")
EPOCH = 3
HERE = (Endpoint("PLAINTEXT", "PLAINTEXT", "here", 9092),)
CLUSTER = Image("c", 1, {number: BrokerImage(number, HERE, epoch=10 + number) for number in (1, 2, 3)})


def simulated(scenario: Coroutine[Any, Any, T]) -> T:
    loop = SimulatedLoop(Network(random.Random(1)))
    try:
        return loop.run_until_complete(scenario)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
            loop.run_until_complete(asyncio.wait([task]))
        loop.close()


def now_s() -> float:
    return asyncio.get_running_loop().time()


def with_topic(image: Image, name: str) -> Image:
    topic_id = uuid.UUID(int=len(image.topics) + 1)
    return image.with_topics({name: TopicImage(name, topic_id, (PartitionImage(1, 0, (1,), (1,)),), {})})


class Follower:
    """A broker that follows; its image is what it was sent."""

    def __init__(self, stream: ChangeStream, broker_id: int):
        self.stream = stream
        self.id = broker_id
        self.image = Image("c")
        self.epoch = self.position = NOTHING

    async def ask(self, wait_s: float = POLL_S) -> Followed:
        answer = await self.stream.follow(self.id, 10 + self.id, self.epoch, self.position, self.position, wait_s)
        if answer.is_whole:
            self.image = Image("c")
        for change in answer.changes:
            self.image, _ = applied(self.image, change)
        self.epoch, self.position = answer.controller_epoch, answer.position
        return answer

    def keep_asking(self) -> None:
        async def whole() -> None:
            while True:
                await self.ask()

        self.asking = asyncio.ensure_future(whole())


def test_a_broker_gets_the_whole_image_first_and_then_the_changes_one_after_another() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        follower = Follower(stream, 2)
        assert (await follower.ask()).is_whole
        assert follower.image == CLUSTER
        for name in ("a", "b", "c"):
            stream.publish(with_topic(stream.image, name))
        answer = await follower.ask()
        assert [[one.name for one in change.created] for change in answer.changes] == [["a"], ["b"], ["c"]]
        assert follower.image == stream.image and follower.position == stream.position == 3

    simulated(scenario())


def test_a_question_waits_and_is_answered_when_a_change_is_published() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        follower = Follower(stream, 2)
        await follower.ask()
        began_s = now_s()
        assert not (await follower.ask()).changes
        assert now_s() - began_s == pytest.approx(POLL_S)
        asking = asyncio.ensure_future(follower.ask())
        await asyncio.sleep(1)
        stream.publish(with_topic(CLUSTER, "a"))
        published_s = now_s()
        await asking
        assert "a" in follower.image.topics and now_s() == published_s

    simulated(scenario())


def test_an_image_that_equals_the_latest_is_no_change() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        assert stream.publish(replace(CLUSTER, brokers=dict(CLUSTER.brokers))) == 0
        assert stream.publish(replace(CLUSTER, controller_id=2)) == 1

    simulated(scenario())


@pytest.mark.parametrize("bound", ["CHANGES_MAX", "ENTRIES_MAX"])
def test_a_broker_that_has_fallen_behind_the_ring_gets_the_whole_image(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(change_stream, bound, 10)

    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        near, far = Follower(stream, 2), Follower(stream, 3)
        await near.ask()
        await far.ask()
        for number in range(20):
            stream.publish(with_topic(stream.image, f"t{number}"))
            if number % 4 == 3:
                assert not (await near.ask()).is_whole
        assert (await far.ask()).is_whole
        assert near.image == far.image == stream.image
        assert len(stream._ring) <= 10

    simulated(scenario())


def test_a_change_larger_than_the_ring_is_kept_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_stream, "ENTRIES_MAX", 1)

    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        follower = Follower(stream, 2)
        await follower.ask()
        stream.publish(with_topic(stream.image, "a"))
        assert not (await follower.ask()).is_whole

    simulated(scenario())


@pytest.mark.parametrize(("epoch", "position"), [(EPOCH - 1, 1), (NOTHING, NOTHING), (EPOCH, 99), (EPOCH, -5)])
def test_a_position_that_is_not_of_this_controller_gets_the_whole_image(epoch: int, position: int) -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        stream.publish(with_topic(CLUSTER, "a"))
        answer = await stream.follow(2, 12, epoch, position, position)
        assert answer.is_whole and answer.position == 1 and answer.controller_epoch == EPOCH

    simulated(scenario())


def test_a_controller_that_was_replaced_answers_so() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        with pytest.raises(KafkaError) as later:
            await stream.follow(2, 12, EPOCH + 1, 0, 0)
        follower = Follower(stream, 2)
        await follower.ask()
        asking, waiting = asyncio.ensure_future(follower.ask()), asyncio.ensure_future(stream.known_to([2], 1))
        await asyncio.sleep(0.1)
        stream.close()
        with pytest.raises(KafkaError) as closed:
            await asking
        assert later.value.code is closed.value.code is ErrorCode.NOT_CONTROLLER
        assert not await waiting
        with pytest.raises(KafkaError):
            await follower.ask()
        assert now_s() == pytest.approx(0.1), "nobody waits for a controller that was replaced"

    simulated(scenario())


def test_a_broker_that_has_registered_again_is_fenced_in_its_earlier_life() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        with pytest.raises(KafkaError) as stale:
            await stream.follow(2, 11, EPOCH, 0, 0)
        assert stale.value.code is ErrorCode.STALE_BROKER_EPOCH
        assert (await stream.follow(2, 13, EPOCH, NOTHING, NOTHING)).is_whole, "its registration is not seen yet"

    simulated(scenario())


def test_a_change_is_known_when_all_live_brokers_act_by_it() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        for number in (1, 2, 3):
            Follower(stream, number).keep_asking()
        await asyncio.sleep(0.1)
        began_s = now_s()
        assert await stream.known_to(CLUSTER.brokers, stream.publish(with_topic(CLUSTER, "a")))
        assert now_s() == began_s

    simulated(scenario())


def test_a_change_that_a_broker_does_not_apply_is_waited_for_no_longer_than_the_limit() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        Follower(stream, 1).keep_asking()
        position = stream.publish(with_topic(CLUSTER, "a"))
        began_s = now_s()
        assert not await stream.known_to([1, 2], position)
        assert now_s() - began_s == pytest.approx(KNOWN_S)
        assert await stream.known_to([1], position)

    simulated(scenario())


def test_a_broker_that_goes_is_not_waited_for() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        position = stream.publish(with_topic(CLUSTER, "a"))
        waiting = asyncio.ensure_future(stream.known_to([2], position))
        await asyncio.sleep(0.1)
        stream.publish(replace(stream.image, brokers={1: CLUSTER.brokers[1]}))
        assert await waiting
        assert now_s() == pytest.approx(0.1)

    simulated(scenario())


def test_a_broker_that_registers_again_acts_by_nothing_until_it_says_so() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, CLUSTER)
        await stream.follow(2, 12, EPOCH, 0, 0, 0)
        assert await stream.known_to([2], 0)
        brokers = {**CLUSTER.brokers, 2: CLUSTER.brokers[2]._replace(epoch=99)}
        stream.publish(replace(CLUSTER, brokers=brokers))
        assert not await stream.known_to([2], 0)

    simulated(scenario())


def test_a_broker_is_silent_when_it_has_not_asked_for_long_or_never_since_it_registered() -> None:
    async def scenario() -> None:
        stream = ChangeStream(EPOCH, replace(CLUSTER, brokers={1: CLUSTER.brokers[1], 2: CLUSTER.brokers[2]}))
        Follower(stream, 1).keep_asking()
        await asyncio.sleep(20)
        stream.publish(CLUSTER)
        await asyncio.sleep(11)
        assert stream.silent(30) == [2]
        assert stream.silent(10) == [2, 3]
        await Follower(stream, 2).ask()
        assert stream.silent(30) == []

    simulated(scenario())


def test_a_broker_may_leave_when_it_is_in_no_isr_and_the_others_act_by_it() -> None:
    async def scenario() -> None:
        heard: list[int] = []
        stream = ChangeStream(EPOCH, with_topic(CLUSTER, "a"), lambda: heard.append(1))
        other, third = Follower(stream, 2), Follower(stream, 3)
        await third.ask()
        other.keep_asking()

        async def leave() -> float:
            position = NOTHING
            while not (answer := await stream.follow(1, 11, EPOCH, position, position, leaving=True)).may_leave:
                position = answer.position
            return now_s()

        left = asyncio.ensure_future(leave())
        await asyncio.sleep(1)
        assert (heard, stream.leaving()) == ([1], {1: 11})
        flagged = replace(stream.image, brokers={**CLUSTER.brokers, 1: CLUSTER.brokers[1]._replace(leaving=True)})
        stream.publish(flagged)
        await asyncio.sleep(1)
        assert not left.done(), "it leads"
        gone = PartitionImage(2, 1, (1, 2), (2,))
        stream.publish(flagged.with_topics({"a": flagged.topics["a"]._replace(partitions=(gone,))}))
        await asyncio.sleep(0.5)
        assert not left.done(), "broker 3 does not know yet"
        third.keep_asking()
        assert await left == pytest.approx(2.5)
        assert heard == [1]
        assert await stream.known_to([1, 2, 3], stream.position), "nobody waits for it any more"

    simulated(scenario())


def test_a_broker_that_no_longer_says_that_it_stops_is_waited_for_again() -> None:
    async def scenario() -> None:
        heard: list[int] = []
        leaving = replace(CLUSTER, brokers={1: CLUSTER.brokers[1]._replace(leaving=True)})
        stream = ChangeStream(EPOCH, leaving, lambda: heard.append(1))
        assert (await stream.follow(1, 11, EPOCH, 0, 0, leaving=True)).may_leave
        assert (heard, stream.leaving()) == ([1], {1: 11})
        assert not (await stream.follow(1, 11, EPOCH, 0, 0)).may_leave
        assert (heard, stream.leaving()) == ([1, 1], {})
        stream.publish(with_topic(stream.image, "a"))
        assert not await stream.known_to([1], stream.position, 0.1)

    simulated(scenario())


def test_a_broker_that_may_leave_waits_for_changes_as_before() -> None:
    async def scenario() -> None:
        leaving = replace(CLUSTER, brokers={1: CLUSTER.brokers[1]._replace(leaving=True)})
        stream = ChangeStream(EPOCH, leaving)
        assert (await stream.follow(1, 11, EPOCH, 0, 0, leaving=True)).may_leave
        assert now_s() == 0
        assert (await stream.follow(1, 11, EPOCH, 0, 0, leaving=True)).may_leave
        assert now_s() == pytest.approx(POLL_S)

    simulated(scenario())
