"""The controller of several brokers: one at a time, fenced by its epoch, electing among those that are up."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from moldau.cluster.controlling import acting
from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.controlling.change_stream import KNOWN_S, ChangeStream
from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.state import layout
from moldau.cluster.state.image import NO_LEADER, Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode, KafkaError
from moldau.metadata_store.store import Delete, MetadataStore, Set, Written
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import TIMEOUT_S, Member, Members, followed_by, place, play


async def three(members: Members) -> Member:
    for number in (1, 2, 3):
        await members.join(number)
    await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
    return await members.controller()


def leaders(topic: TopicImage) -> list[int]:
    return [part.leader for part in topic.partitions]


def test_the_first_broker_is_the_controller_and_shows_the_others() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        assert controller is members[1]
        assert (controller.image.controller_id, controller.image.controller_epoch) == (1, 1)
        assert [member.is_controller for member in members.values()] == [True, False, False]
        assert len({broker.epoch for broker in controller.image.brokers.values()}) == 3

    play(scenario)


def test_a_topic_is_spread_over_all_brokers() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        [(_, topic)] = await controller.acting.topics.create([NewTopic("t", 9)])
        assert isinstance(topic, TopicImage)
        assert Counter(leaders(topic)) == {1: 3, 2: 3, 3: 3}
        offsets = await controller.acting.topics.ensure_offsets_topic()
        assert isinstance(offsets, TopicImage)
        assert sorted(leaders(offsets)) == [1, 2, 3]

    play(scenario)


def test_replicas_are_on_different_brokers_and_all_in_sync_at_first() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        [(_, topic), (_, far)] = await controller.acting.topics.create([NewTopic("t", 6, 2), NewTopic("u", 1, 4)])
        assert isinstance(topic, TopicImage)
        assert {len(set(part.replicas)) for part in topic.partitions} == {2}
        assert all(part.isr == part.replicas and part.leader == part.replicas[0] for part in topic.partitions)
        assert Counter(leaders(topic)) == {1: 2, 2: 2, 3: 2}
        assert isinstance(far, Refusal)
        assert far.code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert "above the number of running brokers" in str(far.message)

    play(scenario)


def test_another_broker_takes_over_when_the_controller_has_died() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        controller.die()
        del members[1]
        later = await members.controller()
        image = await members.shown(lambda image: list(image.brokers) == [2, 3])
        assert image.controller_epoch == 2
        assert sorted(leaders(image.topics["t"])) == [-1, 2, 3]
        await later.acting.topics.create_partitions([MorePartitions("t", 5)])
        assert set(leaders(later.image.topics["t"])[3:]) == {2, 3}
        epochs = [part.leader_epoch for part in later.image.topics["t"].partitions if part.leader == -1]
        await members.join(1)
        image = await members.shown(lambda image: -1 not in leaders(image.topics["t"]))
        assert [part.leader_epoch for part in image.topics["t"].partitions if part.leader == 1] == [epochs[0] + 1]

    play(scenario)


def test_a_broker_that_comes_back_before_its_node_has_gone_leads_in_a_new_epoch() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        before = controller.image.brokers[3].epoch
        controller.acting._changed.set = lambda: None  # type: ignore[method-assign]  # it hears nothing meanwhile
        await members[3].membership.close()
        await members.join(3)
        del controller.acting._changed.set  # type: ignore[method-assign]
        controller.acting._changed.set()
        image = await members.shown(lambda image: image.brokers[3].epoch != before)
        image = await members.shown(lambda image: max(part.leader_epoch for part in image.topics["t"].partitions) == 1)
        assert [(part.leader, part.leader_epoch) for part in image.topics["t"].partitions if part.leader_epoch] == [
            (3, 1)
        ]

    play(scenario)


def test_a_broker_that_came_back_while_nobody_was_the_controller_leads_in_a_new_epoch() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        epochs = {part.leader: part.leader_epoch for part in controller.image.topics["t"].partitions}
        controller.die()
        del members[1]
        await members[3].membership.close()
        await members.join(3)
        image = await members.shown(lambda image: list(image.brokers) == [2, 3])
        assert {part.leader: part.leader_epoch for part in image.topics["t"].partitions} == {
            -1: epochs[1] + 1,
            2: epochs[2],
            3: epochs[3] + 1,
        }

    play(scenario)


def test_a_new_controller_tells_nobody_of_a_registration_before_it_has_elected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker whose machine has lost power leads once it is told of its own registration: it must not be told that it
    leads as before."""
    told: list[Image] = []

    class Recorded(ChangeStream):
        def __init__(self, epoch: int, image: Image, *others: Callable[[], None]):
            super().__init__(epoch, image, *others)
            told.append(image)

        def publish(self, image: Image) -> int:
            told.append(image)
            return super().publish(image)

    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        before = controller.image
        [led] = [number for number, part in enumerate(before.topics["t"].partitions) if part.leader == 3]
        controller.die()
        del members[1]
        await members[3].membership.close()
        await members.join(3)
        monkeypatch.setattr(acting, "ChangeStream", Recorded)
        await members.shown(lambda image: list(image.brokers) == [2, 3])
        epoch = before.topics["t"].partitions[led].leader_epoch
        anew = [image for image in told if 3 in image.brokers and image.brokers[3] != before.brokers[3]]
        assert anew and all(image.topics["t"].partitions[led].leader_epoch > epoch for image in anew)

    play(scenario)


@pytest.mark.parametrize("is_lost", [False, True], ids=["elects", "loses its session"])
def test_a_change_waits_until_a_new_controller_has_elected(monkeypatch: pytest.MonkeyPatch, is_lost: bool) -> None:
    take_brokers = acting.Acting._take_brokers

    async def scenario(members: Members) -> None:
        go_on = asyncio.Event()

        async def take_later(controller: acting.Acting, store: MetadataStore) -> None:
            await go_on.wait()
            await take_brokers(controller, store)

        controller = await three(members)
        monkeypatch.setattr(acting.Acting, "_take_brokers", take_later)
        controller.die()
        del members[1]
        later = await members.controller()
        creating = asyncio.ensure_future(later.acting.topics.create([NewTopic("t")]))
        await asyncio.sleep(2 * KNOWN_S)
        assert not creating.done()
        if is_lost:
            members.store.cut(later.session.link)
            await asyncio.sleep(2 * TIMEOUT_S)
        go_on.set()
        if is_lost:
            with pytest.raises(KafkaError) as refused:
                await creating
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
        else:
            await creating
            assert later.acting.stream is not None
            told = later.acting.stream.image
            assert (list(told.brokers), list(told.topics)) == ([2, 3], ["t"])

    play(scenario)


def test_a_controller_that_was_replaced_unheard_writes_nothing_and_answers_not_controller() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        outside = ModelSession(members.store)
        await outside.multi([Set(layout.CONTROLLER_EPOCH, b"7")])
        with pytest.raises(KafkaError) as refused:
            await controller.acting.topics.create([NewTopic("t")])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert "/brokers/topics/t" not in members.store.nodes
        image = await members.shown(lambda image: image.controller_epoch == 8)
        assert image.topics == {}
        await outside.close()

    play(scenario)


def test_a_controller_whose_write_had_no_answer_resigns_reads_everything_and_is_elected_again() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        members.store.lose_next_answer(controller.session.link)
        asking = asyncio.ensure_future(controller.acting.topics.create([NewTopic("t")]))
        while controller.session.link.is_up:
            await asyncio.sleep(0)
        members.store.mend(controller.session.link)
        with pytest.raises(KafkaError) as refused:
            await asking
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        image = await members.shown(lambda image: image.controller_epoch == 2)
        assert list(image.topics) == ["t"], "it was written"

    play(scenario)


def test_a_controller_whose_node_was_deleted_stands_again() -> None:
    async def scenario(members: Members) -> None:
        await three(members)
        outside = ModelSession(members.store)
        await outside.multi([Delete(layout.CONTROLLER)])
        image = await members.shown(lambda image: image.controller_epoch == 2)
        assert image.controller_id in (1, 2, 3)
        assert sum(member.is_controller for member in members.values()) == 1
        await outside.close()

    play(scenario)


def test_all_who_wait_are_answered_when_the_session_of_the_controller_is_over() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        members.store.cut(controller.session.link)
        asked = [asyncio.ensure_future(controller.acting.topics.create([NewTopic(name)])) for name in "ab"]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(one, KafkaError) and one.code for one in results] == [ErrorCode.NOT_CONTROLLER] * 2
        later = await members.controller(lambda member: member is not controller)
        assert later.image.topics == {}
        image = await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        assert image.controller_epoch == 2

    play(scenario)


def test_deleted_topics_are_remembered_until_every_broker_that_had_them_acts_by_it() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        members[3].die()
        del members[3]
        await members.shown(lambda image: list(image.brokers) == [1, 2])
        await controller.acting.topics.delete([("t", None)])
        stream = controller.acting.stream
        assert stream is not None
        for broker in (1, 2):
            await stream.follow(broker, -1, 1, stream.position - 1, stream.position)
        await asyncio.sleep(30)
        assert list(controller.image.deleted.values()) == ["t"], "broker 3 may still have its log"
        await members.join(3)
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        await stream.follow(3, -1, 1, stream.position - 1, stream.position)
        await members.shown(lambda image: not image.deleted)
        asking.cancel()

    play(scenario)


def test_a_silent_broker_leads_nothing_until_it_asks_again() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])

        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        image = await members.shown(lambda image: sorted(leaders(image.topics["t"])) == [-1, 1, 2])
        assert list(image.brokers) == [1, 2, 3], "its session lives"
        asking.cancel()
        asking = asyncio.ensure_future(followed_by(controller, 1, 2, 3))
        await members.shown(lambda image: sorted(leaders(image.topics["t"])) == [1, 2, 3])
        asking.cancel()

    play(scenario)


def test_only_what_has_changed_something_is_answered_after_other_brokers_know_it() -> None:
    async def scenario(members: Members) -> None:
        topics, time_s = (await three(members)).acting.topics, asyncio.get_running_loop().time
        began_s = time_s()
        await topics.create([NewTopic("t")])
        assert time_s() - began_s >= KNOWN_S, "nobody follows this controller"
        began_s = time_s()
        await topics.create([NewTopic("never")], validate_only=True)
        [(_, refused)] = await topics.create([NewTopic("t")])
        assert isinstance(refused, Refusal) and time_s() - began_s < KNOWN_S / 2

    play(scenario)


def test_a_broker_that_left_and_is_back_before_its_node_has_gone_does_not_leave_any_more() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        stream = controller.acting.stream
        assert stream is not None
        await stream.follow(3, -1, 1, stream.position - 1, stream.position, leaving=True)
        image = await members.shown(lambda image: image.leaving == {3})
        before = image.brokers[3].epoch
        controller.acting._changed.set = lambda: None  # type: ignore[method-assign]  # it hears nothing meanwhile
        await members[3].membership.close()
        await members.join(3)
        del controller.acting._changed.set  # type: ignore[method-assign]
        controller.acting._changed.set()
        image = await members.shown(lambda image: image.brokers[3].epoch != before)
        assert not image.leaving
        await members.shown(lambda image: sorted(leaders(image.topics["t"])) == [1, 2, 3])

    play(scenario)


def test_settings_and_topics_of_one_controller_are_there_for_the_next() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.configs.alter_broker("2", [Alteration("log.segment.bytes", OpType.SET, "2000000")])
        await controller.acting.topics.create([NewTopic("t", 2, configs=[("retention.ms", "5")])])
        await controller.membership.close()
        del members[1]
        later = await members.controller()
        assert later.image.broker_overrides == {"2": {"log.segment.bytes": "2000000"}}
        assert later.image.topics["t"].overrides == {"retention.ms": "5"}

    play(scenario)


def test_eligible_leaders_are_forgotten_when_fewer_in_sync_are_enough() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await place(controller, "t", PartitionImage(1, 0, (1, 2), (1,), elr=(2,)), min_insync_replicas="2")
        assert controller.image.topics["t"].partitions[0].elr == (2,)
        await controller.acting.configs.alter_topics([("t", [Alteration("min.insync.replicas", OpType.SET, "1")])])
        image = await members.shown(lambda image: not image.topics["t"].partitions[0].elr)
        assert image.topics["t"].partitions[0].isr == (1,)

    play(scenario)


def test_partitions_lose_their_leaders_in_steps_of_500() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        asking = asyncio.ensure_future(followed_by(controller, 1, 2, 3))
        for number in range(10):
            await controller.acting.topics.create([NewTopic(f"t{number}", 300)])
        written: list[int] = []
        multi = controller.session.multi

        async def counting(operations: list[Set]) -> list[Written | None]:
            written.append(len(operations))
            return await multi(operations)

        controller.session.multi = counting  # type: ignore[method-assign,assignment]
        await members[3].membership.close()
        del members[3]
        image = await members.shown(
            lambda image: sum(leaders(topic).count(-1) for topic in image.topics.values()) == 1000
        )
        asking.cancel()
        assert sorted(written) == [501, 501]
        assert list(image.brokers) == [1, 2]

    play(scenario)


def test_a_broker_that_goes_while_the_image_is_read_again_leads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        look, may_look = controller.acting._take_brokers, asyncio.Event()

        async def later(store: MetadataStore) -> None:
            await may_look.wait()
            await look(store)

        monkeypatch.setattr(controller.acting, "_take_brokers", later)
        asking = asyncio.ensure_future(followed_by(controller, *members))
        killed = members.pop(next(number for number in members if number != controller.broker_id))
        killed.die()
        while f"/brokers/ids/{killed.broker_id}" in members.store.nodes:
            await asyncio.sleep(0.1)
        await controller.acting.queue._show(controller.acting.queue._again())
        may_look.set()
        async with asyncio.timeout(5):  # before all count as silent
            await members.shown(lambda image: NO_LEADER in leaders(image.topics["t"]))
        assert killed.broker_id not in controller.image.brokers
        asking.cancel()

    play(scenario)
