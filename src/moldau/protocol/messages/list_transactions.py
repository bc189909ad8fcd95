"""ListTransactions (API key 66): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, INT32, INT64, STRING, message


@message
class ListTransactionsRequest:
    state_filters: list[str] = ARRAY(STRING)
    producer_id_filters: list[int] = ARRAY(INT64)
    duration_filter: int = INT64(since=1, default=-1)
    transactional_id_pattern: str | None = STRING(since=2, nullable=2, default=None)


@message
class TransactionState:
    transactional_id: str = STRING()
    producer_id: int = INT64()
    transaction_state: str = STRING()


@message
class ListTransactionsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    unknown_state_filters: list[str] = ARRAY(STRING)
    transaction_states: list[TransactionState] = ARRAY(TransactionState)
