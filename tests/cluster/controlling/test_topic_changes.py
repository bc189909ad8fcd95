"""Topics created, deleted and made when they are first needed."""

import asyncio
import uuid
from pathlib import Path

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state.image import TopicImage
from moldau.names import OFFSETS_TOPIC
from tests.cluster.opening import open_cluster


def test_the_offsets_topic_is_made_once_with_what_it_needs(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[TopicImage | Refusal], Cluster]:
        cluster = await open_cluster(tmp_path)
        made = await asyncio.gather(*(cluster.topics.ensure_offsets_topic() for _ in range(3)))
        await cluster.close()
        return made, cluster

    made, cluster = asyncio.run(scenario())
    topic = cluster.image.topics[OFFSETS_TOPIC]
    assert made == [topic] * 3
    assert len(topic.partitions) == 3
    config = cluster.metadata.topic_config(OFFSETS_TOPIC)
    assert (config.cleanup_policy, config.segment_bytes) == (("compact",), 104_857_600)
    assert len(topic.partitions[0].replicas) == 1


def test_a_deleted_topic_is_remembered_until_the_disks_have_forgotten_it(tmp_path: Path) -> None:
    async def scenario() -> tuple[uuid.UUID, list[dict[uuid.UUID, str]]]:
        cluster = await open_cluster(tmp_path)
        topic = await cluster.topics.ensure("a")
        assert isinstance(topic, TopicImage)
        await cluster.topics.delete([(None, topic.id)])
        states = [dict(cluster.image.deleted)]
        again = await cluster.topics.ensure("a")
        assert isinstance(again, TopicImage)
        assert again.id != topic.id
        await cluster.topics.forget_deleted([topic.id, again.id])
        states.append(dict(cluster.image.deleted))
        await cluster.close()
        return topic.id, states

    topic_id, states = asyncio.run(scenario())
    assert states == [{topic_id: "a"}, {}]
