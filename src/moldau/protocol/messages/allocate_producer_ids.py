"""AllocateProducerIds (API key 67): request and response; a broker gets its next block from the controller."""

from moldau.protocol.schema import INT16, INT32, INT64, message


@message
class AllocateProducerIdsRequest:
    broker_id: int = INT32()
    broker_epoch: int = INT64(default=-1)


@message
class AllocateProducerIdsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    producer_id_start: int = INT64()
    producer_id_len: int = INT32()
