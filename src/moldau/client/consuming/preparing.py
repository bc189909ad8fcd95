"""The slow work that must be done before records are handed out: metadata, a rebalance, start positions.

One task at a time does it. `poll` starts the task and waits for it as long as it would wait for records; the task
outlives the call, and a later call finds its outcome. Until then nothing is handed out or committed automatically.

Some of this work becomes due by the time alone, and wakes nobody. A call that waits for long therefore looks again at
the times that `look_again_s` returns.
"""

import asyncio
from collections.abc import Callable

from moldau.client.consuming.groups.membership import GroupMembership
from moldau.client.consuming.positions import PositionLocator
from moldau.client.consuming.rebalancing import Rebalancing
from moldau.errors import CommitFailed
from moldau.tasks import ended

LOST_S = 0.05
"""The pause after the group has refused a member that does not know it yet."""
LOOK_S = 1.0
"""The longest time between two looks of a call that waits. Each look is a sign of life for `max_poll_interval_ms`, and
begins the automatic commit if it is due."""


class Preparing:
    """The preparations of one consumer, on the running loop; `wake` is called when one has ended."""

    def __init__(
        self,
        membership: GroupMembership,
        rebalancing: Rebalancing,
        positions: PositionLocator,
        wake: Callable[[], object],
    ):
        self.task: asyncio.Task[None] | None = None
        """The one that was started, until `goes_on` has seen its end."""
        self._may_take_once = False
        self._loop = asyncio.get_running_loop()
        self._membership = membership
        self._rebalancing = rebalancing
        self._positions = positions
        self._wake = wake

    def is_due(self, now_s: float) -> bool:
        """Whether something is to be prepared, at this time of the loop. Raises what a person must hear of the group,
        once."""
        if self._membership.fatal is not None:
            failure, self._membership.fatal = self._membership.fatal, None
            raise failure
        return self._rebalancing.is_due(now_s) or self._positions.missing

    def goes_on(self, now_s: float) -> bool:
        """Start the task if it is due; returns whether one is running. Raises what the last one has failed with."""
        may_start = True
        if self.task is not None and self.task.done():
            prepared, self.task = self.task, None
            if not prepared.cancelled():
                prepared.result()
            self._may_take_once = True
            may_start = not self._only_topics(now_s)
        if self.task is None and may_start and self.is_due(now_s):
            self.task = self._loop.create_task(self._prepare())
            self.task.add_done_callback(lambda _: self._wake())
        return self.task is not None

    def lets_take(self, now_s: float) -> bool:
        """Whether records may be taken now. On a slow machine it may be time to look at the topics whenever somebody
        takes records: they are fetched and taken once between two looks."""
        if self.task is not None:
            return False
        if not self.is_due(now_s):
            return True
        may_take_once, self._may_take_once = self._may_take_once, False
        return may_take_once and self._only_topics(now_s)

    def _only_topics(self, now_s: float) -> bool:
        """Whether no more is due than a look at the topics."""
        return not self._membership.is_due(now_s) and not self._positions.missing

    def look_again_s(self, now_s: float) -> float:
        """When a call that waits has to look again, although nothing has woken it, at this time of the loop."""
        look_s = now_s + LOOK_S
        return look_s if self.task is not None else min(look_s, self._rebalancing.next_watch_s)

    async def stop(self) -> None:
        """Cancel the task, and wait for its end."""
        await ended(self.task)
        self.task = None

    async def _prepare(self) -> None:
        if self._rebalancing.is_due(self._loop.time()):
            await self._rebalancing.prepare()
        try:
            await self._positions.locate()
        except CommitFailed:  # the group has gone on without this member, which has to join again first
            if self._rebalancing.subscription is None:
                raise
            await asyncio.sleep(LOST_S)
