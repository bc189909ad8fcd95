"""What a connection is given: the server, as its connections know it, and what answers its frames."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from moldau.net.busy_polling import BusyPolling
from moldau.net.fair_share import FairShare
from moldau.net.limits import Limits
from moldau.net.peer import Peer
from moldau.net.pool import Pool
from moldau.net.watchdog import Watchdog
from moldau.notices import Notices
from moldau.replies import Answer

Handle = Callable[[memoryview], Answer]
"""Answers one frame of a connection."""
Connected = Callable[[Peer, str], Handle]
"""A new connection's peer and listener -> what answers its frames."""


class Acceptor(Protocol):
    """The server, as its connections (`net.accepted.Connection`) know it."""

    limits: Limits
    watchdog: Watchdog
    pool: Pool
    shared: memoryview
    busy_polling: BusyPolling | None
    notices: Notices

    @property
    def connected(self) -> Connected: ...
    @property
    def stopwatch(self) -> Callable[[], float]: ...
    def fair_share(self, loop: asyncio.AbstractEventLoop) -> FairShare: ...
    def is_urgent(self, connection: Any) -> bool: ...
    def admit(self, connection: Any, transport: asyncio.Transport) -> bool:
        """Whether a new connection is served now, and counted; otherwise it waits or was turned away."""

    def forget(self, connection: Any) -> None: ...
