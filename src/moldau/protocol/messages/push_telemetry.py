"""PushTelemetry (API key 72): request and response."""

import uuid

from moldau.protocol.schema import BOOL, BYTES, INT8, INT16, INT32, UUID, message


@message
class PushTelemetryRequest:
    client_instance_id: uuid.UUID = UUID()
    subscription_id: int = INT32()
    terminating: bool = BOOL()
    compression_type: int = INT8()
    metrics: bytes = BYTES()


@message
class PushTelemetryResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
