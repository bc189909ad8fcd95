"""How this broker connects to another one of its cluster."""

from moldau.cluster.state.image import BrokerImage
from moldau.peers.address import Address
from moldau.peers.introduction import Identity, link_to_broker
from moldau.peers.link import Link

DIAL_MS = 5_000


async def dialled(broker: BrokerImage, listener: str, identity: Identity, timeout_ms: int) -> Link:
    """A new connection to that broker. `listener` is the name of the listener that brokers connect to; a broker without
    it is reached by its first one. Raises `KafkaError`."""
    endpoint = broker.endpoint(listener) or broker.endpoints[0]
    return await link_to_broker(Address(endpoint.host, endpoint.port), broker.id, identity, min(timeout_ms, DIAL_MS))
