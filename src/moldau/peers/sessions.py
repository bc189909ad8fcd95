"""Keeps a link logged in: a broker may end a login after a while, and the client logs in again before (KIP-368).

Between 85 and 95 percent of that time the link begins to hold requests back; the first one that waits has the client
log in again, and then all are sent. A link that nobody uses does not log in again. If a login is refused, the link
closes, and what waited fails with the reason.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.errors import ErrorCode, KafkaError
from moldau.peers.link import Link
from moldau.peers.login import log_in
from moldau.randomness import Random
from moldau.transport.sasl.exchange import ClientExchange

logger = logging.getLogger(__name__)
REPLY_BYTES_MAX: Final = 1 << 20
"""Of a broker that has not authenticated this client, and has proved nothing itself."""
_EARLIEST, _SPREAD = 0.85, 0.1
PAUSE_MS: Final = 1_000
"""Brokers refuse a login that comes sooner after the one before."""


class ClientLogin(NamedTuple):
    """`exchange` makes the client's part of one exchange. It may take as long as an authorization server takes: call it
    in a thread. It raises `KafkaError`."""

    mechanism: str
    exchange: Callable[[], ClientExchange]


class LinkSession:
    """The login of one link."""

    def __init__(self, link: Link, login: ClientLogin, random: Random, timeout_ms: int):
        self._link = link
        self._login = login
        self._random = random
        self._timeout_ms = timeout_ms
        self._again: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Log in. Raises `KafkaError`; the link is of no use then."""
        exchange = await asyncio.to_thread(self._login.exchange)
        lasts_ms = await log_in(self._link, self._login.mechanism, exchange, self._timeout_ms)
        if lasts_ms:
            begins_s = begins_again_ms(lasts_ms, self._random) / 1000
            self._link.connection.hold_after(begins_s, self._wanted)

    def _wanted(self) -> None:
        self._again = asyncio.get_running_loop().create_task(self._log_in_again())

    async def _log_in_again(self) -> None:
        connection = self._link.connection
        try:
            await self.begin()
        except KafkaError as failure:
            connection.close(failure)
        except BaseException as fault:
            connection.close(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the login of this client broke off: {fault!r}"))
            raise
        else:
            logger.debug("logged in again on the connection to %s", connection.name)
            connection.release()


def begins_again_ms(lasts_ms: int, random: Random) -> float:
    """When to log in again, for a login that lasts that long."""
    part = _EARLIEST + _SPREAD * random.below(1_000) / 1_000
    return max(lasts_ms * part, min(PAUSE_MS, lasts_ms))
