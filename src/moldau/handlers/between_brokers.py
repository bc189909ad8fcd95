"""The handlers of the APIs between brokers; a broker alone has none of them."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from moldau.cluster.change_stream import ChangeStream
from moldau.cluster.metadata_cache import MetadataCache
from moldau.handlers.allocate_producer_ids import AllocateProducerIds
from moldau.handlers.envelope import Envelope
from moldau.handlers.follow_cluster import FollowCluster
from moldau.handlers.forwarding import FORWARDED
from moldau.handlers.introduce import Introduce
from moldau.net.server import Handle
from moldau.protocol import apis
from moldau.requests.gate import Handler
from moldau.requests.session import Session
from moldau.runtime import Runtime


class PeerParts(NamedTuple):
    """The parts of a broker that other brokers of its cluster work with.

    `metadata` is what the broker serves by. While it is the controller, `stream` returns its stream of changes (else
    None), and `take_producer_ids` takes a block of producer ids for the broker of that id. `requests_of` returns what
    answers the frames of a session.
    """

    metadata: MetadataCache
    stream: Callable[[], ChangeStream | None]
    take_producer_ids: Callable[[int], Awaitable[range]]
    requests_of: Callable[[Session], Handle]
    runtime: Runtime


def handlers_between_brokers(parts: PeerParts) -> dict[int, Handler]:
    """By API key."""
    return {
        apis.INTRODUCE.key: Introduce(parts.metadata),
        apis.FOLLOW_CLUSTER.key: FollowCluster(parts.stream, parts.runtime),
        apis.ENVELOPE.key: Envelope(parts.requests_of, FORWARDED),
        apis.ALLOCATE_PRODUCER_IDS.key: AllocateProducerIds(parts.take_producer_ids),
    }
