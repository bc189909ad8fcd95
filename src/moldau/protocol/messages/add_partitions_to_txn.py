"""AddPartitionsToTxn (API key 24): request and response, in all versions.

Clients send versions before 4, for one transaction; brokers send version 4 and later, for many (KIP-890)."""

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, INT64, STRING, message


@message
class AddPartitionsToTxnTopic:
    name: str = STRING()
    partitions: list[int] = ARRAY(INT32)


@message
class AddPartitionsToTxnTransaction:
    transactional_id: str = STRING(since=4)
    producer_id: int = INT64(since=4)
    producer_epoch: int = INT16(since=4)
    verify_only: bool = BOOL(since=4)
    topics: list[AddPartitionsToTxnTopic] = ARRAY(AddPartitionsToTxnTopic, since=4)


@message
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = ARRAY(AddPartitionsToTxnTransaction, since=4)
    v3_and_below_transactional_id: str = STRING(until=3)
    v3_and_below_producer_id: int = INT64(until=3)
    v3_and_below_producer_epoch: int = INT16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = ARRAY(AddPartitionsToTxnTopic, until=3)


@message
class AddPartitionsToTxnPartitionResult:
    partition_index: int = INT32()
    partition_error_code: int = INT16()


@message
class AddPartitionsToTxnTopicResult:
    name: str = STRING()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = ARRAY(AddPartitionsToTxnPartitionResult)


@message
class AddPartitionsToTxnResult:
    transactional_id: str = STRING(since=4)
    topic_results: list[AddPartitionsToTxnTopicResult] = ARRAY(AddPartitionsToTxnTopicResult, since=4)


@message
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16(since=4)
    results_by_transaction: list[AddPartitionsToTxnResult] = ARRAY(AddPartitionsToTxnResult, since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = ARRAY(AddPartitionsToTxnTopicResult, until=3)
