"""How this broker connects to another one of its cluster."""

from moldau.cluster.state.image import BrokerImage
from moldau.peers.address import Address
from moldau.peers.introduction import Identity, link_to_broker
from moldau.peers.link import Link

DIAL_MS = 5_000


async def dialled(broker: BrokerImage, identity: Identity, timeout_ms: int) -> Link:
    """A new connection to that broker. Raises `KafkaError`."""
    return await link_to_broker(address_of(broker), broker.id, identity, min(timeout_ms, DIAL_MS))


def address_of(broker: BrokerImage) -> Address:
    """Where the broker answers other brokers: it says by its own settings which listener that is, and registers that
    one first."""
    endpoint = broker.endpoints[0]
    return Address(endpoint.host, endpoint.port)
