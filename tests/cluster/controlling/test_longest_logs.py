"""Where all that were in sync may have lost records, the longest log leads, once they are all up."""

import asyncio
import uuid
from functools import partial
from pathlib import Path

from harness.logs import TOPIC_ID, TP, append, config
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.controlling.log_ends import AT_ONCE, answer_with, ends_in, log_ends, request_for, wanted_in
from moldau.cluster.state import layout
from moldau.cluster.state.eligibility import LogEnd
from moldau.cluster.state.image import BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import broker_config
from moldau.handlers.get_replica_log_info import GetReplicaLogInfo
from moldau.log.folders import LogFolders
from moldau.protocol.apis import GET_REPLICA_LOG_INFO
from moldau.runtime import Runtime
from tests.cluster.several import Member, Members, play
from tests.requests.calling import call

TWO = PartitionImage(1, 0, (1, 2), (1, 2))


async def led_by_one(members: Members, *settings: tuple[str, str]) -> Member:
    """Broker 3 is the controller, and a topic `t` on brokers 1 and 2 has min.insync.replicas 2."""
    for number in (3, 1, 2):
        await members.join(number)
    await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
    controller = await members.controller()
    assert controller is members[3]
    configs = [("min.insync.replicas", "2"), *settings]
    await controller.acting.topics.create([NewTopic("t", configs=configs)])
    old = controller.image.topics["t"]
    new = old._replace(partitions=(TWO,))
    steps = [layout.topic_node(new, 0), *layout.topic_changed(old, new, 1)]
    await controller.acting.queue.made(partial(controller.acting.queue.commit, steps))
    return controller


def partition(image: Image) -> PartitionImage:
    return image.topics["t"].partitions[0]


def test_the_longest_log_of_all_that_may_have_lost_records_leads_once_they_are_here() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members)
        for number in (1, 2):
            members.pop(number).die()
        await members.shown(lambda image: list(image.brokers) == [3])
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

    play(scenario)


def test_an_unclean_election_waits_for_nobody() -> None:
    async def scenario(members: Members) -> None:
        controller = await led_by_one(members, ("unclean.leader.election.enable", "true"))
        controller.logs = {1: LogEnd(0, 90)}
        for number in (1, 2):
            members.pop(number).die()
        await members.shown(lambda image: list(image.brokers) == [3])
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
