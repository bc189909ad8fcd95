"""Puts the metrics of a broker together from its parts. They are read as they are at each scrape."""

from typing import Protocol

from moldau.cluster.cluster import Cluster
from moldau.config import BrokerConfig
from moldau.coordinators.assembly import Coordinators
from moldau.handlers.telemetry.lazily import LazyTelemetry
from moldau.log.compaction.cleaner import Cleaner
from moldau.log.folders.folders import LogFolders
from moldau.metrics.collecting import MeasuredParts
from moldau.metrics.endpoint import MetricsEndpoint
from moldau.net.measured import RequestTimes
from moldau.net.server import Server
from moldau.replication.replicas import Replicas
from moldau.requests.dispatch import Dispatch
from moldau.runtime import Runtime
from moldau.turns import Turns


class Measured(Protocol):
    """A broker, as its metrics know it."""

    config: BrokerConfig
    cluster: Cluster
    replicas: Replicas
    folders: LogFolders
    coordinators: Coordinators
    cleaner: Cleaner
    dispatch: Dispatch
    server: Server
    turns: Turns
    telemetry: LazyTelemetry
    runtime: Runtime
    ports: dict[str, int]

    @property
    def controls(self) -> bool: ...


def metrics_of(broker: Measured) -> MetricsEndpoint:
    """The endpoint of a broker whose listeners are not open yet: its connections count the times of their requests from
    now on."""
    times = broker.server.times = RequestTimes()
    broker.dispatch.noted = times.noted
    parts = MeasuredParts(
        broker.cluster,
        broker.replicas,
        broker.folders,
        broker.coordinators,
        broker.cleaner,
        broker.server,
        broker.turns,
        broker.runtime,
        lambda: broker.ports,
        lambda: broker.controls,
        lambda: broker.cluster.unclean_elections,
        broker.cluster.ask_brokers,
        lambda: broker.telemetry.made,
    )
    return MetricsEndpoint(parts, times, broker.runtime, broker.config.metrics_names)
