"""How this broker connects to another one of its cluster: with TLS and a login if the other's listener for
brokers has them. One that is asked all the time is dialled again after growing pauses only."""

import asyncio
import contextlib
import logging
from typing import Final

from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode, KafkaError
from moldau.notices import Notices
from moldau.peers.address import Address
from moldau.peers.introduction import Identity, link_to_broker
from moldau.peers.link import Link

DIAL_MS = 5_000
REDIAL_S: Final = 0.1
REDIAL_S_MAX: Final = 1.0
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


class Redialling:
    """Dials as `dialled`. A broker that could not be reached is dialled again after a pause, which doubles with each
    failure. Callers at the same time share these pauses, so that a dead broker is not dialled once for each of them;
    they wait no longer than their time-out. Another broker, or another registration of this one, is dialled at once."""

    def __init__(self) -> None:
        self._broker: BrokerImage | None = None
        self._pause_s = 0.0
        """0 unless the last one failed."""
        self._next_s = 0.0
        """By the loop's time: not to be dialled before."""
        self._reached = asyncio.Event()

    async def __call__(self, broker: BrokerImage, identity: Identity, timeout_ms: int) -> Link:
        """A new connection to that broker. Raises `KafkaError`."""
        loop = asyncio.get_running_loop()
        if broker != self._broker:
            self._broker = broker
            self._end_pauses()
        end_s = loop.time() + timeout_ms / 1000
        while (left_s := self._next_s - loop.time()) > 0 and self._broker == broker:
            if end_s <= loop.time():
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"broker {broker.id} could not be reached")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, end_s - loop.time())):
                    await self._reached.wait()
        self._next_s = loop.time() + self._pause_s  # others wait for what comes of this one
        try:
            link = await dialled(broker, identity, max(1, round((end_s - loop.time()) * 1000)))
        except KafkaError:
            if self._broker == broker:
                self._pause_s = min(max(REDIAL_S, 2 * self._pause_s), REDIAL_S_MAX)
                self._next_s = loop.time() + self._pause_s
            raise
        if self._broker == broker:
            self._end_pauses()
        return link

    def _end_pauses(self) -> None:
        self._pause_s = self._next_s = 0.0
        self._reached.set()
        self._reached = asyncio.Event()


def address_of(broker: BrokerImage) -> Address:
    """Where the broker answers other brokers: it says by its own settings which listener that is, and registers that
    one first."""
    endpoint = broker.endpoints[0]
    return Address(endpoint.host, endpoint.port)
