"""Metadata and DescribeCluster, in every version: who is there, who leads what, and what is not there."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import MorePartitions, NewTopic
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.errors import ErrorCode, StorageError
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from moldau.protocol.apis import DESCRIBE_CLUSTER, METADATA
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.cluster.opening import HERE, open_cluster
from tests.handlers.asking import Asker

NOBODY = uuid.UUID(int=5)
VERSIONS = range(METADATA.low, METADATA.high + 1)
Scenario = Callable[[Cluster, Asker], Awaitable[Any]]


def play(folder: Path, scenario: Scenario, **settings: str) -> Any:
    async def whole() -> Any:
        cluster = await open_cluster(folder, {name.replace("_", "."): value for name, value in settings.items()})
        await cluster.topics.create([NewTopic("a", 2), NewTopic("b")])
        try:
            return await scenario(cluster, Asker(cluster))
        finally:
            await cluster.close()

    return asyncio.run(whole())


def named(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def codes(response: Any) -> list[tuple[str | None, ErrorCode]]:
    return [(topic.name, ErrorCode(topic.error_code)) for topic in response.topics]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_told_with_its_brokers_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return cluster.image, await asker.ask(METADATA, version, MetadataRequest(topics=named("a")))

    image, response = play(tmp_path, scenario)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(1, "localhost", 9092)]
    assert codes(response) == [("a", ErrorCode.NONE)]
    (topic,) = response.topics
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert not topic.is_internal
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert response.cluster_id == image.cluster_id
    if version >= 7:
        assert topic.partitions[0].leader_epoch == 0
    if version >= 10:
        assert topic.topic_id == image.topics["a"].id


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_meant_by_null_and_in_version_0_by_none(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        everything = MetadataRequest(topics=None if version else [])
        return (
            await asker.ask(METADATA, version, everything),
            await asker.ask(METADATA, version, MetadataRequest(topics=[])),
        )

    everything, nothing = play(tmp_path, scenario)
    assert [name for name, _ in codes(everything)] == ["a", "b"]
    assert len(nothing.topics) == (0 if version else 2)
    assert len(nothing.brokers) == 1


@pytest.mark.parametrize("version", range(4, METADATA.high + 1))
def test_what_is_not_there_and_may_not_be_made_is_unknown(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = MetadataRequest(topics=named("c", "a", "a b", "c", ""), allow_auto_topic_creation=False)
        return await asker.ask(METADATA, version, request)

    assert codes(play(tmp_path, scenario)) == [
        ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", ErrorCode.NONE),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_the_broker_may_forbid_to_make_topics(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(METADATA, 13, MetadataRequest(topics=named("c")))

    response = play(tmp_path, scenario, auto_create_topics_enable="false")
    assert codes(response) == [("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_made_when_it_is_asked_for_and_the_answer_has_it(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = MetadataRequest(topics=named("c", OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "c/d"))
        return await asker.ask(METADATA, version, request)

    response = play(tmp_path, scenario, num_partitions="4")
    assert codes(response) == [
        ("c", ErrorCode.NONE),
        (OFFSETS_TOPIC, ErrorCode.NONE),
        (TRANSACTIONS_TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("c/d", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert [len(topic.partitions) for topic in response.topics] == [4, 3, 0, 0]
    if version >= 1:
        assert [topic.is_internal for topic in response.topics] == [False, True, True, False]


def test_a_topic_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(METADATA, 13, MetadataRequest(topics=named("c")))

    response = play(tmp_path, scenario, default_replication_factor="3")
    assert codes(response) == [("c", ErrorCode.INVALID_REPLICATION_FACTOR)]


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_asked_for_by_id_and_then_names_do_not_count(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        known = cluster.image.topics["a"].id
        by_id = [MetadataRequestTopic(name=name, topic_id=known) for name in (None, "b")]
        by_id += [MetadataRequestTopic(name=None, topic_id=NOBODY), *named("b")]
        return await asker.ask(METADATA, version, MetadataRequest(topics=by_id))

    response = play(tmp_path, scenario)
    assert codes(response) == [("a", ErrorCode.NONE), (None, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert response.topics[1].topic_id == NOBODY


@pytest.mark.parametrize("version", [10, 11])
def test_ids_and_missing_names_are_invalid_before_version_12(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        topics = [MetadataRequestTopic(name="a", topic_id=NOBODY), *named(None)]
        return await asker.ask(METADATA, version, MetadataRequest(topics=topics))

    response = play(tmp_path, scenario)
    assert codes(response) == [("a", ErrorCode.INVALID_REQUEST), ("", ErrorCode.INVALID_REQUEST)]
    assert response.brokers == []


def test_a_topic_with_neither_name_nor_id_is_invalid(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(METADATA, 13, MetadataRequest(topics=named(None)))

    assert play(tmp_path, scenario).error_code == ErrorCode.INVALID_REQUEST


def test_what_may_be_done_is_told_only_when_asked(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        found = []
        for asked in (True, False):
            request = MetadataRequest(
                topics=named("a", "c"),
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=asked,
                include_cluster_authorized_operations=asked,
            )
            response = await asker.ask(METADATA, 10, request)
            operations = [topic.topic_authorized_operations for topic in response.topics]
            found.append((response.cluster_authorized_operations, operations))
        return found

    unasked = -(1 << 31)
    assert play(tmp_path, scenario) == [(8096, [3576, unasked]), (unasked, [unasked, unasked])]


def test_changes_are_seen_by_the_next_answer(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        found = []

        async def look() -> None:
            response = await asker.ask(METADATA, 13, MetadataRequest(topics=None))
            found.append({topic.name: len(topic.partitions) for topic in response.topics})

        await look()
        await cluster.topics.create_partitions([MorePartitions("a", 3)])
        await look()
        await cluster.topics.delete([("b", None)])
        await look()
        await cluster.topics.create([NewTopic("b", 2)])
        await look()
        return found

    assert play(tmp_path, scenario) == [{"a": 2, "b": 1}, {"a": 3, "b": 1}, {"a": 3}, {"a": 3, "b": 2}]


OUTSIDE = Endpoint("OUTSIDE", "PLAINTEXT", "example.org", 19092)


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_have_the_address_of_the_clients_listener(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await cluster.registration.register([HERE, OUTSIDE])
        request = MetadataRequest(topics=named("a"))
        return [await asker.ask(METADATA, version, request, listener) for listener in ("PLAINTEXT", "OUTSIDE")]

    here, outside = play(tmp_path, scenario)
    assert [(b.host, b.port) for b in here.brokers] == [("localhost", 9092)]
    assert [(b.host, b.port) for b in outside.brokers] == [("example.org", 19092)]
    assert here.topics == outside.topics


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_without_the_clients_listener_is_left_out_and_leads_nothing(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = MetadataRequest(topics=named("b"))
        unknown = await asker.ask(METADATA, version, request, "OUTSIDE")
        await cluster.registration.register([HERE, OUTSIDE])
        return unknown, await asker.ask(METADATA, version, request, "OUTSIDE")

    unknown, known = play(tmp_path, scenario)
    (partition,) = unknown.topics[0].partitions
    code = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    assert (unknown.brokers, partition.error_code, partition.leader_id) == ([], code, -1)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
    if version >= 5:
        assert partition.offline_replicas == [1]
    (partition,) = known.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.offline_replicas) == (0, 1, [])


def test_the_cluster_is_described_with_the_addresses_of_the_clients_listener(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await cluster.registration.register([HERE, OUTSIDE])
        listeners = ("PLAINTEXT", "OUTSIDE", "NOT_ADVERTISED")
        return [await asker.ask(DESCRIBE_CLUSTER, 2, DescribeClusterRequest(), listener) for listener in listeners]

    responses = play(tmp_path, scenario)
    assert [[(b.host, b.port) for b in response.brokers] for response in responses] == [
        [("localhost", 9092)],
        [("example.org", 19092)],
        [],
    ]
    assert [response.controller_id for response in responses] == [1, 1, -1]


@pytest.mark.parametrize("version", range(DESCRIBE_CLUSTER.low, DESCRIBE_CLUSTER.high + 1))
def test_the_cluster_is_described_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        return cluster.image.cluster_id, await asker.ask(DESCRIBE_CLUSTER, version, request)

    cluster_id, response = play(tmp_path, scenario)
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, cluster_id, 1)
    assert [(b.broker_id, b.host, b.port, b.rack) for b in response.brokers] == [(1, "localhost", 9092, None)]
    assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize("version", [1, 2])
def test_brokers_that_are_away_are_listed_where_they_are_asked_for(tmp_path: Path, version: int) -> None:
    async def known() -> dict[int, BrokerImage]:
        elsewhere = BrokerImage(3, (Endpoint("OUTSIDE", "PLAINTEXT", "example.org", 9092),))
        return {1: BrokerImage(1, (HERE,)), 2: BrokerImage(2, (HERE._replace(host="there"),), "rack"), 3: elsewhere}

    async def silent() -> dict[int, BrokerImage]:
        raise StorageError("ZooKeeper has not answered")

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        every, answers = DescribeClusterRequest(include_fenced_brokers=True), []
        for cluster.known_brokers, request in ((known, every), (known, DescribeClusterRequest()), (silent, every)):
            answers.append(await asker.ask(DESCRIBE_CLUSTER, version, request))
        return answers

    told, brief, failed = play(tmp_path, scenario)
    fenced = [(2, "there", 9092, "rack", True)] if version == 2 else []
    assert [(one.broker_id, one.host, one.port, one.rack, one.is_fenced) for one in told.brokers][1:] == fenced
    assert [one.broker_id for one in brief.brokers] == [1]
    expected = (7, "ZooKeeper has not answered", 0) if version == 2 else (0, None, 1)
    assert (failed.error_code, failed.error_message, len(failed.brokers)) == expected


@pytest.mark.parametrize(
    ("endpoint", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_only_the_endpoints_of_brokers_are_here(tmp_path: Path, endpoint: int, code: ErrorCode) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(DESCRIBE_CLUSTER, 2, DescribeClusterRequest(endpoint_type=endpoint))

    response = play(tmp_path, scenario)
    assert (response.error_code, response.brokers, response.cluster_id) == (code, [], "")
    assert response.error_message
