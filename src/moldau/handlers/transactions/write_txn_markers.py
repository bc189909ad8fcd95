"""WriteTxnMarkers (key 27), all versions: markers that end transactions in partitions.

Brokers send it to each other (ClusterAction), and tools send it to end transactions that hang. Only the epochs of
producer and coordinator protect against wrong markers. Version 2 adds the transaction's version. An impossible producer
id or epoch is UNKNOWN_SERVER_ERROR, as in Kafka; the markers of one producer are answered together.
"""

from collections.abc import Awaitable, Callable, Mapping

from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

Errors = Mapping[TopicPartition, ErrorCode]
ErrorsByProducer = dict[int, dict[str, dict[int, ErrorCode]]]
"""Producer id -> topic -> partition -> error."""
MARKERS_PER_TURN = 100


class WriteTxnMarkers:
    def __init__(self, write: Callable[[TransactionMarkers], Awaitable[Errors]], image: Callable[[], Image]):
        self._write = write
        self._image = image

    async def __call__(self, request: WriteTxnMarkersRequest, call: Call) -> Steps[WriteTxnMarkersResponse]:
        errors_of: ErrorsByProducer = {}
        async for marker in in_turns(request.markers, MARKERS_PER_TURN):
            errors = await self._mark(marker)
            async for tp, error in in_turns(errors.items()):
                errors_of.setdefault(marker.producer_id, {}).setdefault(tp.topic, {})[tp.partition] = error
        return _marked(errors_of)

    async def _mark(self, marker: WritableTxnMarker) -> Errors:
        asked = (TopicPartition(topic.name, p) for topic in marker.topics for p in topic.partition_indexes)
        partitions = tuple({tp: None async for tp in in_turns(asked)})
        impossible = ErrorCode.UNKNOWN_SERVER_ERROR
        if marker.producer_id < 0:
            return dict.fromkeys(partitions, impossible)
        if marker.producer_epoch < 0 or marker.transaction_version < 0:
            image, absent = self._image(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return {tp: absent if image.partition(tp) is None else impossible for tp in partitions}
        return await self._write(
            TransactionMarkers(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                marker.transaction_version,
                partitions,
            )
        )


def _marked(errors_of: ErrorsByProducer) -> Steps[WriteTxnMarkersResponse]:
    response = WriteTxnMarkersResponse()
    for producer_id, topics in errors_of.items():
        result = WritableTxnMarkerResult(producer_id=producer_id)
        for topic, partitions in topics.items():
            written = WritableTxnMarkerTopicResult(name=topic)
            for index, error in partitions.items():
                written.partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=error))
                yield
            result.topics.append(written)
            yield
        response.markers.append(result)
        yield
    return response
