"""Topics whose metadata nobody can read: they are named, left out, and their names stay taken."""

import asyncio

import pytest

from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.state.image import NO_LEADER
from moldau.errors import ErrorCode
from moldau.metadata_store.store import Set, node_at
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.controlling.test_acting import leaders, three
from tests.cluster.several import Members, play


@pytest.mark.parametrize(
    ("path", "garbage"),
    [
        ("/brokers/topics/a", b"garbage"),
        ("/brokers/topics/a", b'{"partitions": 7}'),
        ("/brokers/topics/a/partitions/1/state", b""),
        ("/config/topics/a", b"[]"),
    ],
)
def test_a_topic_that_nobody_can_read_is_named_and_left_out_until_it_can_be_read(
    path: str, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(members: Members) -> None:
        controller, tool = await three(members), ModelSession(members.store, 600)
        await controller.acting.topics.create([NewTopic("a", 3), NewTopic("b", 3), NewTopic("c")])
        before = controller.image
        await controller.acting.topics.delete([("c", None)])
        node = await tool.read(node_at(path))
        assert node is not None
        controller.die()
        del members[controller.broker_id]
        await tool.multi([Set(path, garbage)])
        image = await members.shown(lambda image: controller.broker_id not in image.brokers)
        assert list(image.topics) == ["b"]
        assert f"topic a is not served until its metadata can be read (its data is kept): the metadata at {path}" in (
            caplog.text
        )
        topics = (await members.controller()).acting.topics
        await topics.create_partitions([MorePartitions("b", 4)])
        [(_, refusal)] = await topics.create([NewTopic("a")])
        assert refusal == Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, "topic a exists, but its metadata cannot be read")
        await asyncio.sleep(10)  # less than `replica.lag.time.max.ms`: these brokers ask the controller for nothing
        assert await tool.read(node_at("/brokers/topics/a/partitions/0/state")) is not None
        await tool.multi([Set(path, node.data)])
        image = await members.shown(lambda image: "a" in image.topics)
        assert image.topics["a"].id == before.topics["a"].id
        assert [part.leader_epoch for part in image.topics["a"].partitions] == [0, 0, 0]
        image = await members.shown(lambda image: NO_LEADER in leaders(image.topics["a"]))
        assert controller.broker_id not in leaders(image.topics["a"])
        await tool.close()

    play(scenario)
