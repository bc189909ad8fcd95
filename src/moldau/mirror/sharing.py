"""How several workers of a mirror share its partitions: as members of a group in the target cluster.

The group spares work, and nothing depends on it: two workers at one partition are harmless (`copying`). The group's
name has the source's id, so mirrors of two sources into one target do not meet. When a worker dies, the others have its
partitions after `SESSION_MS`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from moldau.client.consuming.groups.classic_membership import ClassicMembership
from moldau.client.consuming.groups.membership import GroupSettings, SubscribedTopics
from moldau.errors import KafkaError
from moldau.mirror.ends import ClusterEnd
from moldau.names import TopicPartition
from moldau.notices import Notices

GROUP: Final = "moldau-mirror-"
"""How the names of these groups begin."""
SESSION_MS, HEARTBEAT_MS, REBALANCE_MS = 10_000, 2_000, 60_000
LOOK_S: Final = 0.2


class SharedCopies(Protocol):
    """What a worker copies: `copies` by partition, which `assign` replaces."""

    @property
    def copies(self) -> Mapping[TopicPartition, Any]: ...

    def assign(self, partitions: Iterable[TopicPartition]) -> None: ...


class Sharing:
    """This worker's part: `copying` copies what the group assigns to it. `name`: of the source, in the group's. Runs in
    `run` until it is cancelled; leaves the group then."""

    def __init__(self, target: ClusterEnd, name: str, copying: SharedCopies, notices: Notices):
        self._copying = copying
        self._notices = notices
        self._awake = asyncio.Event()
        self._wanted: dict[str, int] = {}
        self._membership = ClassicMembership(
            target.router,
            GroupSettings(
                group_id=GROUP + name,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=HEARTBEAT_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                assignors=("cooperative-sticky",),
            ),
            self._awake.set,
        )

    def want(self, topics: Mapping[str, int]) -> None:
        """These topics, with as many partitions, are mirrored now."""
        if dict(topics) != self._wanted:
            self._wanted = dict(topics)
            self._membership.rejoin_needed = True
            self._awake.set()

    async def run(self) -> None:
        """Raises `KafkaError` for a failure that does not go away, such as a missing right on the group."""
        try:
            while True:
                self._awake.clear()
                await self._step()
                try:
                    async with asyncio.timeout(LOOK_S):
                        await self._awake.wait()
                except TimeoutError:
                    pass
        finally:
            await self._membership.leave()

    async def _step(self) -> None:
        membership, now_s = self._membership, asyncio.get_running_loop().time()
        membership.polled(now_s)
        if membership.fatal is not None:
            raise membership.fatal
        if not self._wanted or not membership.is_due(now_s):
            return
        try:
            await membership.rebalance(self, SubscribedTopics(sorted(self._wanted)))
        except KafkaError as failure:
            if not failure.retriable:
                raise
            self._notices.warning("", "the workers of the mirror cannot share its partitions now: %s", failure)

    # What the membership calls: `Share`

    def owned(self) -> list[TopicPartition]:
        return sorted(self._copying.copies)

    async def give_up(self, partitions: Sequence[TopicPartition]) -> None:
        self._copying.assign(set(self._copying.copies) - set(partitions))

    async def lose(self, partitions: Sequence[TopicPartition]) -> None:
        await self.give_up(partitions)

    async def take_over(self, partitions: Sequence[TopicPartition]) -> None:
        self._copying.assign({*self._copying.copies, *partitions})
