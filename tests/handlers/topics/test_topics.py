"""CreateTopics, DeleteTopics and CreatePartitions over the wire, in every version."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.config import OURS, TOPIC_SETTINGS
from moldau.errors import ErrorCode, StorageError
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.protocol.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.cluster.opening import open_cluster
from tests.handlers.asking import Asker

Scenario = Callable[[Cluster, Asker], Awaitable[Any]]


def play(folder: Path, scenario: Scenario, **settings: str) -> Any:
    async def whole() -> Any:
        cluster = await open_cluster(folder, {name.replace("_", "."): value for name, value in settings.items()})
        try:
            return await scenario(cluster, Asker(cluster))
        finally:
            await cluster.close()

    return asyncio.run(whole())


def creation(*names: str, partitions: int = 1, timeout_ms: int = 1000, **more: Any) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, **more)


def codes(results: Any) -> list[tuple[str | None, ErrorCode]]:
    return [(result.name, ErrorCode(result.error_code)) for result in results]


@pytest.mark.parametrize("version", range(CREATE_TOPICS.low, CREATE_TOPICS.high + 1))
def test_topics_are_made_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = creation("a", "a b", partitions=3)
        request.topics[0].configs = [CreatableTopicConfig(name="retention.ms", value="5")]
        return cluster, await asker.ask(CREATE_TOPICS, version, request)

    cluster, response = play(tmp_path, scenario)
    assert codes(response.topics) == [("a", ErrorCode.NONE), ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION)]
    assert len(cluster.image.topics["a"].partitions) == 3
    made, refused = response.topics
    assert (made.error_message, bool(refused.error_message)) == (None, True)
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (3, 1)
        assert [one.name for one in made.configs] == sorted(TOPIC_SETTINGS.keys() - set(OURS))
        assert {one.name: (one.value, one.config_source) for one in made.configs}["retention.ms"] == ("5", 1)
        assert (refused.configs, refused.num_partitions, refused.replication_factor) == ([], -1, -1)
    if version >= 7:
        assert made.topic_id == cluster.image.topics["a"].id
        assert refused.topic_id.int == 0


def test_a_topic_that_is_only_validated_is_not_made(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return cluster, await asker.ask(CREATE_TOPICS, 7, creation("a", validate_only=True))

    cluster, response = play(tmp_path, scenario)
    assert codes(response.topics) == [("a", ErrorCode.NONE)]
    assert cluster.image.topics == {}


def test_replicas_may_be_assigned_by_hand(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        assignments = [CreatableReplicaAssignment(partition_index=number, broker_ids=[1]) for number in (1, 0)]
        topic = CreatableTopic(name="a", num_partitions=-1, replication_factor=-1, assignments=assignments)
        return await asker.ask(CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))

    (made,) = play(tmp_path, scenario).topics
    assert (made.error_code, made.num_partitions) == (0, 2)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_without_time_does_nothing(tmp_path: Path, timeout_ms: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await asker.ask(CREATE_TOPICS, 7, creation("there"))
        grow = CreatePartitionsTopic(name="there", count=2, assignments=None)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="there")], timeout_ms=timeout_ms)
        replies = [
            (await asker.ask(CREATE_TOPICS, 7, creation("a", timeout_ms=timeout_ms))).topics,
            (
                await asker.ask(CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[grow], timeout_ms=timeout_ms))
            ).results,
            (await asker.ask(DELETE_TOPICS, 6, deletion)).responses,
        ]
        return cluster, replies

    cluster, replies = play(tmp_path, scenario)
    assert [ErrorCode(reply[0].error_code) for reply in replies] == [ErrorCode.REQUEST_TIMED_OUT] * 3
    assert {name: len(topic.partitions) for name, topic in cluster.image.topics.items()} == {"there": 1}


def test_what_a_request_has_wrong_in_itself_is_said_even_without_time(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        grow = CreatePartitionsTopic(name="a", count=2, assignments=None)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState()], timeout_ms=0)
        return [
            (await asker.ask(CREATE_TOPICS, 7, creation("a", "a", timeout_ms=0))).topics,
            (await asker.ask(CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[grow, grow]))).results,
            (await asker.ask(DELETE_TOPICS, 6, deletion)).responses,
        ]

    assert [[reply[0].error_code] for reply in play(tmp_path, scenario)] == [[ErrorCode.INVALID_REQUEST]] * 3


@pytest.mark.parametrize("version", range(DELETE_TOPICS.low, DELETE_TOPICS.high + 1))
def test_topics_are_deleted_by_name_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await asker.ask(CREATE_TOPICS, 7, creation("a", "b"))
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name="a"), DeleteTopicState(name="c")], topic_names=["a", "c"], timeout_ms=1000
        )
        return cluster, await asker.ask(DELETE_TOPICS, version, request)

    cluster, response = play(tmp_path, scenario)
    assert codes(response.responses) == [("a", ErrorCode.NONE), ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert list(cluster.image.topics) == ["b"]


def test_a_topic_is_deleted_by_id_and_the_answer_has_both(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await asker.ask(CREATE_TOPICS, 7, creation("a"))
        topic_id = cluster.image.topics["a"].id
        topics = [DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=uuid.UUID(int=9))]
        return topic_id, await asker.ask(DELETE_TOPICS, 6, DeleteTopicsRequest(topics=topics, timeout_ms=1000))

    topic_id, response = play(tmp_path, scenario)
    assert [(one.name, one.topic_id, one.error_code) for one in response.responses] == [
        ("a", topic_id, ErrorCode.NONE),
        (None, uuid.UUID(int=9), ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deleting_may_be_switched_off(tmp_path: Path, version: int, code: ErrorCode) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(DELETE_TOPICS, version, DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000))

    assert codes(play(tmp_path, scenario, delete_topic_enable="false").responses) == [("a", code)]


@pytest.mark.parametrize("version", range(CREATE_PARTITIONS.low, CREATE_PARTITIONS.high + 1))
def test_partitions_are_added_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await asker.ask(CREATE_TOPICS, 7, creation("a", "b"))
        topics = [
            CreatePartitionsTopic(name="a", count=3, assignments=None),
            CreatePartitionsTopic(name="b", count=2, assignments=[CreatePartitionsAssignment(broker_ids=[1])]),
            CreatePartitionsTopic(name="c", count=3, assignments=None),
        ]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=1000)
        checked = await asker.ask(
            CREATE_PARTITIONS, version, CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=True)
        )
        assert [len(topic.partitions) for topic in cluster.image.topics.values()] == [1, 1]
        done = await asker.ask(CREATE_PARTITIONS, version, request)
        assert [len(topic.partitions) for topic in cluster.image.topics.values()] == [3, 2]
        return checked, done

    checked, done = play(tmp_path, scenario)
    expected = [("a", ErrorCode.NONE), ("b", ErrorCode.NONE), ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert codes(checked.results) == codes(done.results) == expected


def test_a_store_that_cannot_write_is_a_storage_error_for_each_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await asker.ask(CREATE_TOPICS, 7, creation("there"))

        def full(*_: object) -> None:
            raise StorageError("the disk is full")

        monkeypatch.setattr(EmbeddedStore, "multi", full)
        grow = CreatePartitionsTopic(name="there", count=2, assignments=None)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="there")], timeout_ms=1000)
        replies = [
            (await asker.ask(CREATE_TOPICS, 7, creation("a"))).topics,
            (await asker.ask(CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[grow], timeout_ms=1000))).results,
            (await asker.ask(DELETE_TOPICS, 6, deletion)).responses,
        ]
        return cluster, replies

    cluster, replies = play(tmp_path, scenario)
    assert [ErrorCode(reply[0].error_code) for reply in replies] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert list(cluster.image.topics) == ["there"]
