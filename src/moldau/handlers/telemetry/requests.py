"""GetTelemetrySubscriptions (key 71) and PushTelemetry (key 72), version 0: metrics that clients push (KIP-714).

Both are answered whether or not `client.metrics.topic` is set, as Kafka answers without a receiver; ApiVersions offers
them only while it is, so no client asks otherwise. No right protects them. A client without an id gets one. It may ask
again, or push, when its interval is over (THROTTLING_QUOTA_EXCEEDED), and after its last push not at all
(INVALID_REQUEST). UNKNOWN_SUBSCRIPTION_ID sends it back to ask what it should push; TELEMETRY_TOO_LARGE is about the
bytes on the wire; what cannot be inflated, or inflates to too much, is an INVALID_RECORD.
"""

from typing import Any

from moldau.errors import ErrorCode
from moldau.handlers.telemetry.client_telemetry import ClientTelemetry
from moldau.handlers.telemetry.instances import CODECS, NO_IDS, TelemetryInstance
from moldau.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from moldau.requests.session import Call
from moldau.turns import Steps


class GetTelemetrySubscriptions:
    def __init__(self, telemetry: ClientTelemetry):
        self._telemetry = telemetry

    def __call__(
        self, request: GetTelemetrySubscriptionsRequest, call: Call
    ) -> Steps[GetTelemetrySubscriptionsResponse]:
        telemetry = self._telemetry
        client = request.client_instance_id if request.client_instance_id.int else telemetry.new_id()
        instance = yield from telemetry.instance(client, call)
        error = instance.get(telemetry.now_ms())
        if error:
            telemetry.counts.throttled += 1
            return GetTelemetrySubscriptionsResponse(error_code=error)
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=client,
            subscription_id=instance.number,
            accepted_compression_types=list(CODECS),
            push_interval_ms=instance.asked.interval_ms,
            telemetry_max_bytes=telemetry.max_bytes,
            delta_temporality=True,
            requested_metrics=list(instance.asked.metrics),
        )


class PushTelemetry:
    def __init__(self, telemetry: ClientTelemetry):
        self._telemetry = telemetry

    def __call__(self, request: PushTelemetryRequest, call: Call) -> Steps[Any]:
        telemetry = self._telemetry
        client = request.client_instance_id
        if client in NO_IDS:
            return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
        instance = yield from telemetry.instance(client, call)
        error = instance.push(
            telemetry.now_ms(),
            request.subscription_id,
            request.compression_type,
            len(request.metrics),
            telemetry.max_bytes,
            terminating=request.terminating,
        )
        telemetry.counts.count(error)
        if error or not request.metrics:
            return PushTelemetryResponse(error_code=error)
        return self._taken(request, call, instance)

    async def _taken(
        self, request: PushTelemetryRequest, call: Call, instance: TelemetryInstance
    ) -> PushTelemetryResponse:
        instance.last_error = await self._telemetry.take(request, call)
        return PushTelemetryResponse(error_code=instance.last_error)
