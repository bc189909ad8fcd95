"""DescribeTopicPartitions page by page, as a client goes on with the cursors it is given. (Single answers are compared
with Kafka's in tests/differential.)"""

import uuid
from pathlib import Path

from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import broker_config
from moldau.handlers.topics.topic_partitions import DescribeTopicPartitions
from moldau.protocol.apis import DESCRIBE_TOPIC_PARTITIONS
from moldau.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from moldau.turns import turn
from tests.handlers.living import Living, run
from tests.requests.calling import call

PARTITIONS = {"b": 1, "a": 5, "c": 3}


def test_following_the_cursors_one_sees_each_partition_once_and_in_order(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        for name, count in PARTITIONS.items():
            await alive.make(name, count)
        wire = await alive.dial()
        for named in ([], list(PARTITIONS)):
            cursor, seen, pages = None, [], 0
            while pages == 0 or cursor is not None:
                request = DescribeTopicPartitionsRequest(
                    topics=[TopicRequest(name=name) for name in named], response_partition_limit=2, cursor=cursor
                )
                page = await wire.ask(DESCRIBE_TOPIC_PARTITIONS, 0, request)
                found = [(topic.name, part.partition_index) for topic in page.topics for part in topic.partitions]
                assert 1 <= len(found) <= 2
                seen += found
                following = page.next_cursor
                cursor = following and Cursor(
                    topic_name=following.topic_name, partition_index=following.partition_index
                )
                pages += 1
            assert seen == [(name, number) for name in sorted(PARTITIONS) for number in range(PARTITIONS[name])]
            assert pages == 5

    run(scenario, tmp_path)


def test_one_answer_has_no_more_partitions_than_the_broker_gives(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 5)
        wire = await alive.dial()
        page = await wire.ask(DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest())
        assert [part.partition_index for part in page.topics[0].partitions] == [0, 1, 2]
        assert (page.next_cursor.topic_name, page.next_cursor.partition_index) == ("a", 3)

    run(scenario, tmp_path, max_request_partition_size_limit=3)


def test_eligible_leaders_and_the_last_ones_are_shown() -> None:
    broker = BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "h", 1),))
    part = PartitionImage(1, 3, (1, 2, 3), (1,), elr=(2,), last_elr=(3,))
    image = Image("c", 1, {1: broker}).with_topics({"t": TopicImage("t", uuid.UUID(int=1), (part,), {})})
    describe = DescribeTopicPartitions(MetadataCache(broker_config({"node.id": "1"})[0], image))
    steps = turn(describe(DescribeTopicPartitionsRequest(), call(DESCRIBE_TOPIC_PARTITIONS, 0)))
    [found] = steps.topics[0].partitions
    assert (found.isr_nodes, found.eligible_leader_replicas, found.last_known_elr) == ([1], [2], [3])
    assert found.offline_replicas == [2, 3]
