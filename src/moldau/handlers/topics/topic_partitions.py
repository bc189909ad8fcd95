"""DescribeTopicPartitions (key 75): topics by name, a page of partitions at a time (KIP-966).

Topics come in order of their names, those named or all there are; a page begins at the request's cursor, whose topic
has to be among those named, and ends after `response_partition_limit` partitions, with a cursor to the next one. A
partition whose leader is down, or has no listener of the request's, has leader -1 and no error, as in Kafka.

A topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED, after the others of its page, or left out if all
topics are meant. The limit counts no partition of it.
"""

from moldau.cluster.controlling.controller import name_refusal
from moldau.cluster.state.image import TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode
from moldau.handlers.topics.metadata import described_partition
from moldau.names import INTERNAL_TOPICS
from moldau.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    NextCursor,
)
from moldau.requests.access import DESCRIBE_TOPIC, ResourceType
from moldau.requests.session import Call
from moldau.turns import Steps


class DescribeTopicPartitions:
    def __init__(self, metadata: MetadataCache):
        self._metadata = metadata

    def __call__(
        self, request: DescribeTopicPartitionsRequest, call: Call
    ) -> Steps[DescribeTopicPartitionsResponse | Steps[DescribeTopicPartitionsResponse]]:
        cursor, named = request.cursor, {topic.name for topic in request.topics}
        if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
            return _refused(request)
        left = max(min(request.response_partition_limit, self._metadata.config.max_request_partition_size_limit), 1)
        response = DescribeTopicPartitionsResponse()
        denied = []
        for name in sorted(named or self._metadata.image.topics):
            yield
            if cursor is not None and name < cursor.topic_name:
                continue
            if not call.may(DESCRIBE_TOPIC, name, logged=bool(named)):
                if named:
                    denied.append(name)
                continue
            start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
            if not left:
                response.next_cursor = NextCursor(topic_name=name, partition_index=start)
                break
            topic = self._metadata.image.topics.get(name)
            if topic is None:
                response.topics.append(_unknown(name, call))
                continue
            end = min(start + left, len(topic.partitions))
            response.topics.append((yield from self._described(topic, start, end, call)))
            left -= max(end - start, 0)
            if end < len(topic.partitions):
                response.next_cursor = NextCursor(topic_name=name, partition_index=end)
                break
        for name in denied:
            response.topics.append(DescribeTopicPartitionsResponseTopic(error_code=DESCRIBE_TOPIC.denied, name=name))
            yield
        return response

    def _described(
        self, topic: TopicImage, start: int, end: int, call: Call
    ) -> Steps[DescribeTopicPartitionsResponseTopic]:
        image = self._metadata.image
        reachable = {broker.id: broker for broker, _ in image.reachable(call.session.listener)}
        partitions = []
        for number in range(start, end):
            described = described_partition(number, topic.partitions[number], reachable, image.brokers)
            partitions.append(
                DescribeTopicPartitionsResponsePartition(
                    partition_index=number,
                    leader_id=described.leader_id,
                    leader_epoch=described.leader_epoch,
                    replica_nodes=described.replica_nodes,
                    isr_nodes=described.isr_nodes,
                    eligible_leader_replicas=list(topic.partitions[number].elr),
                    last_known_elr=list(topic.partitions[number].last_elr),
                    offline_replicas=described.offline_replicas,
                )
            )
            yield
        return DescribeTopicPartitionsResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=partitions,
            topic_authorized_operations=call.operations(ResourceType.TOPIC, topic.name),
        )


def _unknown(name: str, call: Call) -> DescribeTopicPartitionsResponseTopic:
    refusal = name_refusal(name)
    code = refusal.code if refusal is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=call.operations(ResourceType.TOPIC, name),
    )


def _refused(request: DescribeTopicPartitionsRequest) -> Steps[DescribeTopicPartitionsResponse]:
    response = DescribeTopicPartitionsResponse()
    for topic in request.topics:
        refused = DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
        response.topics.append(refused)
        yield
    return response
