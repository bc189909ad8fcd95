"""How a broker keeps its lease (see `lease`): it asks the leader of the store again and again."""

import asyncio
import contextlib
from collections.abc import Callable

from moldau.cluster.state.lease import Lease
from moldau.errors import StorageError
from moldau.metadata_store.store import MetadataStore, SessionOver
from moldau.runtime import Clock

AWAY_S = 5.0
"""A store that has not answered for this long is away: an ensemble that elects a leader takes less."""
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
        self._unanswered_s: float | None = None
        """When the first question was sent that is not answered yet, in this session or in the last one."""

    def store_away_s(self) -> float:
        """For how many seconds the store has not answered; 0 if it answers, or has had little time."""
        if self._unanswered_s is None:
            return 0.0
        silent_s = self._clock.elapsed_s() - self._unanswered_s
        return silent_s if silent_s > AWAY_S else 0.0

    async def serve(self, store: MetadataStore) -> None:
        """Ask in this session until it is over. The broker is registered in it."""
        epoch = self._epoch()
        with contextlib.suppress(SessionOver):
            while True:
                timeout_s = min(self._timeout_s, store.timeout_s)
                self._lease.session_lasts(timeout_s)
                asked_s = self._clock.elapsed_s()
                if self._unanswered_s is None:
                    self._unanswered_s = asked_s
                try:
                    await store.sync()
                except SessionOver:
                    raise
                except StorageError:  # the lease ends if this goes on
                    pass
                else:
                    self._unanswered_s = None
                    self._lease.store_answered(epoch, asked_s)
                await asyncio.sleep(timeout_s / QUESTIONS)
