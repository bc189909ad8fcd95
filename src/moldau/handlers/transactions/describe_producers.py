"""DescribeProducers (key 61), all versions: the state of a partition's producers, as this replica knows them; followers
answer, too (KIP-664).

A partition that is named twice is answered once: a small request must not cause an unbounded reply. A topic that the
client may not read is refused whether it exists or not, unless its name is invalid.
"""

from collections.abc import Callable

from moldau.cluster.controlling.controller import Refusal, name_refusal
from moldau.cluster.state.image import Image
from moldau.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from moldau.replication.lookups import active_producers
from moldau.replication.replicas import Replicas
from moldau.requests.access import READ_TOPIC
from moldau.requests.session import Call
from moldau.turns import Steps


class DescribeProducers:
    def __init__(self, replicas: Replicas, image: Callable[[], Image]):
        self._replicas = replicas
        self._image = image

    def __call__(self, request: DescribeProducersRequest, call: Call) -> Steps[DescribeProducersResponse]:
        asked: dict[str, dict[int, None]] = {}
        for topic in request.topics:
            asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
            yield
        response = DescribeProducersResponse()
        for name, indexes in asked.items():
            topic_response = TopicResponse(name=name)
            refusal = _refusal(name, call)
            yield
            for index in indexes:
                topic_response.partitions.append((yield from self._partition(name, index, refusal)))
            response.topics.append(topic_response)
        return response

    def _partition(self, topic: str, index: int, refusal: Refusal | None) -> Steps[PartitionResponse]:
        yield
        if refusal is not None:
            return PartitionResponse(partition_index=index, error_code=refusal.code, error_message=refusal.message)
        replica = self._replicas.find(topic, None, index)
        if replica is None:
            absence = self._replicas.absence(topic, None, index)
            message = absence.sentence if topic not in self._image().topics else None
            return PartitionResponse(partition_index=index, error_code=absence, error_message=message)
        response = PartitionResponse(partition_index=index)
        for producer in active_producers(replica):
            response.active_producers.append(
                ProducerState(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    last_sequence=producer.last_sequence,
                    last_timestamp=producer.last_timestamp,
                    coordinator_epoch=producer.coordinator_epoch,
                    current_txn_start_offset=producer.transaction_start,
                )
            )
            yield
        return response


def _refusal(topic: str, call: Call) -> Refusal | None:
    """Why all partitions of the topic are refused; None if they are not."""
    refusal = name_refusal(topic)
    if refusal is None and not call.may(READ_TOPIC, topic):
        return Refusal(READ_TOPIC.denied, READ_TOPIC.denied.sentence)
    return refusal
