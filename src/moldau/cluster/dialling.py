"""How this broker connects to another one of its cluster: with TLS and a login if the other's listener for
brokers has them."""

import logging

from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode, KafkaError
from moldau.notices import Notices
from moldau.peers.address import Address
from moldau.peers.introduction import Identity, link_to_broker
from moldau.peers.link import Link

DIAL_MS = 5_000
_WITH_TLS = ("SSL", "SASL_SSL")
_WITH_SASL = ("SASL_PLAINTEXT", "SASL_SSL")
_notices = Notices(logging.getLogger(__name__))


async def dialled(broker: BrokerImage, identity: Identity, timeout_ms: int) -> Link:
    """A new connection to that broker. Raises `KafkaError`."""
    protocol, tls = broker.endpoints[0].protocol, identity.tls()
    if protocol in _WITH_TLS and tls is None:
        raise KafkaError(
            ErrorCode.NETWORK_EXCEPTION,
            f"broker {broker.id} answers brokers with {protocol}, and no listener here has TLS: give this broker "
            "one with SSL",
        )
    if protocol not in _WITH_TLS:
        tls = None
        if identity.expects_tls:
            line = "broker %d is reached without TLS: its listener for brokers, %s, has the protocol %s"
            _notices.warning(str(broker.id), line, broker.id, broker.endpoints[0].name, protocol)
    logs_in = protocol in _WITH_SASL
    if logs_in and identity.log_in is None:
        raise KafkaError(
            ErrorCode.NETWORK_EXCEPTION,
            f"broker {broker.id} answers brokers with {protocol}, and the listener for brokers here has no SASL: give "
            "inter.broker.listener.name a listener with SASL, as there",
        )
    limit_ms = min(timeout_ms, DIAL_MS)
    return await link_to_broker(address_of(broker), broker.id, identity, limit_ms, tls, logs_in=logs_in)


def address_of(broker: BrokerImage) -> Address:
    """Where the broker answers other brokers: it says by its own settings which listener that is, and registers that
    one first."""
    endpoint = broker.endpoints[0]
    return Address(endpoint.host, endpoint.port)
