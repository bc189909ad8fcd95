"""One request of every client API at the limits of a broker: 9,000 topics, 10,000 groups, 3,000 names to change.

Most requests are made from the table of their message: one array has as many elements as the API may be asked about,
and its names are those of topics and groups that exist. Where an API needs more than that, its request is written by
hand. `changes` come last, because they take away what the others ask about.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import frames
from harness.wide_requests import arrays, elements_of, request_of, wide_requests
from moldau.protocol import apis
from moldau.protocol.apis import APIS, Api
from moldau.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from moldau.protocol.messages.alter_configs import AlterConfigsRequest
from moldau.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPICS, GROUPS, CHANGED, GROWN, MEMBERS = 9000, 10_000, 3000, 500, 50
OF_TOPIC, OF_CONFIG = 2, 32
ASKED_MS = 30_000
BY_NAME = {apis.METADATA: 9, apis.OFFSET_COMMIT: 9, apis.OFFSET_FETCH: 9, apis.TXN_OFFSET_COMMIT: 5}
"""The highest versions that name topics by name."""
OF_GROUPS = {apis.OFFSET_FETCH, apis.FIND_COORDINATOR, apis.DESCRIBE_GROUPS, apis.CONSUMER_GROUP_DESCRIBE}
CHANGES = {apis.CREATE_TOPICS, apis.DELETE_TOPICS, apis.CREATE_PARTITIONS, apis.DELETE_GROUPS, apis.OFFSET_DELETE}
CHANGES |= {apis.ALTER_CONFIGS, apis.INCREMENTAL_ALTER_CONFIGS, apis.ADD_PARTITIONS_TO_TXN, apis.TXN_OFFSET_COMMIT}
"""APIs whose requests stand in `changes`, or in `in_a_transaction`."""


class Asked(NamedTuple):
    """Requests that are sent one after the other, each when the one before is answered."""

    name: str
    api: Api
    version: int
    messages: list[Any]


def topic(number: int) -> str:
    return f"wide-{number}"


def new(name: str, partitions: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)


def one(name: str, api: Api, message: Any, version: int | None = None) -> Asked:
    return Asked(name, api, BY_NAME.get(api, api.high) if version is None else version, [message])


def generated() -> Iterator[Asked]:
    """Those that the tables make; a request without arrays is sent as it is."""
    made = list(wide_requests())
    for api, array in made:
        if api not in CHANGES:
            count = GROUPS if api in OF_GROUPS else TOPICS
            (kind,) = (spec.kind for name, spec in arrays(api.request) if name == array)
            request = at_partition_0(request_of(api, array, count * elements_of(kind)))
            for element in getattr(request, array):
                if hasattr(element, "resource_type"):
                    element.resource_type = OF_TOPIC
            yield one(f"{api.name} ({count:,} {array})", api, request)
    without = [api for api in APIS.values() if api not in {api for api, _ in made} and api not in CHANGES]
    for api in without:
        if api not in (apis.PRODUCE, apis.FETCH, apis.END_TXN):
            yield one(api.name, api, api.request())


def at_partition_0(message: Any) -> Any:
    """The message with 0 as the only element of each list of partitions; the topics have no others."""
    if dataclasses.is_dataclass(message):
        for field in dataclasses.fields(message):
            value = getattr(message, field.name)
            if isinstance(value, list) and value and isinstance(value[0], int) and "partition" in field.name:
                setattr(message, field.name, [0])
            elif isinstance(value, list) and value and dataclasses.is_dataclass(value[0]):
                for element in value:
                    at_partition_0(element)
    return message


def about_everything() -> Iterator[Asked]:
    names = [topic(number) for number in range(TOPICS)]
    batch = frames.batch(1, 10)
    data = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=batch)]) for name in names
    ]
    produce = ProduceRequest(acks=1, timeout_ms=ASKED_MS, topic_data=data)
    yield one(f"Produce ({TOPICS:,} topics)", apis.PRODUCE, produce, 12)
    parts = [FetchPartition(partition=0, partition_max_bytes=1)]
    fetch = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=name, partitions=parts) for name in names])
    yield one(f"Fetch ({TOPICS:,} topics)", apis.FETCH, fetch, 12)
    yield one("Metadata of all topics", apis.METADATA, MetadataRequest(topics=None))
    yield one("ListGroups of all groups", apis.LIST_GROUPS, ListGroupsRequest())
    group = OffsetFetchRequestGroup(group_id=topic(0), topics=None)
    yield one("OffsetFetch of all offsets", apis.OFFSET_FETCH, OffsetFetchRequest(groups=[group]))
    resources = [
        DescribeConfigsResource(resource_type=OF_TOPIC, resource_name=name, configuration_keys=None) for name in names
    ]
    yield one(
        f"DescribeConfigs (all of {TOPICS:,})", apis.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources)
    )
    groups = [
        DescribeConfigsResource(resource_type=OF_CONFIG, resource_name=name, configuration_keys=None) for name in names
    ]
    yield one(
        f"DescribeConfigs (all of {TOPICS:,} groups)", apis.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=groups)
    )
    yield one("DescribeLogDirs of all", apis.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
    yield one(
        "ElectLeaders of all", apis.ELECT_LEADERS, ElectLeadersRequest(topic_partitions=None, timeout_ms=ASKED_MS)
    )
    everything = ListPartitionReassignmentsRequest(topics=None)
    yield one("ListPartitionReassignments of all", apis.LIST_PARTITION_REASSIGNMENTS, everything)


def joining(group: str, member: int, **subscription: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=f"m-{member}", rebalance_timeout_ms=ASKED_MS, topic_partitions=[], **subscription
    )


def consumer_groups() -> Iterator[Asked]:
    """Each member joins, and a second heartbeat asks for its assignment."""
    api, version = apis.CONSUMER_GROUP_HEARTBEAT, apis.CONSUMER_GROUP_HEARTBEAT.high
    everything = [joining("all", 0, subscribed_topic_regex=".*")] * 2
    yield Asked("ConsumerGroupHeartbeat (.*)", api, version, everything)
    names = [joining("named", 0, subscribed_topic_names=[topic(number) for number in range(TOPICS)])] * 2
    yield Asked(f"ConsumerGroupHeartbeat ({TOPICS:,} names)", api, version, names)
    each = [joining("each", n, subscribed_topic_regex=f"wide-.*|x{n}") for n in range(MEMBERS)]
    yield Asked(f"ConsumerGroupHeartbeat ({MEMBERS} members, an expression each)", api, version, each)
    same = [joining("same", n, subscribed_topic_regex="wide-[0-9]+") for n in range(MEMBERS)]
    yield Asked(f"ConsumerGroupHeartbeat ({MEMBERS} members, one expression)", api, version, same)
    described = apis.CONSUMER_GROUP_DESCRIBE.request(group_ids=["all", "named", "each", "same"])
    yield one(f"ConsumerGroupDescribe ({MEMBERS} members, {TOPICS:,} topics)", apis.CONSUMER_GROUP_DESCRIBE, described)
    for group in ("all", "each", "same"):
        leaving = ConsumerGroupHeartbeatRequest(group_id=group, member_id="m-0", member_epoch=-1)
        yield one(f"ConsumerGroupHeartbeat (leaves {group!r})", api, leaving)


def in_a_transaction(producer_id: int, epoch: int) -> Iterator[Asked]:
    """A transaction with every partition, added by the version of old clients."""
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="wide",
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic(number), partitions=[0]) for number in range(TOPICS)],
    )
    yield one(f"AddPartitionsToTxn ({TOPICS:,} topics)", apis.ADD_PARTITIONS_TO_TXN, added, 3)
    offsets = request_of(apis.TXN_OFFSET_COMMIT, "topics", 2 * TOPICS)
    offsets.producer_id, offsets.producer_epoch, offsets.group_id, offsets.member_id = producer_id, epoch, "offsets", ""
    yield one(f"TxnOffsetCommit ({TOPICS:,} topics)", apis.TXN_OFFSET_COMMIT, offsets)
    end = EndTxnRequest(transactional_id="wide", producer_id=producer_id, producer_epoch=epoch, committed=True)
    yield one(f"EndTxn ({TOPICS:,} partitions)", apis.END_TXN, end, 4)


def changes() -> Iterator[Asked]:
    topics = [new(f"new-{number}") for number in range(CHANGED)]
    for validate_only in (True, False):
        how = ", validate_only" if validate_only else ""
        create = CreateTopicsRequest(topics=topics, timeout_ms=ASKED_MS, validate_only=validate_only)
        yield one(f"CreateTopics ({CHANGED:,}{how})", apis.CREATE_TOPICS, create)
    many = CreateTopicsRequest(topics=[new("partitions", 9990)], timeout_ms=ASKED_MS)
    yield one("CreateTopics (9,990 partitions)", apis.CREATE_TOPICS, many)
    for validate_only in (True, False):
        how = ", validate_only" if validate_only else ""
        for resource_type, what, name, value in (
            (OF_TOPIC, "topics", "retention.ms", "1"),
            (OF_CONFIG, "groups", "consumer.session.timeout.ms", "45001"),
        ):
            altered = [
                AlterConfigsResource(
                    resource_type=resource_type,
                    resource_name=topic(number),
                    configs=[AlterableConfig(name=name, config_operation=0, value=value)],
                )
                for number in range(CHANGED)
            ]
            alter = IncrementalAlterConfigsRequest(resources=altered, validate_only=validate_only)
            yield one(f"IncrementalAlterConfigs ({CHANGED:,} {what}{how})", apis.INCREMENTAL_ALTER_CONFIGS, alter)
        replaced = [
            ReplacedResource(
                resource_type=OF_TOPIC,
                resource_name=topic(number),
                configs=[ReplacedConfig(name="retention.ms", value="2")],
            )
            for number in range(CHANGED)
        ]
        replace = AlterConfigsRequest(resources=replaced, validate_only=validate_only)
        yield one(f"AlterConfigs ({CHANGED:,}{how})", apis.ALTER_CONFIGS, replace)
    for first, count in ((0, GROWN), (GROWN, CHANGED)):
        grown = [CreatePartitionsTopic(name=topic(first + n), count=2, assignments=None) for n in range(count)]
        more = CreatePartitionsRequest(topics=grown, timeout_ms=ASKED_MS)
        yield one(f"CreatePartitions ({count:,})", apis.CREATE_PARTITIONS, more)
    yield one(
        f"OffsetDelete ({TOPICS:,} topics)",
        apis.OFFSET_DELETE,
        at_partition_0(request_of(apis.OFFSET_DELETE, "topics", 2 * TOPICS)),
    )
    yield one(f"DeleteGroups ({GROUPS:,})", apis.DELETE_GROUPS, request_of(apis.DELETE_GROUPS, "groups_names", GROUPS))
    yield one("Metadata of all topics, after changes", apis.METADATA, MetadataRequest(topics=None))
    gone = DeleteTopicsRequest(topic_names=[topic(number) for number in range(CHANGED)], timeout_ms=ASKED_MS)
    yield one(f"DeleteTopics ({CHANGED:,})", apis.DELETE_TOPICS, gone, 5)
    large = DeleteTopicsRequest(topic_names=["partitions"], timeout_ms=ASKED_MS)
    yield one("DeleteTopics (9,990 partitions)", apis.DELETE_TOPICS, large, 5)
