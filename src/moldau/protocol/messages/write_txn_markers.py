"""WriteTxnMarkers (API key 27): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT8, INT16, INT32, INT64, STRING, message


@message
class WritableTxnMarkerTopic:
    name: str = STRING()
    partition_indexes: list[int] = ARRAY(INT32)


@message
class WritableTxnMarker:
    producer_id: int = INT64()
    producer_epoch: int = INT16()
    transaction_result: bool = BOOL()
    topics: list[WritableTxnMarkerTopic] = ARRAY(WritableTxnMarkerTopic)
    coordinator_epoch: int = INT32()
    transaction_version: int = INT8(since=2)


@message
class WriteTxnMarkersRequest:
    markers: list[WritableTxnMarker] = ARRAY(WritableTxnMarker)


@message
class WritableTxnMarkerPartitionResult:
    partition_index: int = INT32()
    error_code: int = INT16()


@message
class WritableTxnMarkerTopicResult:
    name: str = STRING()
    partitions: list[WritableTxnMarkerPartitionResult] = ARRAY(WritableTxnMarkerPartitionResult)


@message
class WritableTxnMarkerResult:
    producer_id: int = INT64()
    topics: list[WritableTxnMarkerTopicResult] = ARRAY(WritableTxnMarkerTopicResult)


@message
class WriteTxnMarkersResponse:
    markers: list[WritableTxnMarkerResult] = ARRAY(WritableTxnMarkerResult)
