"""One member of a group that is kept in ZooKeeper: it registers, owns partitions, writes offsets, and leaves.

All members share partitions by the same rule (`sharing`), whenever one of the watched nodes changes: the members, the
subscribed topics, or the session. Then each stops reading, writes its offsets, gives its partitions up, and claims its
new share. If another member still owns one of them, it gives up what it has claimed, and tries again later.

A session that is over, or may be, is never used again: its partitions are lost, and nothing of them is handed out, from
the moment at which ZooKeeper may have given them to others (`holds`). The member then begins anew.

Sources: Algorithm 1 of the Kafka paper, `ZookeeperConsumerConnector` of Kafka 0.7.2 and 0.8.2.
"""

import asyncio
import logging
import math
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from moldau.client.consuming.groups.membership import (
    NO_GENERATION,
    GroupMembership,
    GroupSettings,
    Share,
    SubscribedTopics,
)
from moldau.client.consuming.groups.streams_wanted import STATIC, StreamsWanted
from moldau.client.consuming.groups.zookeeper.group_reading import read_members, read_offsets
from moldau.client.consuming.groups.zookeeper.ownership import Ownership, make_lasting
from moldau.client.consuming.groups.zookeeper.registered_members import (
    GroupNodes,
    check_filter,
    member_id,
    registration,
    topics_of,
)
from moldau.client.consuming.groups.zookeeper.sharing import OwnedPartition, share_of
from moldau.client.routing import Router
from moldau.client.zookeeper.group_names import GroupLayout
from moldau.client.zookeeper.registered_topics import TOPICS, read_topics
from moldau.errors import CommitFailed, ConfigError, ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import (
    Create,
    MetadataStore,
    NodeExists,
    NoNode,
    OutcomeUnknown,
    SessionOver,
    Set,
    StoreConflict,
    children_of,
    node_at,
)
from moldau.names import GroupMetadata, OffsetAndMetadata, TopicPartition
from moldau.tasks import ended

T = TypeVar("T")
QUESTIONS = 6
"""The number of signs of life in the time-out of a session."""
SESSIONS_MAX = 3
"""A session of ours that is over is gone after this many time-outs."""
LOOK_S = 0.25
"""The time between looks at a node of a session of ours that is not over yet."""

logger = logging.getLogger(__name__)


class ZooKeeperMembership(GroupMembership):
    """One membership, described in the module. `backoff_ms` and `retries_max` are those of contested partitions."""

    def __init__(
        self,
        router: Router,
        settings: GroupSettings,
        wake: Callable[[], object],
        *,
        layout: GroupLayout,
        backoff_ms: int,
        retries_max: int,
    ):
        super().__init__(router, settings, wake)
        assert router.registry is not None
        self._sessions = router.registry.sessions
        self._clock = router.runtime.clock
        self._backoff_s, self._retries_max = backoff_ms / 1000, retries_max
        self._nodes = GroupNodes(settings.group_id, layout)
        self._ownership = Ownership(self._nodes)
        self._streams: StreamsWanted | None = None
        self._text = b""
        """The text of this member's node."""
        self._session: MetadataStore | None = None
        self._alive_until_s = -math.inf
        self._has_lapsed = False
        self._taken: dict[TopicPartition, OwnedPartition] | None = None
        """What the consumer reads; None while it owns nothing, or may have lost some of it."""
        self._watched: dict[str, None] = {}
        self._keeping: asyncio.Task[None] | None = None
        self._rebalances = 0
        self._said: dict[str, None] = {}
        self.may_deliver = self.holds

    @property
    def metadata(self) -> GroupMetadata:
        raise ConfigError("a transaction cannot have the offsets of a group in ZooKeeper: write them with the results")

    def subscribed(self, streams: Callable[[], StreamsWanted]) -> None:
        wanted = streams()
        check_filter(wanted)
        self._streams = wanted
        self._text = registration(wanted, self._nodes.layout, self._clock.now_ms())

    def is_due(self, now_s: float) -> bool:
        return self.rejoin_needed or not self.holds()

    def holds(self) -> bool:
        """Whether the partitions that the consumer reads are this member's, and ZooKeeper cannot have given them to
        others. May be called from any thread."""
        return not self._subscribed or (self._taken is not None and self._is_alive())

    def _is_alive(self) -> bool:
        """Whether ZooKeeper cannot have ended the session. Once it may have, the session is never used again: records
        were held back, which only a new beginning hands out."""
        if self._clock.elapsed_s() >= self._alive_until_s:
            self._has_lapsed = True
        return not self._has_lapsed

    def stream_of(self, tp: TopicPartition) -> int | None:
        claim = self._ownership.claims.get(tp)
        return None if claim is None else claim.owned.number

    # -- rebalancing

    async def rebalance(self, share: Share, wanted: SubscribedTopics) -> None:
        self._subscribed = True
        loop = asyncio.get_running_loop()
        deadline_s, tries = loop.time() + self._router.api_timeout_ms / 1000, self._retries_max
        try:
            while True:
                contested: object = None
                try:
                    contested = await self._rebalance(share)
                    if contested is None:
                        return
                    tries -= 1
                except StorageError as failure:  # the session is over, or about to be
                    self._lose_session()
                    if loop.time() > deadline_s:
                        raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(failure)) from None
                    await asyncio.sleep(LOOK_S)
                    continue
                if tries <= 0:
                    raise self._contested(contested)
                await asyncio.sleep(self._backoff_s)
        except BaseException:
            self.rejoin_needed = True
            raise

    def _contested(self, contested: object) -> KafkaError:
        waited_s = self._backoff_s * (self._retries_max - 1)
        return KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"group {self._settings.group_id}: after {self._retries_max} tries in {waited_s:g} s another member still"
            f" owns {contested}: it may be slow to poll; rebalance_retries_max and rebalance_backoff_ms wait longer",
        )

    async def _rebalance(self, share: Share) -> TopicPartition | None:
        """One try. Returns a partition that another member owns, None if all went well. Raises `StorageError`,
        `KafkaError`."""
        if not self._is_alive():
            self._lose_session()
        had = share.owned()
        if had and self.generation < 0:
            await share.lose(had)
        session = await self._registered()
        self.rejoin_needed = False
        if self._taken is not None and self._taken == await self._share(session):
            return None
        had = share.owned()
        if had:
            await share.give_up(had)
        self._taken = None
        await self._ownership.release(session)
        mine = await self._share(session)
        contested = await self._ownership.claim(session, mine)
        if contested is not None:
            return contested
        if session is not self._session:
            raise SessionOver("the session is over")
        self._taken = mine
        self._rebalances += 1
        self.generation = self._rebalances
        await share.take_over(sorted(mine))
        return None

    async def _registered(self) -> MetadataStore:
        """The session, in which this member is registered with what it subscribes to. Raises `KafkaError`,
        `StorageError`."""
        session = await self._router.retrying(self._sessions.current)
        if session is not self._session:
            self._begin(session)
        if not self.member_id:
            random = self._router.runtime.random.uuid().bytes
            self.member_id = member_id(self._settings.group_id, socket.gethostname(), self._clock.now_ms(), random)
        path = f"{self._nodes.members}/{self.member_id}"
        await make_lasting(session, path)
        until_s = asyncio.get_running_loop().time() + SESSIONS_MAX * session.timeout_s
        while True:
            node = await session.read(node_at(path))
            try:
                if node is None:
                    await session.multi([Create(path, self._text, ephemeral=True)])
                elif node.owner != session.session_id:  # ZooKeeper has not ended the session before yet
                    if asyncio.get_running_loop().time() > until_s:
                        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"{path} in ZooKeeper is not ours: delete it")
                    await asyncio.sleep(LOOK_S)
                elif node.data != self._text:
                    await session.multi([Set(path, self._text)])
                else:
                    return session
            except (NodeExists, NoNode, OutcomeUnknown):
                continue

    def _begin(self, session: MetadataStore) -> None:
        self._session, self._watched = session, {}
        self._ownership.forget()
        self._taken, self.generation = None, NO_GENERATION
        if self._keeping is not None:
            self._keeping.cancel()
        self._alive_until_s, self._has_lapsed = self._clock.elapsed_s() + session.timeout_s, False
        self._keeping = asyncio.get_running_loop().create_task(self.watched(self._keep(session)))

    async def _share(self, session: MetadataStore) -> dict[TopicPartition, OwnedPartition]:
        """The partitions that this member is to read, by what the registry has now."""
        streams = self._streams
        assert streams is not None
        await self._watch(session, self._nodes.members, self._members_changed)
        names: Iterable[str] = streams.streams
        if streams.pattern != STATIC:
            await self._watch(session, TOPICS, self._topics_changed)
            names = topics_of(streams, dict.fromkeys(await session.read(children_of(TOPICS))))
        for name in names:
            await self._watch(session, f"{TOPICS}/{name}", self._topics_changed)
        topics = await session.read(read_topics(names))
        members, unreadable = await session.read(read_members(self._nodes))
        for name in unreadable:
            if name not in self._said:
                self._said[name] = None
                logger.warning("group %s: nobody can read what %s subscribes to", self._settings.group_id, name)
        if self.member_id not in members:
            raise SessionOver("the node of this member was deleted")
        return share_of(self.member_id, members, topics, self._nodes)

    async def _watch(self, session: MetadataStore, path: str, look: Callable[[], None]) -> None:
        if path not in self._watched:
            self._watched[path] = None
            await session.watch(path, look)

    def _members_changed(self) -> None:
        self.rejoin_needed = True
        self._wake()

    def _topics_changed(self) -> None:
        self.topics_changed = True
        self._members_changed()

    # -- the session

    async def _keep(self, session: MetadataStore) -> None:
        """Ask the leader of the store again and again: while it answers, nobody else can own the partitions."""
        while True:
            asked_s = self._clock.elapsed_s()
            try:
                await session.sync()
            except SessionOver:
                break
            except StorageError:  # the member holds its partitions no longer if this goes on
                pass
            else:
                if session is self._session:
                    self._alive_until_s = max(self._alive_until_s, asked_s + session.timeout_s)
            if self.overdue():
                logger.warning("group %s: the application did not poll in time", self._settings.group_id)
                break
            await asyncio.sleep(session.timeout_s / QUESTIONS)
        if session is self._session:
            self._lose_session()
            self._wake()

    def _lose_session(self) -> None:
        """Never use the session again. Its nodes go with it, at its time-out at the latest."""
        session, self._session = self._session, None
        if session is not None:
            self._sessions.drop(session)
        self._ownership.forget()
        self._alive_until_s = -math.inf
        self._taken, self.generation, self.rejoin_needed = None, NO_GENERATION, True

    async def leave(self) -> None:
        """Give the partitions up and end the session, so that others need not wait for its time-out."""
        keeping, self._keeping = self._keeping, None
        await ended(keeping)
        self._lose_session()
        self._subscribed = False

    # -- offsets

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Write the offsets of partitions that this member owns; without a subscription, of any. Texts and leader
        epochs have no place there. Raises `KafkaError`: `CommitFailed` if others may own a partition."""
        numbers = {tp: at.offset for tp, at in offsets.items()}
        if not self._subscribed:
            await self._router.retrying(lambda: self._asking(lambda session: self._write(session, numbers)))
            return
        self._identity()  # raises if this is not a member
        session, owned = self._session, len(self._ownership.claims)
        assert session is not None
        try:
            await self._ownership.commit(session, numbers)
        except StorageError as failure:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"committing for group {self._settings.group_id}: {failure}; others may own its partitions now",
            ) from None
        except CommitFailed:
            if len(self._ownership.claims) < owned:
                self._taken, self.rejoin_needed = None, True
            raise

    async def _write(self, session: MetadataStore, numbers: Mapping[TopicPartition, int]) -> None:
        """Write offsets as a program that is no member."""
        places = await self._places(session, numbers)
        for tp in numbers.keys() - places.keys():
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"committing {tp}: there is no such partition")
        for tp, node in (await session.read(read_offsets(self._nodes, places))).items():
            data = str(numbers[tp]).encode()
            await make_lasting(session, node.path)
            try:
                await session.multi([Create(node.path, data) if node.version is None else Set(node.path, data)])
            except StoreConflict as others:
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(others)) from None

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets in ZooKeeper; partitions without one are left out. Raises `KafkaError`."""
        wanted = list(partitions)

        async def read(session: MetadataStore) -> dict[TopicPartition, OffsetAndMetadata]:
            await session.sync()
            places = await self._places(session, wanted)
            found = await session.read(read_offsets(self._nodes, places))
            return {tp: OffsetAndMetadata(node.offset) for tp, node in found.items() if node.offset is not None}

        return await self._router.retrying(lambda: self._asking(read))

    async def _asking(self, work: Callable[[MetadataStore], Awaitable[T]]) -> T:
        """Do this in the session. Raises `KafkaError`, retriable if ZooKeeper is away."""
        session = await self._sessions.current()
        try:
            return await work(session)
        except StorageError as failure:
            if isinstance(failure, SessionOver):
                self._sessions.drop(session)
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(failure)) from None

    async def _places(
        self, session: MetadataStore, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OwnedPartition]:
        """Where the offsets of these partitions are, whoever owns them. Those that do not exist are left out."""
        wanted = list(partitions)
        topics = await session.read(read_topics({tp.topic for tp in wanted}))
        return {
            tp: OwnedPartition("", 0, self._nodes.partition_name(tp.partition, topics[tp.topic][tp.partition]))
            for tp in wanted
            if tp.partition in topics.get(tp.topic, {})
        }
