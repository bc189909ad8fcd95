"""What answers the requests of a broker of several: what only the controller can answer goes to it, and other brokers
are answered too."""

from typing import cast

from moldau.cluster.cluster import Cluster
from moldau.cluster.joined import JoinedCluster
from moldau.handlers.between_brokers.forwarding import ControllersHandlers, Forwarding
from moldau.handlers.between_brokers.table import PeerParts, handlers_between_brokers
from moldau.handlers.table import BrokerParts, Handlers
from moldau.replication.lag.reading import LagReader
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate


def member_dispatch(parts: BrokerParts, cluster: JoinedCluster, gate: Gate) -> Dispatch:
    """`parts` are those that the broker serves by."""
    acting, turns = cluster.acting, parts.turns
    peers = PeerParts(
        cluster.metadata,
        lambda: acting.stream,
        acting.assign_directories,
        acting.isr.alter,
        cluster.log_ends,
        LagReader(parts.replicas, parts.runtime).read_all,
        lambda session: dispatch.requests_of(session),
        parts.runtime,
        cluster.metadata.config.inter_broker_listener,
        lambda: cluster.membership.secret,
        lambda: cluster.following.received,
    )
    as_controller = parts._replace(cluster=cast(Cluster, acting))
    controllers = ControllersHandlers(
        as_controller,
        lambda: acting.stream is not None,
        Forwarding(cluster.forwarding_link, turns, cluster.store_away),
        turns,
        cluster.metadata,
    )
    handlers = Handlers(parts, controllers)
    dispatch = Dispatch(handlers, gate, turns, handlers_between_brokers(peers), handlers.imports())
    return dispatch
