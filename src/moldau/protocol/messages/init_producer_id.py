"""InitProducerId (API key 22): request and response, in all versions."""

from moldau.protocol.schema import BOOL, INT16, INT32, INT64, STRING, message


@message
class InitProducerIdRequest:
    transactional_id: str | None = STRING(nullable=0)
    transaction_timeout_ms: int = INT32()
    producer_id: int = INT64(since=3, default=-1)
    producer_epoch: int = INT16(since=3, default=-1)
    enable2_pc: bool = BOOL(since=6)
    keep_prepared_txn: bool = BOOL(since=6)


@message
class InitProducerIdResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    producer_id: int = INT64(default=-1)
    producer_epoch: int = INT16()
    ongoing_txn_producer_id: int = INT64(since=6, default=-1)
    ongoing_txn_producer_epoch: int = INT16(since=6, default=-1)
