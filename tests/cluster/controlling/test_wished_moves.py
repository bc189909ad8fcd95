"""Partitions move as Kafka 2.8's tools with `--zookeeper` have written it, and the tools see when that has ended."""

import asyncio

from moldau.cluster.controlling import wishes
from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.state.isr_changes import ProposedIsr
from moldau.cluster.state.move_throttles import LEADERS, RATES
from moldau.cluster.state.reassignment import is_under_way
from moldau.metadata_store.store import node_at
from moldau.names import TopicPartition
from tests.cluster.controlling.tools import created, gone, topic, two
from tests.cluster.several import Members, play


def test_a_partition_moves_as_a_tool_has_written_it_which_sees_when_that_has_ended() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await tool.multi(topic("t", [1]))
        await members.shown(lambda image: "t" in image.topics)
        plan = {"partitions": [{"topic": "t", "partition": 0, "replicas": [2]}]}
        await tool.multi([created(wishes.REASSIGNMENT, version=1, **plan)])
        image = await members.shown(lambda image: is_under_way(image.topics["t"].partitions[0]))
        part = image.topics["t"].partitions[0]
        assert part.replicas == (2, 1)
        await asyncio.sleep(2)
        assert await tool.read(node_at(wishes.REASSIGNMENT)) is not None
        isr = tuple((one, image.brokers[one].epoch) for one in (1, 2))
        proposed = ProposedIsr(image.topics["t"].id, 0, part.leader_epoch, part.partition_epoch, isr)
        await controller.acting.isr.alter(1, image.brokers[1].epoch, [proposed])
        await gone(tool, wishes.REASSIGNMENT)
        await members.shown(lambda image: image.topics["t"].partitions[0].replicas == (2,))
        await tool.close()

    play(scenario)


def test_a_move_that_is_cancelled_is_not_begun_again_by_what_the_tool_has_written() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await tool.multi(topic("t", [1]))
        await members.shown(lambda image: "t" in image.topics)
        plan = {"partitions": [{"topic": "t", "partition": 0, "replicas": [2]}]}
        await tool.multi([created(wishes.REASSIGNMENT, version=1, **plan)])
        await members.shown(lambda image: is_under_way(image.topics["t"].partitions[0]))
        assert await controller.acting.topics.reassign([(TopicPartition("t", 0), None)]) == [None]
        await gone(tool, wishes.REASSIGNMENT)
        assert controller.image.topics["t"].partitions[0].replicas == (1,)
        await tool.close()

    play(scenario)


def test_what_a_tool_has_throttled_for_a_partition_that_stays_where_it_is_goes_at_once() -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await two(members)
        await tool.multi(topic("t", [1]))
        await members.shown(lambda image: "t" in image.topics)
        configs = controller.acting.configs
        assert await configs.alter_topics([("t", [Alteration(LEADERS, OpType.SET, "0:1")])]) == [None]
        assert await configs.alter_broker("1", [Alteration(name, OpType.SET, "9") for name in RATES]) is None
        plan = {"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}
        await tool.multi([created(wishes.REASSIGNMENT, version=1, **plan)])
        await gone(tool, wishes.REASSIGNMENT)
        image = controller.image
        assert LEADERS not in image.topics["t"].overrides and RATES.isdisjoint(image.broker_overrides["1"])
        await tool.close()

    play(scenario)
