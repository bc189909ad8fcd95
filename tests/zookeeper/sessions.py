"""Sessions in a real ZooKeeper, each scenario below a path of its own."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from harness.patience import stretched, within
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import Runtime

TIMEOUT_S = 20.0
_numbers = itertools.count()

OpenSession = Callable[..., Awaitable[ZooKeeperSession]]


def play(connect: str, scenario: Callable[[OpenSession], Awaitable[None]]) -> None:
    """Run a scenario with a function that opens sessions below a path that nobody else has: there, or at other servers
    that lead there."""
    root = f"/scenario-{next(_numbers)}"

    async def whole() -> None:
        sessions: list[ZooKeeperSession] = []

        async def opened(servers: str = connect, timeout_s: float = stretched(TIMEOUT_S)) -> ZooKeeperSession:
            access = ZooKeeperAccess(servers + root, timeout_s, stretched())
            sessions.append(await ZooKeeperSession.open(access, Runtime()))
            return sessions[-1]

        try:
            await scenario(opened)
        finally:
            await asyncio.gather(*(session.close() for session in sessions))

    asyncio.run(within(whole(), 60))
