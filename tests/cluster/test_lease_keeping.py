"""A broker keeps its lease by asking the store, for as long as the store's sessions last."""

import asyncio
from math import inf
from typing import Any

from moldau.cluster.lease_keeping import LeaseKeeping
from moldau.cluster.state.lease import Lease
from moldau.runtime import RealClock, elapsed_s

EPOCH = 7
ASKED_S, GRANTED_S = 3600.0, 2.0


class GrantsLess:
    """A store whose sessions are shorter than those that were asked for."""

    timeout_s = GRANTED_S

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    async def sync(self) -> None:
        self.answered.set()


def test_the_lease_is_not_longer_than_the_session_that_the_store_has_granted() -> None:
    async def scenario() -> None:
        store: Any = GrantsLess()
        lease = Lease(ASKED_S, inf)
        lease.controller_answered(elapsed_s())
        keeping = asyncio.ensure_future(LeaseKeeping(lease, ASKED_S, lambda: EPOCH, RealClock()).serve(store))
        began_s = elapsed_s()
        await store.answered.wait()
        keeping.cancel()
        assert lease.holds(EPOCH, began_s + GRANTED_S)
        assert not lease.holds(EPOCH, elapsed_s() + GRANTED_S + 0.001)

    asyncio.run(scenario())
