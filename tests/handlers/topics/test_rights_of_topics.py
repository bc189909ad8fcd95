"""CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords for clients that may not do everything."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import NewTopic
from moldau.errors import ErrorCode
from moldau.handlers.rights import RIGHTS
from moldau.handlers.topics.delete_records import DeleteRecords
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_RECORDS, DELETE_TOPICS, PRODUCE
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.requests.access import (
    ALTER_TOPIC,
    CLUSTER_NAME,
    CREATE_IN_CLUSTER,
    CREATE_TOPIC,
    DELETE_IN_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    Right,
)
from moldau.runtime import Runtime
from moldau.turns import Turns
from tests.cluster.opening import open_cluster
from tests.handlers.asking import Asker, ask, rights_asked
from tests.handlers.living import Living, batch, produce, run
from tests.requests.calling import Denying

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DOUBLED = ErrorCode.INVALID_REQUEST
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOBODY, NO_ID = uuid.UUID(int=5), uuid.UUID(int=0)
Scenario = Callable[[Cluster, Asker], Awaitable[Any]]


def play(folder: Path, scenario: Scenario) -> Any:
    async def whole() -> Any:
        cluster = await open_cluster(folder)
        await cluster.topics.create([NewTopic("a", 1), NewTopic("b", 1)])
        try:
            return await scenario(cluster, Asker(cluster))
        finally:
            await cluster.close()

    return asyncio.run(whole())


def without_cluster(right: Right, *denied: tuple[Right, str]) -> Denying:
    """A client that has no such right on the cluster, and lacks the others on topics."""
    return Denying((right, CLUSTER_NAME), *denied)


def codes(results: Any) -> list[tuple[str | None, int]]:
    return [(result.name, result.error_code) for result in results]


def creation(*names: str, **more: Any) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, **more)


@pytest.mark.parametrize("version", [CREATE_TOPICS.low, 5, CREATE_TOPICS.high])
def test_topics_are_created_by_a_right_on_each_and_those_denied_come_last(tmp_path: Path, version: int) -> None:
    client = without_cluster(CREATE_IN_CLUSTER, *((CREATE_TOPIC, name) for name in ("a", "new", "twice", "not a name")))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = creation("new", "a", "twice", "made", "not a name", "twice")
        response = await asker.ask(CREATE_TOPICS, version, request, authorizer=client)
        return set(cluster.image.topics), response

    there, response = play(tmp_path, scenario)
    hidden = ["new", "a", "not a name"]
    assert codes(response.topics) == [("made", 0), ("twice", DOUBLED), *((name, DENIED) for name in hidden)]
    assert there == {"a", "b", "made"}
    for topic in response.topics[2:]:
        assert (topic.error_message, topic.topic_id) == ("Authorization failed.", NO_ID)
        assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, [])
    assert client.logged == [(CREATE_TOPIC, name) for name in hidden]
    assert (CREATE_TOPIC, "twice") not in client.asked


def test_a_right_on_the_cluster_creates_any_topic(tmp_path: Path) -> None:
    client = Denying((CREATE_TOPIC, "*"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(CREATE_TOPICS, 7, creation("c"), authorizer=client)

    assert codes(play(tmp_path, scenario).topics) == [("c", 0)]
    assert client.asked == [(CREATE_IN_CLUSTER, CLUSTER_NAME), (DESCRIBE_TOPIC_CONFIGS, "c")]


@pytest.mark.parametrize("version", [CREATE_TOPICS.low, 5, CREATE_TOPICS.high])
def test_a_topic_is_created_without_telling_settings_that_may_not_be_described(tmp_path: Path, version: int) -> None:
    client = Denying((DESCRIBE_TOPIC_CONFIGS, "c"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        response = await asker.ask(CREATE_TOPICS, version, creation("c", "d"), authorizer=client)
        return cluster.image.topics["c"], response.topics

    topic, (blank, told) = play(tmp_path, scenario)
    assert (blank.error_code, blank.error_message, len(topic.partitions)) == (0, None, 3)
    assert (blank.num_partitions, blank.replication_factor, blank.configs) == (-1, -1, [])
    if version >= 5:
        assert (blank.topic_config_error_code, told.topic_config_error_code) == (DENIED, 0)
        assert (told.num_partitions, told.replication_factor, bool(told.configs)) == (3, 1, True)
    if version >= 7:
        assert blank.topic_id == topic.id
    assert client.logged == []


def test_what_is_denied_is_said_even_without_time(tmp_path: Path) -> None:
    late = ErrorCode.REQUEST_TIMED_OUT
    grown = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("a", "b")]
    deleted = [DeleteTopicState(name=name) for name in ("a", "b")]

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        client = without_cluster(CREATE_IN_CLUSTER, (CREATE_TOPIC, "c"), (ALTER_TOPIC, "a"))
        made = await asker.ask(CREATE_TOPICS, 7, creation("c", "d", timeout_ms=0), authorizer=client)
        request = CreatePartitionsRequest(topics=grown, timeout_ms=0)
        larger = await asker.ask(CREATE_PARTITIONS, 3, request, authorizer=client)
        client = without_cluster(DELETE_IN_CLUSTER, (DELETE_TOPIC, "a"))
        request = DeleteTopicsRequest(topics=deleted, timeout_ms=0)
        gone = await asker.ask(DELETE_TOPICS, 6, request, authorizer=client)
        return codes(made.topics), codes(larger.results), codes(gone.responses)

    made, larger, gone = play(tmp_path, scenario)
    assert made == [("d", late), ("c", DENIED)]
    assert larger == gone == [("b", late), ("a", DENIED)]


def test_create_topics_asks_for_the_rights_of_its_line(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        parts, numbers = RIGHTS[CREATE_TOPICS].parts, count()
        asked = await rights_asked(
            lambda one: asker.ask(CREATE_TOPICS, 7, creation(f"new-{next(numbers)}"), authorizer=one), parts
        )
        assert asked == {*parts}

    play(tmp_path, scenario)


def deletion(*topics: str | uuid.UUID) -> DeleteTopicsRequest:
    """By names or ids."""
    return DeleteTopicsRequest(
        topics=[
            DeleteTopicState(name=one) if isinstance(one, str) else DeleteTopicState(topic_id=one) for one in topics
        ],
        topic_names=[one for one in topics if isinstance(one, str)],
        timeout_ms=1000,
    )


@pytest.mark.parametrize("version", [DELETE_TOPICS.low, 4, 5, DELETE_TOPICS.high])
def test_by_name_a_topic_that_may_not_be_described_looks_the_same_whether_it_exists_or_not(
    tmp_path: Path, version: int
) -> None:
    client = without_cluster(DELETE_IN_CLUSTER, (DESCRIBE_TOPIC, "a"), (DESCRIBE_TOPIC, "gone"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        response = await asker.ask(DELETE_TOPICS, version, deletion("gone", "a", "b", "c"), authorizer=client)
        return set(cluster.image.topics), response.responses

    there, responses = play(tmp_path, scenario)
    assert codes(responses) == [("b", 0), ("c", UNKNOWN), ("gone", DENIED), ("a", DENIED)]
    assert there == {"a"}
    assert {one.topic_id for one in responses[1:]} == {NO_ID}
    assert {one.error_message for one in responses[2:]} == {DENIED.sentence if version >= 5 else None}
    assert client.logged == [(DESCRIBE_TOPIC, "gone"), (DESCRIBE_TOPIC, "a")]


@pytest.mark.parametrize("version", [DELETE_TOPICS.low, 4, DELETE_TOPICS.high])
def test_by_name_a_topic_that_may_be_described_and_not_deleted_is_denied_only_if_it_exists(
    tmp_path: Path, version: int
) -> None:
    client = without_cluster(DELETE_IN_CLUSTER, (DELETE_TOPIC, "*"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        response = await asker.ask(DELETE_TOPICS, version, deletion("c", "a"), authorizer=client)
        return set(cluster.image.topics), response.responses

    there, responses = play(tmp_path, scenario)
    assert codes(responses) == [("c", UNKNOWN), ("a", DENIED)]
    assert there == {"a", "b"}
    assert client.asked[1:3] == [(DESCRIBE_TOPIC, "c"), (DELETE_TOPIC, "c")]


def test_a_topic_that_is_created_after_the_client_was_judged_is_not_deleted(tmp_path: Path) -> None:
    client = without_cluster(DELETE_IN_CLUSTER, (DELETE_TOPIC, "c"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        making = asyncio.ensure_future(cluster.topics.create([NewTopic("c", 1)]))
        await asyncio.sleep(0)
        assert "c" not in cluster.image.topics
        response = await asker.ask(DELETE_TOPICS, 6, deletion("c", "b"), authorizer=client)
        await making
        return set(cluster.image.topics), response.responses

    there, responses = play(tmp_path, scenario)
    assert there == {"a", "c"}
    assert dict(codes(responses))["b"] == 0


@pytest.mark.parametrize("describes", [True, False])
def test_by_id_a_topic_that_may_not_be_deleted_is_denied_and_named_only_to_who_may_describe_it(
    tmp_path: Path, describes: bool
) -> None:
    client = without_cluster(DELETE_IN_CLUSTER, (DELETE_TOPIC, "a"), *(() if describes else [(DESCRIBE_TOPIC, "*")]))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        first, second = (cluster.image.topics[name].id for name in ("a", "b"))
        response = await asker.ask(DELETE_TOPICS, 6, deletion(first, NOBODY, second), authorizer=client)
        return first, set(cluster.image.topics), response.responses

    hidden, there, responses = play(tmp_path, scenario)
    assert codes(responses) == [
        (None, ErrorCode.UNKNOWN_TOPIC_ID), ("b", 0), ("a" if describes else None, DENIED)
    ]  # fmt: skip
    assert responses[-1].topic_id == hidden
    assert there == {"a"}
    assert client.logged == [(DELETE_TOPIC, "a")]


def test_who_may_not_delete_a_topic_does_not_learn_that_a_name_and_an_id_are_the_same_topic(tmp_path: Path) -> None:
    client = without_cluster(DELETE_IN_CLUSTER, (DESCRIBE_TOPIC, "a"), (DELETE_TOPIC, "a"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        topic_id = cluster.image.topics["a"].id
        found = [
            await asker.ask(DELETE_TOPICS, 6, deletion(*asked), authorizer=client)
            for asked in (("a", topic_id), ("a", "a", topic_id), ("a", topic_id, topic_id))
        ]
        return topic_id, [[(one.name, one.topic_id, one.error_code) for one in one.responses] for one in found]

    topic_id, (once, name_doubled, id_doubled) = play(tmp_path, scenario)
    assert once == [("a", NO_ID, DENIED), (None, topic_id, DENIED)]
    assert name_doubled == [("a", NO_ID, DOUBLED), (None, topic_id, DENIED)]
    assert id_doubled == [(None, topic_id, DOUBLED), ("a", NO_ID, DENIED)]


def test_what_a_deletion_has_wrong_in_itself_comes_before_rights(tmp_path: Path) -> None:
    client = without_cluster(DELETE_IN_CLUSTER, (DESCRIBE_TOPIC, "*"), (DELETE_TOPIC, "*"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        topics = [DeleteTopicState(), DeleteTopicState(name="a", topic_id=NOBODY), *deletion("b", "b").topics]
        request = DeleteTopicsRequest(topics=topics, timeout_ms=1000)
        return await asker.ask(DELETE_TOPICS, 6, request, authorizer=client)

    assert codes(play(tmp_path, scenario).responses) == [(None, DOUBLED), ("a", DOUBLED), ("b", DOUBLED)]
    assert client.logged == []


def test_a_right_on_the_cluster_deletes_any_topic(tmp_path: Path) -> None:
    client = Denying((DESCRIBE_TOPIC, "*"), (DELETE_TOPIC, "*"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(DELETE_TOPICS, 6, deletion("a", cluster.image.topics["b"].id), authorizer=client)

    assert codes(play(tmp_path, scenario).responses) == [("a", 0), ("b", 0)]
    assert client.asked == [(DELETE_IN_CLUSTER, CLUSTER_NAME)]


def test_delete_topics_asks_for_the_rights_of_its_line(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        parts = RIGHTS[DELETE_TOPICS].parts
        asked = await rights_asked(lambda one: asker.ask(DELETE_TOPICS, 6, deletion("c"), authorizer=one), parts)
        assert asked == {*parts}

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [CREATE_PARTITIONS.low, 1, CREATE_PARTITIONS.high])
def test_partitions_are_added_to_topics_that_may_be_altered(tmp_path: Path, version: int) -> None:
    client = Denying(*((ALTER_TOPIC, name) for name in ("a", "gone", "twice")))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        names = ("gone", "a", "twice", "b", "c", "twice")
        topics = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=1000)
        response = await asker.ask(CREATE_PARTITIONS, version, request, authorizer=client)
        return {name: len(topic.partitions) for name, topic in cluster.image.topics.items()}, response.results

    there, results = play(tmp_path, scenario)
    assert codes(results) == [("twice", DOUBLED), ("b", 0), ("c", UNKNOWN), ("gone", DENIED), ("a", DENIED)]
    assert [one.error_message for one in results[3:]] == [None, None]
    assert there == {"a": 1, "b": 2}
    assert client.logged == [(ALTER_TOPIC, "gone"), (ALTER_TOPIC, "a")]
    assert {right for right, _ in client.asked} == {*RIGHTS[CREATE_PARTITIONS].parts}
    assert (ALTER_TOPIC, "twice") not in client.asked


@pytest.mark.parametrize("version", range(DELETE_RECORDS.low, DELETE_RECORDS.high + 1))
def test_records_are_deleted_from_topics_that_may_be_deleted(tmp_path: Path, version: int) -> None:
    hidden = ["gone", "a", OFFSETS_TOPIC]
    client = Denying(*((DELETE_TOPIC, name) for name in hidden))

    async def scenario(alive: Living) -> None:
        for name in ("a", "b"):
            await alive.make(name)
            await (await alive.dial()).ask(PRODUCE, 9, produce((name, 0, batch(b"0", b"1"))))
        await alive.broker.cluster.topics.ensure_offsets_topic()
        handler = DeleteRecords(alive.broker.replicas, lambda: alive.broker.cluster.image, Turns(Runtime()))
        parts = [DeleteRecordsPartition(partition_index=number, offset=1) for number in (0, 1)]
        topics = [DeleteRecordsTopic(name=name, partitions=parts) for name in (*hidden, "b")]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=1000)
        response = await ask(handler, DELETE_RECORDS, version, request, authorizer=client)
        found = {
            topic.name: [(one.partition_index, one.error_code, one.low_watermark) for one in topic.partitions]
            for topic in response.topics
        }
        assert found == {
            **{name: [(0, DENIED, -1), (1, DENIED, -1)] for name in hidden}, "b": [(0, 0, 1), (1, UNKNOWN, -1)]
        }  # fmt: skip
        assert [alive.replica(name).log.log_start_offset for name in ("a", "b")] == [0, 1]
        assert client.asked == [(DELETE_TOPIC, name) for name in (*hidden, "b")]
        assert client.logged == [(DELETE_TOPIC, name) for name in hidden]
        assert RIGHTS[DELETE_RECORDS].parts == (DELETE_TOPIC,)

    run(scenario, tmp_path)
