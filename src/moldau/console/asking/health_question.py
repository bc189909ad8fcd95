"""`HealthQuestion`: the brokers that are up, and what all partitions of a cluster add up to."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from moldau.client.administration.cluster import ClusterDescription
from moldau.client.cluster_view import TopicView
from moldau.client.failures import unasked
from moldau.console.asking import keeping
from moldau.console.asking.topic_questions import TopicQuestions
from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.apis import DESCRIBE_TOPIC_PARTITIONS

OF_A_PAGE = 2_000
"""Partitions that a broker describes in one answer."""


class ClusterHealth(NamedTuple):
    """Counts over all topics that the user may see; `holders` are the brokers that have a replica, up or not."""

    topics: int
    partitions: int
    leaderless: int
    under_replicated: int
    holders: frozenset[int] = frozenset()

    def away(self, cluster: ClusterDescription) -> list[int]:
        """The brokers that have replicas and are not up."""
        return sorted(self.holders - cluster.brokers.keys())


class HealthQuestion(TopicQuestions):
    """The part of the console's admin client for the cluster as a whole."""

    def __init__(self, client: Mapping[str, Any]):
        super().__init__(client)
        self._counted_with: ClusterDescription | None = None
        self._is_unhealthy = False

    async def cluster(self) -> ClusterDescription:
        """The brokers that are up, and the controller; shared by pages that ask at the same time."""
        return await self._once("cluster", self.describe_cluster, keeping.PULSE_KEPT_S, 0)

    async def health(self) -> ClusterHealth:
        """The sums over all partitions. They are asked for in portions, and again when a broker has come or gone, or
        another one is the controller."""
        cluster = await self.cluster()
        if self._counted_with is not None and _members(cluster) != _members(self._counted_with):
            self.forget("health")
        self._counted_with = cluster
        times, most_s = keeping.KEPT_TIMES, keeping.KEPT_MAX_S
        if self._is_unhealthy:
            times, most_s = keeping.UNHEALTHY_TIMES, keeping.UNHEALTHY_MAX_S
        health = await self._once("health", self._health, times=times, most_s=most_s)
        self._is_unhealthy = bool(health.leaderless or health.under_replicated)
        return health

    async def _health(self) -> ClusterHealth:
        messages, cursor = DESCRIBE_TOPIC_PARTITIONS.messages, None
        topics = partitions = leaderless = under_replicated = 0
        holders = set[int]()
        while True:
            request = messages.DescribeTopicPartitionsRequest(
                topics=[], response_partition_limit=OF_A_PAGE, cursor=cursor
            )
            try:
                reply = await self._ask(DESCRIBE_TOPIC_PARTITIONS, request, "describing partitions")
            except KafkaError as refused:
                if refused.code is not ErrorCode.UNSUPPORTED_VERSION:
                    raise
                return _counted((await self.list_topics(internal=True)).values())
            for topic in reply.topics:
                topics += not topic.partitions or topic.partitions[0].partition_index == 0
                partitions += len(topic.partitions)
                leaderless += sum(p.leader_id < 0 for p in topic.partitions)
                under_replicated += sum(len(p.isr_nodes) < len(p.replica_nodes) for p in topic.partitions)
                holders.update(*(p.replica_nodes for p in topic.partitions))
            if reply.next_cursor is None:
                return ClusterHealth(topics, partitions, leaderless, under_replicated, frozenset(holders))
            place = reply.next_cursor.topic_name, reply.next_cursor.partition_index
            if not reply.topics or (cursor is not None and place <= (cursor.topic_name, cursor.partition_index)):
                raise unasked("to DescribeTopicPartitions goes back to a partition that was counted")
            cursor = messages.Cursor(topic_name=place[0], partition_index=place[1])


def _members(cluster: ClusterDescription) -> tuple[int, frozenset[int]]:
    return cluster.controller_id, frozenset(cluster.brokers)


def _counted(topics: Iterable[TopicView]) -> ClusterHealth:
    views = [*topics]
    partitions = [p for topic in views for p in topic.partitions.values()]
    return ClusterHealth(
        len(views),
        len(partitions),
        sum(p.leader < 0 for p in partitions),
        sum(len(p.isr) < len(p.replicas) for p in partitions),
        frozenset(broker for p in partitions for broker in p.replicas),
    )
