"""Where all that were in sync may have lost records, the longest log leads, once they are all up."""

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.logs import TOPIC_ID, TP, HandClock, append, config
from moldau.cluster.controlling.log_ends import (
    AT_ONCE,
    WantedLog,
    answer_with,
    ends_in,
    log_ends,
    request_for,
    wanted_in,
)
from moldau.cluster.state import layout
from moldau.cluster.state.eligibility import LogEnd
from moldau.cluster.state.image import BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import broker_config
from moldau.handlers.between_brokers.get_replica_log_info import GetReplicaLogInfo
from moldau.log.folders.folders import LogFolders
from moldau.metadata_store.store import SessionOver, Set
from moldau.protocol.apis import GET_REPLICA_LOG_INFO
from moldau.runtime import Runtime
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import Member, Members, followed_by, place, play
from tests.requests.calling import call

TWO = PartitionImage(1, 0, (1, 2), (1, 2))


async def led_by_one(members: Members, **settings: str) -> Member:
    """Broker 3 is the controller, and a topic `t` on brokers 1 and 2 has min.insync.replicas 2."""
    for number in (3, 1, 2):
        await members.join(number)
    await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
    controller = await members.controller()
    assert controller is members[3]
    await place(controller, "t", TWO, min_insync_replicas="2", **settings)
    return controller


async def lose_one_and_two(members: Members) -> None:
    for number in (1, 2):
        members.pop(number).die()
    await members.shown(lambda image: list(image.brokers) == [3])


def partition(image: Image) -> PartitionImage:
    return image.topics["t"].partitions[0]


def test_the_longest_log_of_all_that_may_have_lost_records_leads_once_they_are_here() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members)
        asking = asyncio.ensure_future(followed_by(controller, 1, 2, 3))
        await lose_one_and_two(members)
        assert partition(controller.image).elr == (1, 2)
        controller.logs = {1: LogEnd(0, 90)}
        await members.join(1)
        await members.shown(lambda image: partition(image).last_elr == (1,))
        await members.join(2)
        await members.shown(lambda image: partition(image).last_elr == (1, 2))
        assert partition(controller.image).leader == -1, "broker 2 has not answered"
        controller.logs |= {2: LogEnd(1, 80)}
        image = await members.shown(lambda image: partition(image).leader != -1)
        assert (partition(image).leader, partition(image).isr, partition(image).last_elr) == (2, (2,), (1,))
        assert partition(image).leader_epoch > TWO.leader_epoch + 1
        asking.cancel()

    play(scenario)


def test_an_unclean_election_waits_for_nobody() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members, unclean_leader_election_enable="true")
        controller.logs = {1: LogEnd(0, 90)}
        await lose_one_and_two(members)
        assert partition(controller.image).leader == -1
        await members.join(1)
        image = await members.shown(lambda image: partition(image).leader == 1)
        assert (partition(image).isr, partition(image).elr, partition(image).last_elr) == ((1,), (), ())

    play(scenario)


def test_a_broker_tells_how_far_its_logs_go(tmp_path: Path) -> None:
    folders = LogFolders([tmp_path], Runtime())
    asyncio.run(folders.load({TP.topic: TOPIC_ID}, lambda _: config()))
    append(folders.folders[0].create(TP, TOPIC_ID, config()), 5)
    parts = (TWO._replace(leader_epoch=4),) * (TP.partition + 2)
    image = Image("c", 1, {1: BrokerImage(1, (), epoch=17)}).with_topics(
        {TP.topic: TopicImage(TP.topic, TOPIC_ID, parts, {})}
    )
    wanted = [(TOPIC_ID, TP.partition), (TOPIC_ID, TP.partition + 1), (uuid.UUID(int=9), 0), (TOPIC_ID, -1)]
    metadata = MetadataCache(broker_config({"node.id": "1"})[0], image)
    handler = GetReplicaLogInfo(metadata, lambda asked: log_ends(folders, image, asked))
    answer = handler(request_for(1, wanted), call(GET_REPLICA_LOG_INFO, 0))
    [end] = ends_in(answer, 17).items()
    assert (end[0], end[1].offset) == (wanted[0], 5)
    assert answer.topic_partition_log_info_list[0].partition_log_info[0].current_leader_epoch == 4
    assert ends_in(answer, 18) == {}, "it has registered again"
    folders.close(clean=False)


def test_an_answer_has_a_thousand_logs_at_most() -> None:
    wanted = [(TOPIC_ID, number) for number in range(AT_ONCE + 1)]
    assert wanted_in(request_for(1, wanted)) == wanted
    answer = answer_with(1, Image("c"), wanted, {})
    assert answer.has_more_data
    assert len(answer.topic_partition_log_info_list[0].partition_log_info) == AT_ONCE
    assert ends_in(answer, 1) == {}


def test_a_broker_that_has_gone_during_a_contest_is_not_elected() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members, unclean_leader_election_enable="true")
        go_on = asyncio.Event()

        async def slow(broker_id: int, epoch: int, wanted: Sequence[WantedLog]) -> dict[WantedLog, LogEnd]:
            if broker_id == 2:
                await go_on.wait()
                return dict.fromkeys(wanted, LogEnd(0, 80))
            return dict.fromkeys(wanted, LogEnd(0, 90))

        controller.acting.longest_logs._ask = slow
        asking = asyncio.ensure_future(followed_by(controller, 2, 3))
        await lose_one_and_two(members)
        # No contest before both are here.
        controller.acting.longest_logs.deciding = asyncio.ensure_future(asyncio.sleep(1000))
        await members.join(1)
        await members.join(2)
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3] and partition(image).last_elr == (1, 2))
        controller.acting.longest_logs.deciding = None
        controller.acting.look_at_brokers()
        await asyncio.sleep(1)
        members.pop(1).die()
        await members.shown(lambda image: list(image.brokers) == [2, 3])
        go_on.set()

        await asyncio.sleep(60)
        asking.cancel()
        assert partition(controller.image).leader == 2, partition(controller.image)

    play(scenario)


def test_a_defect_of_a_contest_is_named_and_it_is_tried_again_each_second(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members)
        asked: list[int] = []

        async def explode(broker_id: int, epoch: int, wanted: Sequence[WantedLog]) -> dict[WantedLog, LogEnd]:
            asked.append(broker_id)
            raise ZeroDivisionError("a defect")

        controller.acting.longest_logs._ask = explode
        await lose_one_and_two(members)
        await members.join(1)
        await members.join(2)
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3] and partition(image).last_elr == (1, 2))
        before = len(asked)
        await asyncio.sleep(10)
        assert 10 <= len(asked) - before <= 2 * 11
        assert any("electing the replica with the longest log failed" in line for line in caplog.messages)

    play(scenario)


def test_a_state_that_cannot_be_read_keeps_no_other_partition_without_a_leader() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members)
        await place(controller, "u", TWO, min_insync_replicas="2")
        await lose_one_and_two(members)
        for number in (1, 2):
            await members.join(number)
        await members.shown(lambda image: all(image.topics[name].partitions[0].last_elr == (1, 2) for name in "tu"))
        asking = asyncio.ensure_future(followed_by(controller, 1, 2, 3))
        outside, path = ModelSession(members.store), layout.state_path("t", 0)
        whole = members.store.nodes[path].data
        await outside.multi([Set(path, b"garbage")])
        controller.logs = {1: LogEnd(0, 90), 2: LogEnd(1, 80)}
        await members.shown(lambda image: image.topics["u"].partitions[0].leader == 2)
        assert partition(controller.image).leader == -1
        await outside.multi([Set(path, whole)])
        await members.shown(lambda image: partition(image).leader == 2)
        asking.cancel()
        await outside.close()

    play(scenario)


def test_a_controller_that_failed_as_it_began_a_contest_holds_it_later() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members)
        await lose_one_and_two(members)
        acting, failed = controller.acting, list[int]()
        look = acting._balance.look

        def session_over(*asked: Any) -> Any:
            if not failed and acting.longest_logs.deciding is not None:
                failed.append(1)
                raise SessionOver("it is over")
            return look(*asked)

        acting._balance.look = session_over  # type: ignore[method-assign]
        for number in (1, 2):
            (await members.join(number)).acting.leave()  # they never are the controller
        while not failed:
            await asyncio.sleep(0.1)
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        asking = asyncio.ensure_future(followed_by(controller, 1, 2, 3))
        controller.logs = {1: LogEnd(0, 90), 2: LogEnd(1, 80)}
        await members.shown(lambda image: partition(image).leader == 2)
        asking.cancel()

    play(scenario)


def test_the_end_of_a_log_before_a_power_loss_decides_nothing_after_it() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members)
        go_on = asyncio.Event()
        ends = {1: 90, 2: 80}

        async def slow(broker_id: int, epoch: int, wanted: Sequence[WantedLog]) -> dict[WantedLog, LogEnd]:
            if broker_id == 2:
                await go_on.wait()
            return dict.fromkeys(wanted, LogEnd(0, ends[broker_id]))

        controller.acting.longest_logs._ask = slow
        await lose_one_and_two(members)
        await members.join(1)
        await members.join(2)
        image = await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        epoch = image.brokers[1].epoch
        await asyncio.sleep(1)
        await members[1].membership.close()
        ends[1] = 70  # the machine has lost power once more
        await members.join(1)
        await members.shown(lambda image: 1 in image.brokers and image.brokers[1].epoch > epoch)
        go_on.set()
        image = await members.shown(lambda image: partition(image).leader != -1)
        assert partition(image).leader == 2, partition(image)

    play(scenario)


def test_a_log_whose_records_were_all_deleted_ends_in_the_epoch_of_the_last_one(tmp_path: Path) -> None:
    folders = LogFolders([tmp_path], Runtime(clock=HandClock()))
    asyncio.run(folders.load({TP.topic: TOPIC_ID}, lambda _: config()))
    log = folders.folders[0].create(TP, TOPIC_ID, config())
    append(log, 5, leader_epoch=4)
    log.delete_records_before(5)
    parts = (PartitionImage(1, 4, (1, 2), (1,)),) * (TP.partition + 1)
    image = Image("c").with_topics({TP.topic: TopicImage(TP.topic, TOPIC_ID, parts, {})})
    wanted = (TOPIC_ID, TP.partition)
    ends = log_ends(folders, image, [wanted])
    folders.close(clean=False)
    assert ends[wanted] > LogEnd(3, 2), "a replica that was left behind has less"
