"""Metadata and DescribeTopicPartitions for clients that may not see, or not create, every topic."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state.image import BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import broker_config
from moldau.errors import ErrorCode
from moldau.handlers.rights import RIGHTS
from moldau.handlers.topics.metadata import Metadata
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import DESCRIBE_TOPIC_PARTITIONS, METADATA
from moldau.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.requests.access import (
    ALTER_CLUSTER,
    CLUSTER_NAME,
    CREATE_IN_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC,
    OPERATIONS,
    READ_TOPIC,
    ResourceType,
    Right,
)
from moldau.turns import turn
from tests.cluster.opening import open_cluster
from tests.handlers.asking import Asker, rights_asked
from tests.requests.calling import Denying, call

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOBODY, NO_ID = uuid.UUID(int=5), uuid.UUID(int=0)
UNTOLD = -(1 << 31)
EVERY_OPERATION, EVERY_CLUSTER_OPERATION = 3576, 8096
Scenario = Callable[[Cluster, Asker], Awaitable[Any]]


def play(folder: Path, scenario: Scenario, **settings: str) -> Any:
    async def whole() -> Any:
        cluster = await open_cluster(folder, {name.replace("_", "."): value for name, value in settings.items()})
        await cluster.topics.create([NewTopic("a", 2), NewTopic("b", 2)])
        await cluster.topics.ensure_offsets_topic()
        try:
            return await scenario(cluster, Asker(cluster))
        finally:
            await cluster.close()

    return asyncio.run(whole())


def named(*names: str | None, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


def unseen(*names: str) -> Denying:
    return Denying(*((DESCRIBE_TOPIC, name) for name in names))


def codes(response: Any) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", [METADATA.low, 4, 9, METADATA.high])
def test_a_topic_that_may_not_be_described_looks_the_same_whether_it_exists_or_not(
    tmp_path: Path, version: int
) -> None:
    hidden = ["b", OFFSETS_TOPIC, "gone", "not a name"]
    client = unseen(*hidden)

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        before = set(cluster.image.topics)
        request = named(*hidden, "a", include_topic_authorized_operations=version >= 8)
        response = await asker.ask(METADATA, version, request, authorizer=client)
        assert set(cluster.image.topics) == before, "nothing is created for a client that may not see it"
        return response

    response = play(tmp_path, scenario)
    assert codes(response) == [("a", 0), *((name, DENIED) for name in hidden)]
    for topic in response.topics[1:]:
        assert (topic.topic_id, topic.is_internal, topic.partitions) == (NO_ID, False, [])
        assert topic.topic_authorized_operations == UNTOLD
    assert client.logged == [(DESCRIBE_TOPIC, name) for name in hidden]
    assert [asked for asked in client.asked if asked[1] == "b"] == [(DESCRIBE_TOPIC, "b")]


@pytest.mark.parametrize("version", [12, METADATA.high])
def test_a_topic_that_is_asked_for_by_id_and_may_not_be_described_has_no_name(tmp_path: Path, version: int) -> None:
    client = unseen("b")

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        ids = [cluster.image.topics["b"].id, NOBODY, cluster.image.topics["a"].id]
        request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=one) for one in ids])
        return ids, await asker.ask(METADATA, version, request, authorizer=client)

    (hidden, _, _), response = play(tmp_path, scenario)
    assert codes(response) == [(None, ErrorCode.UNKNOWN_TOPIC_ID), ("a", 0), (None, DENIED)]
    last = response.topics[-1]
    assert (last.topic_id, last.is_internal, last.partitions) == (hidden, False, [])
    assert client.logged == [(DESCRIBE_TOPIC, "b")]


@pytest.mark.parametrize("version", [METADATA.low, 1, 9, METADATA.high])
def test_all_topics_are_those_that_may_be_described_and_no_denial_is_logged(tmp_path: Path, version: int) -> None:
    client = unseen("b", OFFSETS_TOPIC)

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        everything = MetadataRequest(topics=None if version else [])
        return await asker.ask(METADATA, version, everything, authorizer=client)

    assert codes(play(tmp_path, scenario)) == [("a", 0)]
    assert client.logged == []


@pytest.mark.parametrize("version", [METADATA.low, 4, METADATA.high])
def test_a_topic_is_created_by_a_right_on_the_cluster_or_on_the_topic(tmp_path: Path, version: int) -> None:
    anywhere = Denying((CREATE_TOPIC, "*"))
    some = Denying((CREATE_IN_CLUSTER, CLUSTER_NAME), (CREATE_TOPIC, "e"), (CREATE_TOPIC, "b"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        first = await asker.ask(METADATA, version, named("c"), authorizer=anywhere)
        second = await asker.ask(METADATA, version, named("e", "d", "b"), authorizer=some)
        return set(cluster.image.topics), first, second

    there, first, second = play(tmp_path, scenario)
    assert there == {"a", "b", "c", "d", OFFSETS_TOPIC}
    assert codes(first) == [("c", 0)]
    assert (CREATE_TOPIC, "c") not in anywhere.asked
    assert codes(second) == [("d", 0), ("b", 0), ("e", DENIED)]
    denied = second.topics[-1]
    assert (denied.topic_id, denied.is_internal, denied.partitions) == (NO_ID, False, [])
    assert some.logged == [(CREATE_TOPIC, "e")]
    assert (CREATE_TOPIC, "b") not in some.asked


def test_the_right_to_create_is_asked_for_only_if_a_topic_would_be_created(tmp_path: Path) -> None:
    client = Denying((CREATE_IN_CLUSTER, "*"), (CREATE_TOPIC, "*"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return [
            await asker.ask(METADATA, 13, named("a", "not a name"), authorizer=client),
            await asker.ask(METADATA, 13, named("c", allow_auto_topic_creation=False), authorizer=client),
        ]

    first, second = play(tmp_path, scenario)
    assert codes(first) == [("a", 0), ("not a name", ErrorCode.INVALID_TOPIC_EXCEPTION)]
    assert codes(second) == [("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert {right for right, _ in client.asked} == {DESCRIBE_TOPIC}


@pytest.mark.parametrize("version", [8, 10])
def test_a_client_is_told_what_it_may_do(tmp_path: Path, version: int) -> None:
    client = Denying((READ_TOPIC, "a"), (ALTER_CLUSTER, "*"))
    nobody = Denying((DESCRIBE_CLUSTER, "*"))
    request = named("a", "b", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return [await asker.ask(METADATA, version, request, authorizer=one) for one in (client, nobody)]

    some, none = play(tmp_path, scenario)
    operations = [topic.topic_authorized_operations for topic in some.topics]
    assert operations == [EVERY_OPERATION - (1 << READ_TOPIC.operation), EVERY_OPERATION]
    assert some.cluster_authorized_operations == EVERY_CLUSTER_OPERATION - (1 << ALTER_CLUSTER.operation)
    assert none.cluster_authorized_operations == 0
    assert client.logged == nobody.logged == []


def test_what_one_client_sees_does_not_depend_on_what_another_one_has_asked_for(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        clients = [unseen("a"), None, unseen("a"), Denying()]
        return [await asker.ask(METADATA, 13, named("a"), authorizer=client) for client in clients]

    answers = [response.topics[0] for response in play(tmp_path, scenario)]
    assert [(one.error_code, len(one.partitions)) for one in answers] == [(DENIED, 0), (0, 2), (DENIED, 0), (0, 2)]


@pytest.mark.parametrize("by", ["all", "names", "ids"])
def test_many_topics_are_judged_in_turns(by: str) -> None:
    part = PartitionImage(1, 0, (1,), (1,))
    topics = {f"t{number}": TopicImage(f"t{number}", uuid.UUID(int=number + 1), (part,), {}) for number in range(2500)}
    image = Image("c", 1, {1: BrokerImage(1, ())}).with_topics(topics)
    nothing: Any = None
    metadata = Metadata(MetadataCache(broker_config({"node.id": "1"})[0], image), nothing)
    asked = {
        "all": None,
        "names": [MetadataRequestTopic(name=name) for name in topics],
        "ids": [MetadataRequestTopic(name=None, topic_id=topic.id) for topic in topics.values()],
    }[by]
    client = Denying((DESCRIBE_TOPIC, "*"))
    steps = metadata(MetadataRequest(topics=asked), call(METADATA, 13, authorizer=client))
    counts = [0]
    while not hasattr(steps, "topics"):
        steps = turn(steps)
        counts.append(len(client.asked) - sum(counts))
    assert max(counts) <= 1000 and sum(counts) == 2500
    assert [topic.error_code for topic in steps.topics] == ([] if by == "all" else [DENIED] * 2500)


def test_metadata_asks_for_the_rights_of_its_line(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        parts, numbers = RIGHTS[METADATA].parts, count()
        asked = await rights_asked(
            lambda one: asker.ask(METADATA, 13, named("a", f"new-{next(numbers)}"), authorizer=one), parts
        )
        request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        told = await rights_asked(lambda one: asker.ask(METADATA, 9, request, authorizer=one), parts)
        assert told == {Right(ResourceType.CLUSTER, one) for one in OPERATIONS[ResourceType.CLUSTER]}
        assert {*parts} == asked | {DESCRIBE_CLUSTER}

    play(tmp_path, scenario)


def pages(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> DescribeTopicPartitionsRequest:
    topics = [TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)


def test_named_topics_that_may_not_be_described_come_last_whether_they_exist_or_not(tmp_path: Path) -> None:
    hidden = [OFFSETS_TOPIC, "aa", "b"]
    client = Denying(*((DESCRIBE_TOPIC, name) for name in hidden), (READ_TOPIC, "a"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = pages(*hidden, "a", "c")
        return await asker.ask(DESCRIBE_TOPIC_PARTITIONS, 0, request, authorizer=client)

    response = play(tmp_path, scenario)
    expected = [("a", 0), ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), *((name, DENIED) for name in hidden)]
    assert codes(response) == expected
    for topic in response.topics[2:]:
        assert (topic.topic_id, topic.is_internal, topic.partitions) == (NO_ID, False, [])
        assert topic.topic_authorized_operations == UNTOLD
    operations = [topic.topic_authorized_operations for topic in response.topics[:2]]
    assert operations == [EVERY_OPERATION - (1 << READ_TOPIC.operation), EVERY_OPERATION]
    assert client.logged == [(DESCRIBE_TOPIC, name) for name in hidden]


@pytest.mark.parametrize("names", [(), ("a", "b", "c", OFFSETS_TOPIC)])
def test_pages_of_topics_pass_over_what_may_not_be_described(tmp_path: Path, names: tuple[str, ...]) -> None:
    client = unseen("b", OFFSETS_TOPIC)

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await cluster.topics.create([NewTopic("c", 1)])
        found = []
        cursor = None
        while not found or cursor is not None:
            request = pages(*names, limit=1, cursor=cursor)
            page = await asker.ask(DESCRIBE_TOPIC_PARTITIONS, 0, request, authorizer=client)
            found.append([*codes(page), *(len(topic.partitions) for topic in page.topics)])
            following = page.next_cursor
            cursor = following and Cursor(topic_name=following.topic_name, partition_index=following.partition_index)
        return found

    found = play(tmp_path, scenario)
    if names:
        first = [("a", 0), (OFFSETS_TOPIC, DENIED), 1, 0]
        assert found == [first, [("a", 0), ("b", DENIED), 1, 0], [("c", 0), 1]]
        assert {name for _, name in client.logged} == {"b", OFFSETS_TOPIC}
    else:
        assert found == [[("a", 0), 1], [("a", 0), 1], [("c", 0), 1]]
        assert client.logged == []


def test_describe_topic_partitions_asks_for_the_right_of_its_line(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        client = Denying((DESCRIBE_TOPIC, "*"))
        await asker.ask(DESCRIBE_TOPIC_PARTITIONS, 0, pages("a", "b"), authorizer=client)
        assert client.asked == [(DESCRIBE_TOPIC, "a"), (DESCRIBE_TOPIC, "b")]
        assert RIGHTS[DESCRIBE_TOPIC_PARTITIONS].parts == (DESCRIBE_TOPIC,)

    play(tmp_path, scenario)
