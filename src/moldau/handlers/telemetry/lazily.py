"""The telemetry of a broker, made when the first client asks for it: most brokers need none of its modules."""

from functools import cached_property
from typing import TYPE_CHECKING

from moldau.cluster.cluster import Cluster
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.cluster.broker_links import BrokerLinks
    from moldau.handlers.telemetry.client_telemetry import ClientTelemetry


class LazyTelemetry:
    """`links` lead to the other brokers of the cluster; None if there are none."""

    def __init__(self, cluster: Cluster, replicas: Replicas, runtime: Runtime, links: "BrokerLinks | None"):
        self._parts = cluster, replicas, runtime, links

    @cached_property
    def telemetry(self) -> "ClientTelemetry":
        """Made on first use."""
        from moldau.handlers.telemetry.client_telemetry import ClientTelemetry
        from moldau.replication.telemetry.counts import TelemetryCounts
        from moldau.replication.telemetry.writing import PushedMetricsWriter

        cluster, replicas, runtime, links = self._parts
        counts = TelemetryCounts()
        ask = None if links is None else links.call
        writer = PushedMetricsWriter(cluster.metadata, cluster.topics.ensure, replicas, ask, runtime, counts)
        return ClientTelemetry(cluster.metadata, writer, runtime, counts)

    @property
    def made(self) -> "ClientTelemetry | None":
        """None if no client has asked yet."""
        return self.telemetry if "telemetry" in vars(self) else None

    async def stop(self) -> None:
        if self.made is not None:
            await self.made.stop()
