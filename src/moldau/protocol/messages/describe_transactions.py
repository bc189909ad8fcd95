"""DescribeTransactions (API key 65): request and response."""

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING, message


@message
class DescribeTransactionsRequest:
    transactional_ids: list[str] = ARRAY(STRING)


@message
class TopicData:
    topic: str = STRING()
    partitions: list[int] = ARRAY(INT32)


@message
class TransactionState:
    error_code: int = INT16()
    transactional_id: str = STRING()
    transaction_state: str = STRING()
    transaction_timeout_ms: int = INT32()
    transaction_start_time_ms: int = INT64()
    producer_id: int = INT64()
    producer_epoch: int = INT16()
    topics: list[TopicData] = ARRAY(TopicData)


@message
class DescribeTransactionsResponse:
    throttle_time_ms: int = INT32()
    transaction_states: list[TransactionState] = ARRAY(TransactionState)
