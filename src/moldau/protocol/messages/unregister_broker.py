"""UnregisterBroker (API key 64): request and response, in all versions."""

from moldau.protocol.schema import INT16, INT32, STRING, message


@message
class UnregisterBrokerRequest:
    broker_id: int = INT32()


@message
class UnregisterBrokerResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
