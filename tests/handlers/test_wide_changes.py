"""Requests about very many topics that exist: none holds the loop for long.

Thousands of partitions are made for most of them, so those belong to `make check`: fewer would fit into one turn.
"""

import asyncio
from pathlib import Path

import pytest

from harness.patience import stretched
from moldau.cluster.controlling.controller import NewTopic
from moldau.protocol import apis
from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.handlers.living import Living, living
from tests.handlers.longest_turn import answered_in_turns

TOPICS, MANY = 1200, 4000
WAIT_MS = 120_000
NAMES = [f"t-{number}" for number in range(TOPICS)]
OF_TOPIC, OF_GROUP = 2, 32


async def create(alive: Living, topics: list[CreatableTopic]) -> None:
    request = CreateTopicsRequest(topics=topics, timeout_ms=WAIT_MS)
    answer = await answered_in_turns(alive, apis.CREATE_TOPICS, request)
    assert {one.error_code for one in answer.topics} == {0}


def new(name: str, partitions: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)


def alteration(kind: int, name: str, value: str, count: int = TOPICS) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=each,
                configs=[AlterableConfig(name=name, config_operation=0, value=value)],
            )
            for each in NAMES[:count]
        ]
    )


@pytest.mark.check
def test_very_many_topics_are_created_altered_enlarged_and_deleted_in_turns(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asyncio.timeout(stretched(240)), living(tmp_path) as alive:
            await create(alive, [new(name, 1) for name in NAMES])
            altered = await answered_in_turns(
                alive, apis.INCREMENTAL_ALTER_CONFIGS, alteration(OF_TOPIC, "retention.ms", "7")
            )
            assert [(one.resource_name, one.error_code) for one in altered.responses] == [(name, 0) for name in NAMES]
            image = alive.broker.cluster.image
            assert all(image.topics[name].overrides == {"retention.ms": "7"} for name in NAMES)

            more = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in NAMES]
            grown = await answered_in_turns(
                alive, apis.CREATE_PARTITIONS, CreatePartitionsRequest(topics=more, timeout_ms=WAIT_MS)
            )
            assert {one.error_code for one in grown.results} == {0}
            assert all(alive.replica(name, 1).tp == (name, 1) for name in NAMES)

            gone = DeleteTopicsRequest(topic_names=NAMES, timeout_ms=WAIT_MS)
            deleted = await answered_in_turns(alive, apis.DELETE_TOPICS, gone, 5)
            assert {one.error_code for one in deleted.responses} == {0}
            assert not alive.broker.cluster.image.topics
            assert not alive.broker.replicas.hosted
            assert not alive.broker.replicas.names

    asyncio.run(scene())


@pytest.mark.check
def test_a_topic_of_very_many_partitions_is_created_and_deleted_in_turns(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asyncio.timeout(stretched(240)), living(tmp_path) as alive:
            await create(alive, [new("wide", 2500)])
            assert len(alive.broker.replicas.hosted) == 2500
            gone = DeleteTopicsRequest(topic_names=["wide"], timeout_ms=WAIT_MS)
            await answered_in_turns(alive, apis.DELETE_TOPICS, gone, 5)
            assert not alive.broker.replicas.hosted

    asyncio.run(scene())


def test_settings_of_many_groups_and_topics_are_written_in_one_step_each(tmp_path: Path) -> None:
    """Each step makes a new image, which costs as much as there are topics."""
    shown = []

    async def scene() -> None:
        async with asyncio.timeout(stretched(120)), living(tmp_path) as alive:
            await create(alive, [new(name, 1) for name in NAMES[:100]])
            alive.broker.cluster.metadata.subscribe(lambda image, names: shown.append(names))
            wire = await alive.dial()
            for kind, name in ((OF_TOPIC, "retention.ms"), (OF_GROUP, "consumer.session.timeout.ms")):
                request = alteration(kind, name, "46000", 100)
                request.resources[7].configs[0].value = "no number"
                answer = await wire.ask(apis.INCREMENTAL_ALTER_CONFIGS, 1, request)
                assert [bool(one.error_code) for one in answer.responses] == [at == 7 for at in range(100)]

    asyncio.run(scene())
    assert [len(names) for names in shown] == [99, 0]


@pytest.mark.check
def test_members_with_very_many_topics_join_and_are_described_in_turns(tmp_path: Path) -> None:
    names = [f"t-{number}" for number in range(MANY)]

    async def scene() -> None:
        settings = {"offsets_topic_num_partitions": 1, "group_consumer_assignment_interval_ms": 0}
        async with asyncio.timeout(stretched(240)), living(tmp_path, **settings) as alive:
            wire = await alive.dial()
            asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            while (await wire.ask(apis.FIND_COORDINATOR, 6, asked)).coordinators[0].error_code:
                await asyncio.sleep(0.01)
            await alive.broker.cluster.topics.create([NewTopic(name, 1, 1) for name in names])
            shares = []
            for member in ("a", "b"):
                joins = ConsumerGroupHeartbeatRequest(
                    group_id="g",
                    member_id=member,
                    rebalance_timeout_ms=WAIT_MS,
                    subscribed_topic_names=names,
                    topic_partitions=[],
                )
                await wire.ask(apis.CONSUMER_GROUP_HEARTBEAT, 1, joins)  # imports what it needs
                answer = await answered_in_turns(alive, apis.CONSUMER_GROUP_HEARTBEAT, joins)
                assert answer.error_code == 0
                shares.append(len(answer.assignment.topic_partitions))
            assert shares == [MANY, 0]
            describe = ConsumerGroupDescribeRequest(group_ids=["g"])
            described = await answered_in_turns(alive, apis.CONSUMER_GROUP_DESCRIBE, describe)
            first, second = described.groups[0].members
            assert len(first.assignment.topic_partitions) == MANY
            assert len(first.target_assignment.topic_partitions) == MANY // 2
            assert len(second.target_assignment.topic_partitions) == MANY // 2

    asyncio.run(scene())
