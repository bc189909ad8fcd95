"""How a broker introduces itself on a link that it has dialled to another broker of its cluster."""

import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from moldau.error_codes import error_of
from moldau.errors import KafkaError
from moldau.peers.address import Address
from moldau.peers.link import Link, connect
from moldau.peers.proof import proof
from moldau.protocol.apis import INTRODUCE
from moldau.protocol.messages.introduce import IntroduceRequest, IntroduceResponse


class Identity(NamedTuple):
    """How a broker introduces itself. `epoch` returns its broker epoch, -1 while it is not registered. `secret` returns
    the cluster's secret, which proves that it is a broker, and `tls` the context to connect by, None if this broker has
    no TLS. `log_in` logs in on a link, in a time in milliseconds; None if this broker cannot. `expects_tls`: the
    listener for brokers here has TLS."""

    cluster_id: str
    broker_id: int
    epoch: Callable[[], int]
    secret: Callable[[], bytes]
    tls: Callable[[], ssl.SSLContext | None] = lambda: None
    log_in: Callable[[Link, int], Awaitable[None]] | None = None
    expects_tls: bool = False


async def link_to_broker(
    address: Address,
    broker_id: int,
    identity: Identity,
    timeout_ms: int,
    tls: ssl.SSLContext | None = None,
    *,
    logs_in: bool = False,
) -> Link:
    """Dial that broker, with TLS if a context is given, log in where it wants that, and introduce this one. Raises
    `KafkaError`: the address cannot be reached, the login is refused, or another broker or another cluster is there.
    ApiVersions does not ask for that broker: Introduce does, and answers in words."""
    link = await connect(address, f"broker-{identity.broker_id}", timeout_ms, tls=tls)
    try:
        if logs_in:
            assert identity.log_in is not None, "the caller has looked"
            await identity.log_in(link, timeout_ms)
        link.versions.add({INTRODUCE.key: (INTRODUCE.low, INTRODUCE.high)})
        request = IntroduceRequest(
            cluster_id=identity.cluster_id,
            broker_id=identity.broker_id,
            broker_epoch=identity.epoch(),
            expected_id=broker_id,
        )
        answer = await _asked(link, address, request, timeout_ms)
        request.proof = proof(
            identity.secret(), answer.challenge, request.broker_id, request.broker_epoch, request.expected_id
        )
        answer = await _asked(link, address, request, timeout_ms)
    except BaseException:
        link.connection.close()
        raise
    link.versions.add({one.api_key: (one.min_version, one.max_version) for one in answer.api_keys})
    return link


async def _asked(link: Link, address: Address, request: IntroduceRequest, timeout_ms: int) -> IntroduceResponse:
    answer: IntroduceResponse = await link.call(INTRODUCE, request, timeout_ms)
    if answer.error_code:
        raise KafkaError(error_of(answer.error_code), f"{address}: {answer.error_message}")
    return answer
