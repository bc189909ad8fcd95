"""The handlers of the APIs between brokers; a broker alone has none of them."""

from collections.abc import Callable
from typing import NamedTuple

from moldau.cluster.controlling.change_stream import ChangeStream
from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.handlers.between_brokers.alter_partition import Alter, AlterPartition
from moldau.handlers.between_brokers.assign_replicas_to_dirs import Assign, AssignReplicasToDirs
from moldau.handlers.between_brokers.describe_waiting import DescribeWaiting, ReadLags
from moldau.handlers.between_brokers.envelope import Envelope
from moldau.handlers.between_brokers.follow_cluster import FollowCluster
from moldau.handlers.between_brokers.forwarding import FORWARDED
from moldau.handlers.between_brokers.get_replica_log_info import EndsHere, GetReplicaLogInfo
from moldau.handlers.between_brokers.introduce import Introduce
from moldau.net.server import Handle
from moldau.protocol import apis
from moldau.requests.dispatch import BetweenBrokers
from moldau.requests.gate import Handler
from moldau.requests.session import Session
from moldau.runtime import Runtime


class PeerParts(NamedTuple):
    """The parts of a broker that other brokers of its cluster work with.

    `metadata` is what the broker serves by. While it is the controller, `stream` returns its stream of changes (else
    None), `assign_directories` records the log folders of a broker's partitions, and `alter_isr` judges what leaders
    propose. `log_ends` looks up how far logs of this broker go, `lags` how far groups are behind in them, `requests_of`
    returns what answers the frames of a session. `listener` is the name of the listener that other brokers connect to,
    `secret` returns the cluster's, and `received` the latest image from the controller.
    """

    metadata: MetadataCache
    stream: Callable[[], ChangeStream | None]
    assign_directories: Assign
    alter_isr: Alter
    log_ends: EndsHere
    lags: ReadLags
    requests_of: Callable[[Session], Handle]
    runtime: Runtime
    listener: str
    secret: Callable[[], bytes]
    received: Callable[[], Image]


def handlers_between_brokers(parts: PeerParts) -> BetweenBrokers:
    handlers: dict[int, Handler] = {
        apis.INTRODUCE.key: Introduce(parts.metadata, parts.secret, parts.received, parts.runtime.random),
        apis.FOLLOW_CLUSTER.key: FollowCluster(parts.stream, parts.runtime),
        apis.ALTER_PARTITION.key: AlterPartition(parts.alter_isr),
        apis.GET_REPLICA_LOG_INFO.key: GetReplicaLogInfo(parts.metadata, parts.log_ends),
        apis.DESCRIBE_WAITING.key: DescribeWaiting(lambda: parts.metadata.image, parts.lags),
        apis.ENVELOPE.key: Envelope(parts.requests_of, FORWARDED),
        apis.ASSIGN_REPLICAS_TO_DIRS.key: AssignReplicasToDirs(parts.assign_directories),
    }
    return BetweenBrokers(parts.listener, handlers)
