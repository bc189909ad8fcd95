"""The metadata of a cluster in a real ZooKeeper: the changes of one broker are there for the next one."""

import asyncio
import json
from dataclasses import replace

import pytest

from harness.zookeeper import ZooKeeper
from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.controlling.controller import MorePartitions, NewTopic
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import read_image
from moldau.config import broker_config
from moldau.metadata_store.store import MetadataStore, children_of, node_at
from moldau.runtime import Runtime
from tests.cluster.opening import HERE, SETTINGS
from tests.zookeeper.sessions import OpenSession, play


async def opened(session: MetadataStore, broker_id: int = 1) -> Cluster:
    config, _ = broker_config({**SETTINGS, "node.id": str(broker_id)})
    cluster = await Cluster.open(session, config, Runtime())
    await cluster.registration.register([HERE])
    return cluster


def test_everything_that_was_answered_is_there_for_the_next_broker(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        cluster = await opened(await open_session())
        await cluster.topics.create([NewTopic("a", 3, configs=[("retention.ms", "5")]), NewTopic("b"), NewTopic("c")])
        await cluster.topics.create_partitions([MorePartitions("a", 5)])
        await cluster.configs.alter_broker("1", [Alteration("log.segment.bytes", OpType.SET, "2000000")])
        await cluster.topics.delete([("c", None)])
        first = cluster.producer_ids.next()
        assert not isinstance(first, int)
        assert await first == 0
        before = cluster.image
        await cluster.close()

        cluster = await opened(await open_session())
        assert cluster.image == replace(before, controller_epoch=2, brokers=cluster.image.brokers)
        assert len(cluster.image.topics["a"].partitions) == 5
        following = cluster.producer_ids.next()
        assert not isinstance(following, int)
        assert await following == 1000
        await cluster.close()

    play(single.connect, scenario)


def test_the_tree_is_the_documented_one(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        outside, session = await open_session(), await open_session()
        cluster = await opened(session)
        await cluster.topics.create([NewTopic("a", 2)])

        async def document(path: str) -> object:
            while (node := await outside.read(node_at(path))) is None:
                await asyncio.sleep(0.01)
            return json.loads(node.data)

        assert await document("/brokers/topics/a/partitions/1/state") == {
            "controller_epoch": 1,
            "leader": 1,
            "version": 1,
            "leader_epoch": 0,
            "isr": [1],
        }
        assert await document("/controller_epoch") == 1
        registered = await outside.read(node_at("/brokers/ids/1"))
        assert registered is not None
        assert registered.owner == session.session_id
        assert json.loads(registered.data)["endpoints"] == ["PLAINTEXT://localhost:9092"]
        assert await outside.read(children_of("/")) == [
            "admin", "brokers", "cluster", "config", "consumers", "controller", "controller_epoch",
            "isr_change_notification", "log_dir_event_notification", "moldau",
        ]  # fmt: skip
        await cluster.close()

    play(single.connect, scenario)


def test_a_second_broker_does_not_take_over_from_a_living_controller(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        first = await opened(await open_session())
        with pytest.raises(BrokerConflict, match=r"broker 1 .* is running in this cluster"):
            await opened(await open_session(), 2)
        await first.topics.create([NewTopic("a")])
        await first.close()
        second = await opened(await open_session(), 2)
        assert (second.image.controller_id, second.image.controller_epoch) == (2, 2)
        assert list(second.image.topics) == ["a"]
        await second.close()

    play(single.connect, scenario)


def test_a_topic_that_needs_several_steps_is_created_and_deleted_as_a_whole(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        cluster = await opened(await open_session())
        await cluster.topics.create([NewTopic("wide", 2000)])
        assert len(cluster.image.topics["wide"].partitions) == 2000
        assert (await open_again(open_session)).topics == cluster.image.topics
        await cluster.topics.delete([("wide", None)])
        again = await open_again(open_session)
        assert (again.topics, list(again.deleted.values())) == ({}, ["wide"])
        await cluster.topics.create([NewTopic("wide", 1)])
        await cluster.close()

    async def open_again(open_session: OpenSession) -> Image:
        """What is in the store."""
        session = await open_session()
        image = await session.read(read_image())
        assert image is not None
        return image

    play(single.connect, scenario)
