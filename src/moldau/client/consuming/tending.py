"""What a member of a group needs while its application is in the middle of a run of records that it iterates over.

Asking for a record is a sign of life, automatic commits keep their interval, and a rebalance does not wait for the end
of the run: the records that were not asked for are taken back, and iteration comes to the rebalance with the next one.
"""

import asyncio
from collections.abc import Callable

from moldau.client.consuming.commits import Commits
from moldau.client.consuming.groups.membership import GroupMembership
from moldau.client.consuming.rebalancing import Rebalancing
from moldau.tasks import ended


class Tending:
    """Looks after one consumer every `interval_ms`, while it is subscribed. `commits_automatically` says whether the
    interval of automatic commits is to be kept now."""

    def __init__(
        self,
        membership: GroupMembership,
        rebalancing: Rebalancing,
        commits: Commits,
        interval_ms: int,
        commits_automatically: Callable[[], bool],
    ):
        self._membership = membership
        self._rebalancing = rebalancing
        self._commits = commits
        self._interval_ms = interval_ms
        self._commits_automatically = commits_automatically
        self._progress = (0, 0)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, on the running loop; nothing if it has begun."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        await ended(self._task)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._interval_ms / 1000)
            handout, now_s = self._commits.handout, loop.time()
            if handout.walk is None or self._rebalancing.subscription is None:
                continue
            if handout.progress != self._progress:
                self._progress = handout.progress
                self._membership.polled(now_s)
            if self._membership.is_due(now_s):
                handout.cut()
            elif self._commits_automatically() and self._commits.due(now_s):
                self._commits.begin(self._commits.processed())
