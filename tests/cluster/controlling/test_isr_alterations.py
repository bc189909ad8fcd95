"""Leaders propose other ISRs, and the controller writes what it accepts: several in one step, fenced by its epoch."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Sequence

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state import layout
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.isr_changes import UNSEEN, ProposedIsr, codes_of, judged, request_of
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import NodeOperation, Set, Written
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.peers.introduction import link_to_broker
from moldau.protocol.apis import ALTER_PARTITION
from moldau.protocol.messages.alter_partition import AlterPartitionRequest
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.connected import PORT, Brokers, played
from tests.cluster.several import Member, Members, place, play


async def replicated(controller: Member, count: int = 1) -> Image:
    """A topic `t` on brokers 1, 2 and 3, led by 1, with all in sync."""
    await place(controller, "t", *[PartitionImage(1, 0, (1, 2, 3), (1, 2, 3))] * count, min_insync_replicas="2")
    return controller.image


def proposal(image: Image, isr: Sequence[int], number: int = 0, epoch: int | None = None) -> ProposedIsr:
    topic = image.topics["t"]
    part = topic.partitions[number]
    members = tuple((one, image.brokers[one].epoch if epoch is None else epoch) for one in isr)
    return ProposedIsr(topic.id, number, part.leader_epoch, part.partition_epoch, members)


async def three(members: Members) -> Member:
    for number in (1, 2, 3):
        await members.join(number)
    await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
    return await members.controller()


def test_an_isr_becomes_smaller_and_larger_again() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller)
        epoch = image.brokers[1].epoch
        [part] = await controller.acting.isr.alter(1, epoch, [proposal(image, [1])])
        assert isinstance(part, PartitionImage)
        assert (part.isr, part.elr) == ((1,), (2, 3))
        assert part == controller.image.topics["t"].partitions[0]
        [late] = await controller.acting.isr.alter(1, epoch, [proposal(image, [1, 2])])
        assert late is ErrorCode.INVALID_UPDATE_VERSION
        [part] = await controller.acting.isr.alter(1, epoch, [proposal(controller.image, [1, 3])])
        assert isinstance(part, PartitionImage)
        assert (part.isr, part.elr) == ((1, 3), ())

    play(scenario)


def test_a_member_whose_fetch_the_leader_has_not_seen_yet_stays_and_does_not_join() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller)
        epoch = image.brokers[1].epoch
        [part] = await controller.acting.isr.alter(1, epoch, [proposal(image, [1, 2], epoch=UNSEEN)])
        assert isinstance(part, PartitionImage)
        joining = proposal(controller.image, [1, 2, 3], epoch=UNSEEN)
        assert await controller.acting.isr.alter(1, epoch, [joining]) == [ErrorCode.INELIGIBLE_REPLICA]

    play(scenario)


def test_proposals_that_come_together_are_written_in_one_step() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller, 20)
        steps: list[int] = []
        multi = controller.session.multi

        async def counting(operations: Sequence[NodeOperation]) -> list[Written | None]:
            steps.append(len(operations))
            return await multi(operations)

        controller.session.multi = counting  # type: ignore[method-assign]
        epoch = image.brokers[1].epoch
        asked = [controller.acting.isr.alter(1, epoch, [proposal(image, [1, 2], number)]) for number in range(20)]
        twice = controller.acting.isr.alter(1, epoch, [proposal(image, [1, 3], 7)])
        results = await asyncio.gather(*asked, twice)
        assert steps == [21], "a check of the controller's epoch, and 20 states"
        assert [one[0].isr for one in results[:-1] if isinstance(one[0], PartitionImage)] == [(1, 2)] * 20
        assert results[-1] == [ErrorCode.INVALID_UPDATE_VERSION]

    play(scenario)


def test_a_sender_that_has_registered_again_is_refused_and_does_not_hold_up_others() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller)
        stale = controller.acting.isr.alter(1, image.brokers[1].epoch - 1, [proposal(image, [1])])
        fine = controller.acting.isr.alter(1, image.brokers[1].epoch, [proposal(image, [1, 2])])
        refused, changed = await asyncio.gather(stale, fine, return_exceptions=True)
        assert isinstance(refused, KafkaError)
        assert refused.code is ErrorCode.STALE_BROKER_EPOCH
        assert not isinstance(changed, BaseException)
        assert controller.image.topics["t"].partitions[0].isr == (1, 2)

    play(scenario)


@pytest.mark.parametrize("is_member", [False, True])
def test_a_replica_whose_log_folder_is_offline_does_not_join(is_member: bool) -> None:
    part = PartitionImage(1, 0, (1, 2), (1, 2) if is_member else (1,), ("a", "offline"))
    brokers = {
        number: BrokerImage(number, (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 1),), None, ("a", "b"), epoch=number)
        for number in (1, 2)
    }
    topic = TopicImage("t", uuid.UUID(int=7), (part,), {})
    image = Image("", brokers=brokers, topics={"t": topic}, topics_by_id={topic.id: topic})
    found = judged(image, 1, ProposedIsr(topic.id, 0, 0, 0, ((1, 1), (2, 2))), 1)
    assert found == ((TopicPartition("t", 0), part) if is_member else ErrorCode.INELIGIBLE_REPLICA)


def test_a_silent_broker_does_not_join() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller)
        await controller.acting.isr.alter(1, image.brokers[1].epoch, [proposal(image, [1, 2])])
        controller.acting._silent = frozenset({3})
        joining = proposal(controller.image, [1, 2, 3])
        [found] = await controller.acting.isr.alter(1, image.brokers[1].epoch, [joining])
        assert found is ErrorCode.INELIGIBLE_REPLICA

    play(scenario)


def test_a_zombie_controller_changes_no_isr() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller)
        outside = ModelSession(members.store)
        await outside.multi([Set(layout.CONTROLLER_EPOCH, b"7")])
        with pytest.raises(KafkaError) as refused:
            await controller.acting.isr.alter(1, image.brokers[1].epoch, [proposal(image, [1])])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        image = await members.shown(lambda image: image.controller_epoch == 8)
        assert image.topics["t"].partitions[0].isr == (1, 2, 3)
        ahead = proposal(image, [1])._replace(partition_epoch=99)
        later = await members.controller()
        found = await later.acting.isr.alter(1, image.brokers[1].epoch, [ahead])
        assert found == [ErrorCode.NOT_CONTROLLER], "the leader knows more than this controller"
        await outside.close()

    play(scenario)


def test_a_leader_asks_the_controller_over_the_network() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        controller, other = brokers.controller, brokers.others[0]
        image = await replicated(controller)
        sender = other.broker_id
        proposals = [proposal(image, [1]), proposal(image, [1])._replace(partition=5)]
        request = request_of(sender, image.brokers[sender].epoch, proposals)
        link = await link_to_broker(Address(controller.host, PORT), controller.broker_id, other.identity, 5000)
        codes = codes_of(proposals, await link.call(ALTER_PARTITION, request))
        assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], "broker 1 leads"
        foreign = AlterPartitionRequest(broker_id=7)
        assert (await link.call(ALTER_PARTITION, foreign)).error_code == ErrorCode.INVALID_REQUEST
        link = await link_to_broker(Address(other.host, PORT), sender, controller.identity, 5000)
        answer = await link.call(ALTER_PARTITION, AlterPartitionRequest(broker_id=controller.broker_id))
        with pytest.raises(KafkaError) as refused:
            codes_of([], answer)
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    played(scenario)


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_last_one_in_sync_leads_when_it_is_back_only_if_it_has_lost_nothing(is_kept: bool) -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller)
        epochs = {one: broker.epoch for one, broker in image.brokers.items()}
        for broker_id in (3, 2):
            members.pop(broker_id).die()
            await members.shown(lambda image, gone=broker_id: gone not in image.brokers)  # type: ignore[misc]
        part = controller.image.topics["t"].partitions[0]
        assert (part.leader, part.isr, part.elr) == (1, (1,), (2,))
        members.pop(1).die()
        await members.join(2, epochs[2] if is_kept else epochs[2] - 1)
        await members.shown(lambda image: list(image.brokers) == [2])
        image = await members.shown(lambda image: image.topics["t"].partitions[0].leader != 1)
        part = image.topics["t"].partitions[0]
        if is_kept:
            assert (part.leader, part.isr, part.elr) == (2, (2,), (1,))
        else:
            assert (part.leader, part.isr, part.elr, part.last_elr) == (-1, (), (1,), (2,))
            await members.join(1, epochs[1])
            image = await members.shown(lambda image: image.topics["t"].partitions[0].leader == 1)
            assert image.topics["t"].partitions[0].isr == (1,)

    play(scenario)


def test_a_broker_whose_session_was_over_has_lost_nothing_however_often_it_registered() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await replicated(controller)
        second, first_epoch = members[2], members[2].membership.epoch
        for _ in range(3):
            epoch = second.membership.epoch
            members.store.cut(second.session.link)
            await members.shown(lambda image, epoch=epoch: 2 in image.brokers and image.brokers[2].epoch != epoch)  # type: ignore[misc]
        node = json.loads(members.store.nodes["/brokers/ids/2"].data)
        assert node["kept"]["folder-2"][0] == first_epoch
        assert second.membership.epoch not in node["kept"]["folder-2"]

    play(scenario)


def test_preferred_replicas_lead_again_when_an_administrator_asks_for_it() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await replicated(controller, 2)
        await members.pop(1).membership.close()
        later = await members.controller()
        image = await members.shown(lambda image: image.topics["t"].partitions[0].leader == 2)
        wanted = [TopicPartition("t", 0), TopicPartition("none", 0)]
        assert await later.acting.elect(wanted, unclean=False) == set(), "it is not in sync"
        await members.join(1)
        await members.shown(lambda image: 1 in image.brokers)
        await later.acting.isr.alter(2, later.image.brokers[2].epoch, [proposal(later.image, [1, 2, 3])])
        assert await later.acting.elect(wanted, unclean=False) == {TopicPartition("t", 0)}
        first, second = later.image.topics["t"].partitions
        assert (first.leader, first.leader_epoch) == (1, image.topics["t"].partitions[0].leader_epoch + 1)
        assert second.leader == 2

    play(scenario)


def test_a_broker_that_leaves_may_stay_in_sync_and_does_not_join() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await replicated(controller)
        epoch = controller.image.brokers[1].epoch

        def propose(*isr: int) -> Awaitable[list[PartitionImage | ErrorCode]]:
            return controller.acting.isr.alter(1, epoch, [proposal(controller.image, isr)])

        def now() -> tuple[tuple[int, ...], tuple[int, ...]]:
            part = controller.image.topics["t"].partitions[0]
            return part.isr, part.elr

        await propose(1, 2)
        stream = controller.acting.stream
        assert stream is not None
        await stream.follow(2, -1, 1, stream.position - 1, stream.position, leaving=True)
        await members.shown(lambda image: image.leaving == {2})
        assert now() == ((1, 2), ()), "broker 3 may join in its place"
        await propose(1, 2, 3)
        await members.shown(lambda _: now() == ((1, 3), ()))
        assert await propose(1, 2, 3) == [ErrorCode.INELIGIBLE_REPLICA]

    play(scenario)


def test_one_partition_that_cannot_be_read_does_not_keep_the_others_from_other_isrs() -> None:
    async def scenario(members: Members) -> None:
        for number in (1, 2, 3):
            await members.join(number)
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        controller = await members.controller()
        await controller.acting.topics.create([NewTopic("a", 1, 3), NewTopic("b", 1, 3)])
        outside = ModelSession(members.store)
        await outside.multi([Set(layout.state_path("a", 0), b"garbage")])
        image = controller.image
        asked = []
        for name in "ab":
            part = image.topics[name].partitions[0]
            isr = ((part.leader, -1),)
            proposal = ProposedIsr(image.topics[name].id, 0, part.leader_epoch, part.partition_epoch, isr)
            epoch = image.brokers[part.leader].epoch
            asked.append(asyncio.ensure_future(controller.acting.isr.alter(part.leader, epoch, [proposal])))
        results = await asyncio.gather(*asked, return_exceptions=True)
        await outside.close()
        assert len(controller.image.topics["b"].partitions[0].isr) == 1, results

    play(scenario)


def test_a_state_that_was_read_again_takes_another_isr_although_the_change_that_met_it_failed() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        image = await replicated(controller, 2)
        epoch = image.brokers[1].epoch
        outside = ModelSession(members.store)
        path, other = layout.state_path("t", 0), layout.state_path("t", 1)
        await outside.multi([Set(path, members.store.nodes[path].data)])
        multi, failed = controller.session.multi, list[int]()

        async def full_once(operations: Sequence[NodeOperation]) -> list[Written | None]:
            paths = [one.path for one in operations]
            if not failed and other in paths and path not in paths:
                failed.append(1)
                raise StorageError("the disk is full")
            return await multi(operations)

        controller.session.multi = full_once  # type: ignore[method-assign]
        with pytest.raises(StorageError):
            await controller.acting.isr.alter(1, epoch, [proposal(image, [1, 2], 0), proposal(image, [1, 2], 1)])
        now = controller.image
        assert failed and now.topics["t"].partitions[0] != image.topics["t"].partitions[0], "it was read again"
        await controller.acting.isr.alter(1, epoch, [proposal(now, [1, 2], 0)])
        assert controller.image.topics["t"].partitions[0].isr == (1, 2)
        await outside.close()

    play(scenario)
