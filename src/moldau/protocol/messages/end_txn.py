"""EndTxn (API key 26): request and response, in all versions."""

from moldau.protocol.schema import BOOL, INT16, INT32, INT64, STRING, message


@message
class EndTxnRequest:
    transactional_id: str = STRING()
    producer_id: int = INT64()
    producer_epoch: int = INT16()
    committed: bool = BOOL()


@message
class EndTxnResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    producer_id: int = INT64(since=5, default=-1)
    producer_epoch: int = INT16(since=5, default=-1)
