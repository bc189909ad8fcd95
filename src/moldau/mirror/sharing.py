"""How several workers of a mirror share its partitions: as members of a group in the target cluster.

The group spares work, and nothing depends on it: two workers at one partition are harmless (`copying`). The group's
name has the source's id, so mirrors of two sources into one target do not meet. When a worker dies, the others have its
partitions after its session time-out. One that has an instance id (KIP-345) and is back before that finds its
partitions as they were.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from moldau.client.consuming.assigning import COOPERATIVE
from moldau.client.consuming.groups.classic_membership import ClassicMembership
from moldau.client.consuming.groups.membership import GroupSettings, SubscribedTopics
from moldau.errors import ConfigError, ErrorCode, FencedInstanceId, GroupIdNotFound, KafkaError
from moldau.mirror.ends import ClusterEnd
from moldau.names import TopicPartition
from moldau.notices import Notices

GROUP: Final = "moldau-mirror-"
"""How the names of these groups begin."""
SESSION_S: Final = 10.0
HEARTBEAT_S_MAX, REBALANCE_MS = 2.0, 60_000
LOOK_S: Final = 0.2
AGAIN_S: Final = 2.0
"""After a failure that does not go away by itself."""
REFUSED_MORE_S: Final = 2.0
"""A worker that died has left the group this long after its session time-out, at the latest."""
OTHER_OPTIONS: Final = (
    "workers of this mirror run already, with other options: all of them need the same --topics, --groups, --policy, "
    "--separator, --to-alias, --offset-lag-max, --acls, --sync-group-offsets and --source-heartbeats. Start this one "
    "with theirs, or stop them first"
)


class MemberOptions(NamedTuple):
    """How a worker takes part in the group: `instance` makes it a static member, `session_s` is how long the others
    wait for it. Workers with other `options` are refused by the group."""

    instance: str | None = None
    session_s: float = SESSION_S
    options: str = ""


class SharedCopies(Protocol):
    """What a worker copies: `copies` by partition, which `assign` replaces."""

    @property
    def copies(self) -> Mapping[TopicPartition, Any]: ...

    def assign(self, partitions: Iterable[TopicPartition]) -> None: ...


class Sharing:
    """This worker's part: `copying` copies what the group assigns to it. `name`: of the source, in the group's. Runs in
    `run` until it is cancelled; leaves the group then, unless it is a static member."""

    def __init__(self, target: ClusterEnd, name: str, copying: SharedCopies, notices: Notices, member: MemberOptions):
        self._target = target
        self._group = GROUP + name
        self._copying = copying
        self._notices = notices
        self._member = member
        self._kept_apart_by = f"+{member.options}" if member.options else ""
        self._awake = asyncio.Event()
        self._wanted: dict[str, int] = {}
        self._is_new = member.instance is not None
        self._was_member = False
        self._refused_since_s: float | None = None
        self._membership = ClassicMembership(
            target.router,
            GroupSettings(
                group_id=self._group,
                group_instance_id=member.instance,
                session_timeout_ms=round(member.session_s * 1000),
                heartbeat_interval_ms=round(min(member.session_s / 3, HEARTBEAT_S_MAX) * 1000),
                rebalance_timeout_ms=REBALANCE_MS,
                assignors=(COOPERATIVE,),
                kept_apart_by=self._kept_apart_by,
            ),
            self._awake.set,
        )

    def want(self, topics: Mapping[str, int]) -> None:
        """These topics, with as many partitions, are mirrored now."""
        if dict(topics) != self._wanted:
            self._wanted = dict(topics)
            self._membership.rejoin_needed = True
            self._awake.set()

    async def admitted(self) -> None:
        """Wait until no worker with other options is in the group, before anything is done by one's own. Raises
        `ConfigError` if one stays, and `KafkaError`."""
        while True:
            try:
                protocol = (await self._target.admin.describe_group(self._group)).protocol
            except GroupIdNotFound:
                return
            if protocol in ("", COOPERATIVE + self._kept_apart_by):
                self._refused_since_s = None
                return
            await self._wait(asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Raises `ConfigError` if other workers run with other options or with this one's name, and `KafkaError` if the
        group does not take this worker at the start, such as for a missing right. Later that is waited for."""
        try:
            while True:
                self._awake.clear()
                await self._step()
                try:
                    async with asyncio.timeout(LOOK_S):
                        await self._awake.wait()
                except TimeoutError:
                    pass
        except FencedInstanceId:
            raise ConfigError(
                f"another worker of this mirror has --instance {self._member.instance}: each one needs its own"
            ) from None
        finally:
            await self._membership.leave()

    async def _step(self) -> None:
        membership, now_s = self._membership, asyncio.get_running_loop().time()
        membership.polled(now_s)
        try:
            if membership.fatal is not None:
                failure, membership.fatal = membership.fatal, None
                membership.forget()
                raise failure
            if not self._wanted or not membership.is_due(now_s):
                return
            await membership.rebalance(self, SubscribedTopics(sorted(self._wanted)))
            if membership.generation >= 0:
                self._refused_since_s, self._was_member = None, True
                await self._check_shares()
        except KafkaError as failure:
            if failure.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                await self._wait(now_s)
                return
            if failure.code is ErrorCode.FENCED_INSTANCE_ID or not (failure.retriable or self._was_member):
                raise
            self._notices.warning("", "the workers of the mirror cannot share its partitions now: %s", failure)
            if not failure.retriable:  # such as a right that was taken away: it may be given back
                await asyncio.sleep(AGAIN_S)

    async def _wait(self, now_s: float) -> None:
        """After a refusal, which may come from a worker that died and is a member still. Raises `ConfigError`."""
        if self._refused_since_s is None:
            self._refused_since_s = now_s
        if now_s - self._refused_since_s >= self._member.session_s + REFUSED_MORE_S:
            raise ConfigError(OTHER_OPTIONS)
        self._notices.warning("", "%s; asking again for %g s", OTHER_OPTIONS, self._member.session_s)
        await asyncio.sleep(LOOK_S)

    async def _check_shares(self) -> None:
        """A static member that comes back gets what it had, and the group does not look whether there are other topics
        now. It joins again if so. Raises `KafkaError`."""
        if not self._is_new or not self._copying.copies:
            return
        self._is_new = False
        group = await self._target.admin.describe_group(self._group)
        assigned = {tp for member in group.members for tp in member.partitions}
        wanted = {TopicPartition(name, number) for name, count in self._wanted.items() for number in range(count)}
        if wanted - assigned or not self._wanted.keys() >= {tp.topic for tp in self._copying.copies}:
            self._membership.rejoin_needed = True
            self._awake.set()

    # What the membership calls: `Share`

    def owned(self) -> list[TopicPartition]:
        return sorted(self._copying.copies)

    async def give_up(self, partitions: Sequence[TopicPartition]) -> None:
        self._copying.assign(set(self._copying.copies) - set(partitions))

    async def lose(self, partitions: Sequence[TopicPartition]) -> None:
        await self.give_up(partitions)

    async def take_over(self, partitions: Sequence[TopicPartition]) -> None:
        self._copying.assign({*self._copying.copies, *partitions})
