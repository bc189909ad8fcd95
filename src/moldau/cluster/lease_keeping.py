"""How a broker keeps its lease (see `lease`): it asks the leader of the store again and again."""

import asyncio
import contextlib
from collections.abc import Callable

from moldau.cluster.state.lease import Lease
from moldau.errors import StorageError
from moldau.metadata_store.store import MetadataStore, SessionOver
from moldau.runtime import Clock

QUESTIONS = 6
"""The number of questions in the time-out of a session."""


class LeaseKeeping:
    """`timeout_s` is the time-out that sessions ask for; the store may grant less. `epoch` returns the broker epoch of
    this broker's latest registration."""

    def __init__(self, lease: Lease, timeout_s: float, epoch: Callable[[], int], clock: Clock):
        self._lease = lease
        self._timeout_s = timeout_s
        self._epoch = epoch
        self._clock = clock

    async def serve(self, store: MetadataStore) -> None:
        """Ask in this session until it is over. The broker is registered in it."""
        epoch = self._epoch()
        with contextlib.suppress(SessionOver):
            while True:
                timeout_s = min(self._timeout_s, store.timeout_s)
                self._lease.session_lasts(timeout_s)
                asked_s = self._clock.elapsed_s()
                try:
                    await store.sync()
                except SessionOver:
                    raise
                except StorageError:  # the lease ends if this goes on
                    pass
                else:
                    self._lease.store_answered(epoch, asked_s)
                await asyncio.sleep(timeout_s / QUESTIONS)
