"""AddOffsetsToTxn (API key 25): request and response, in all versions."""

from moldau.protocol.schema import INT16, INT32, INT64, STRING, message


@message
class AddOffsetsToTxnRequest:
    transactional_id: str = STRING()
    producer_id: int = INT64()
    producer_epoch: int = INT16()
    group_id: str = STRING()


@message
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
