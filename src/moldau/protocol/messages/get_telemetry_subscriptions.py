"""GetTelemetrySubscriptions (API key 71): request and response."""

import uuid

from moldau.protocol.schema import ARRAY, BOOL, INT8, INT16, INT32, STRING, UUID, message


@message
class GetTelemetrySubscriptionsRequest:
    client_instance_id: uuid.UUID = UUID()


@message
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    client_instance_id: uuid.UUID = UUID()
    subscription_id: int = INT32()
    accepted_compression_types: list[int] = ARRAY(INT8)
    push_interval_ms: int = INT32()
    telemetry_max_bytes: int = INT32()
    delta_temporality: bool = BOOL()
    requested_metrics: list[str] = ARRAY(STRING)
