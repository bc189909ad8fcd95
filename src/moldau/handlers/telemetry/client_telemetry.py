"""Takes what clients push, for one broker: judges it, inflates it, and hands it to the topic.

What was pushed may inflate to `INFLATED_TIMES` as much as the broker takes of a client, and no more is ever allocated
for it. One payload is inflated at a time, in the executor. What waits to be inflated or written is counted in bytes,
and a push that would be too much is refused; the client tries again after its interval.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from functools import partial

from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.telemetry.instances import TelemetryInstance, TelemetryInstances
from moldau.handlers.telemetry.subscribing import NOTHING_ASKED, ClientMetricsSubscriptions
from moldau.names import short_id
from moldau.notices import Notices
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest
from moldau.replication.telemetry.counts import TelemetryCounts
from moldau.replication.telemetry.inflating import NOT_COMPRESSED, inflated
from moldau.replication.telemetry.writing import PushedMetrics, PushedMetricsWriter
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.turns import Steps

INFLATED_TIMES, INFLATED_BYTES_MAX = 16, 64 << 20
"""What a push may inflate to: so many times telemetry.max.bytes, but no more than that."""
HELD_BYTES_MAX = 32 << 20
"""The most bytes that wait to be inflated or written, unless one push alone has more."""
notices = Notices(logging.getLogger(__name__))


class ClientTelemetry:
    """`writer` writes to the topic of `client.metrics.topic`; what is pushed while none is set is judged, and goes
    nowhere, as in a Kafka without a receiver."""

    def __init__(self, metadata: MetadataCache, writer: PushedMetricsWriter, runtime: Runtime, counts: TelemetryCounts):
        self.instances = TelemetryInstances()
        self.counts = counts
        self._metadata = metadata
        self._writer = writer
        self._runtime = runtime
        self._subscriptions = ClientMetricsSubscriptions()
        self._inflating = asyncio.Lock()
        self._waiting_bytes = 0

    @property
    def max_bytes(self) -> int:
        return self._metadata.config.telemetry_max_bytes

    @property
    def held_bytes(self) -> int:
        """What waits to be inflated or written."""
        return self._waiting_bytes + self._writer.held_bytes

    def new_id(self) -> uuid.UUID:
        return self._runtime.random.uuid()

    def now_ms(self) -> int:
        return int(self._runtime.clock.elapsed_s() * 1000)

    def instance(self, client: uuid.UUID, call: Call) -> Steps[TelemetryInstance]:
        """The client with this id, with what the subscriptions ask it for today."""
        self._subscriptions.follow(self._metadata.image.client_metrics)
        now_ms, version = self.now_ms(), self._subscriptions.version
        found = self.instances.find(client, version, now_ms)
        if found is not None:
            return found
        asked = NOTHING_ASKED
        if self._metadata.image.client_metrics:
            asked = yield from self._subscriptions.asked(attributes_of(client, call))
            for name, why in self._subscriptions.refusals.items():
                notices.warning(name, "the client metrics %s are asked of no client: %s", name, why)
        return self.instances.put(client, asked, version, now_ms)

    async def take(self, request: PushTelemetryRequest, call: Call) -> ErrorCode:
        """Hand a push that was judged to the topic; returns before it is there."""
        size = len(request.metrics)
        most = max(self.max_bytes, min(INFLATED_TIMES * self.max_bytes, INFLATED_BYTES_MAX))
        if self.held_bytes and self.held_bytes + size > max(HELD_BYTES_MAX, most):
            self.counts.crowded += 1
            notices.warning(
                "",
                "metrics of clients are refused, since those before wait to be written to the topic %s",
                self._metadata.config.client_metrics_topic,
            )
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        self._waiting_bytes += size
        try:
            async with self._inflating:
                payload = request.metrics
                if request.compression_type != NOT_COMPRESSED:
                    payload = await self._runtime.run(partial(inflated, request.compression_type, payload, most))
        except KafkaError as wrong:
            self.counts.refused += 1
            return wrong.code
        finally:
            self._waiting_bytes -= size
        self.counts.bytes += size
        if self._metadata.config.client_metrics_topic:
            self._writer.put(pushed(request, call, payload, self._runtime.clock.now_ms()))
        return ErrorCode.NONE

    async def stop(self) -> None:
        """Write what was taken, as far as that can be done soon."""
        await self._writer.stop()


def attributes_of(client: uuid.UUID, call: Call) -> Mapping[str, str]:
    """What `match` may ask of a client."""
    session = call.session
    return {
        "client_instance_id": short_id(client),
        "client_id": call.client_id or "",
        "client_software_name": session.software_name,
        "client_software_version": session.software_version,
        "client_source_address": session.peer.host,
        "client_source_port": str(session.peer.port),
    }


def pushed(request: PushTelemetryRequest, call: Call, payload: bytes, now_ms: int) -> PushedMetrics:
    """The record of a push: see docs/metrics.md."""
    attributes = attributes_of(request.client_instance_id, call)
    headers = {
        **attributes,
        "principal": call.session.principal,
        "terminating": str(request.terminating).lower(),
        "push_time_ms": str(now_ms),
    }
    named = [(name, value.encode("utf-8", "replace")) for name, value in headers.items()]
    return PushedMetrics(attributes["client_instance_id"].encode(), payload, now_ms, named)
