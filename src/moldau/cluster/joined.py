"""A broker of several: the same parts as those of a broker alone (`cluster.py`), but what it knows comes from the
controller, and what it changes goes there.

    membership   its session in the shared store, and its registration
    acting       its standing for controller, and its work as one
    following    the stream of changes, from the controller to `metadata`
    directories  the log folders of its partitions, reported to the controller
    links        to the controller, and to the other brokers
"""

import asyncio
import contextlib
import logging
import ssl
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.broker_links import BrokerLinks
from moldau.cluster.cluster import Cluster
from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.controlling.acting import Acting
from moldau.cluster.controlling.assigned_directories import InDirectory
from moldau.cluster.controlling.change_stream import POLL_S
from moldau.cluster.controlling.controller import NewTopic, Refusal
from moldau.cluster.controlling.log_ends import WantedLog, ends_in, log_ends, request_for
from moldau.cluster.controlling.topic_changes import TopicChanges, lack_of_brokers
from moldau.cluster.directory_messages import outcomes, to_request
from moldau.cluster.directory_reports import DirectoryReports
from moldau.cluster.following import Following
from moldau.cluster.lease_keeping import AWAY_S, LeaseKeeping
from moldau.cluster.membership import Membership, SharedStore
from moldau.cluster.producer_ids import MemberProducerIds
from moldau.cluster.registration import Registration
from moldau.cluster.state.eligibility import LogEnd
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Endpoint, Image, TopicImage
from moldau.cluster.state.isr_changes import ProposedIsr, codes_of, request_of
from moldau.cluster.state.lease import NOT_REGISTERED, Lease
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.own_leaderships import without_leaderships
from moldau.cluster.state.registrations import read_known
from moldau.cluster.successor import SuccessorSearch
from moldau.config import BrokerConfig
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.log.folders.folders import LogFolders
from moldau.metadata_store.store import MetadataStore
from moldau.names import counted
from moldau.peers.introduction import Identity
from moldau.peers.link import Link
from moldau.protocol.apis import ALTER_PARTITION, ASSIGN_REPLICAS_TO_DIRS, CREATE_TOPICS, GET_REPLICA_LOG_INFO
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.runtime import Runtime

ALTER_MS = REPORT_MS = 30_000
CREATE_MS = 10_000
"""The longest wait for a topic that a broker needs itself: the client that asked for it must not lose patience."""
ENDS_MS = 5_000
SHOWN_S = 5.0
"""How long a broker waits for a topic that the controller has made for it."""
KNOWN_S = 5.0
RETRY_S = 0.1

logger = logging.getLogger(__name__)


class JoinedCluster(Cluster):
    """Made by `join`; used from one event loop."""

    producer_ids: MemberProducerIds
    directories: DirectoryReports

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        shared: SharedStore,
        in_trouble: Callable[[BrokerConflict], None],
        folders: LogFolders,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        log_in: Callable[[Link, int], Awaitable[None]] | None = None,
    ):
        self._config = config
        self._runtime = runtime
        self._tls, self._log_in = tls, log_in
        self.acting = Acting(config, runtime, self._log_ends_of)
        self._locator = ControllerLocator()
        self._folders = folders
        self._served_in = -1
        """The registration that the log folders say they are served in."""
        self.membership = Membership(config.node_id, config.broker_rack, shared, runtime, self._served, in_trouble)
        self.queue = self.acting.queue
        self.configs = self.acting.configs
        self.directories = DirectoryReports(config.node_id, lambda: self.image, folders.directory_of, self._report)
        self.registration = MemberRegistration(self.membership, self.acting, folders)
        self.producer_ids = MemberProducerIds(config.node_id, lambda: self.membership.store)
        self._lease = Lease(
            shared.timeout_s, config.replica_lag_time_max_ms / 1000, config.replica_fetch_wait_max_ms / 1000
        )
        self._lease_keeping = LeaseKeeping(self._lease, shared.timeout_s, lambda: self.membership.epoch, runtime.clock)

    async def join(self, cluster_id: str | None) -> None:
        """Open the session and read the metadata. Raises `ConfigError`, `StorageError`."""
        config = self._config
        image = await self.membership.join(cluster_id, lambda: self._why_not_begin(cluster_id))
        image = without_leaderships(image, config.node_id)  # until the controller has dealt with its registration
        self.metadata = MetadataCache(config, image, others_write=True)
        self.metadata.subscribe(self._note_registration)
        self.acting.metadata.checks = self.metadata.checks
        membership = self.membership
        identity = Identity(
            image.cluster_id,
            config.node_id,
            lambda: membership.registered_epoch,
            lambda: membership.secret,
            self._tls,
            self._log_in,
            config.brokers_use_tls,
        )
        self._following_link, self.forwarding_link = [
            ControllerLink(self._locator, identity, self._runtime) for _ in range(2)
        ]
        self.links = BrokerLinks(lambda: self.metadata.image, identity)
        self.ask_brokers = self.links.call
        successor = SuccessorSearch(self._locator, lambda: self.metadata.image, identity)
        self.following = Following(
            self.metadata,
            self._following_link,
            lambda: self.acting.stream,
            self._runtime,
            self._lease.controller_answered,
            successor.look,
        )
        self.topics = MemberTopics(self.acting, self.following, self.forwarding_link, self.metadata, self._runtime)

    def _why_not_begin(self, cluster_id: str | None) -> str | None:
        """A broker that was in a cluster never begins another: its records would be there, and no topics."""
        store, connect = self._folders.cluster_store, self._config.zookeeper_connect
        if store is None:
            return None
        return (
            f"there is no cluster at {connect}. This broker's log folders belong to the cluster {cluster_id}, whose "
            f"metadata was at {store}: correct zookeeper.connect, or give this broker an empty folder"
        )

    async def follow(self) -> None:
        """Follow the controller; returns when the metadata shows this broker's registration."""
        self.following.start()
        broker_id = self._config.node_id

        def is_shown(image: Image) -> bool:
            broker = image.brokers.get(broker_id)
            return broker is not None and broker.epoch == self.membership.epoch

        await self.following.until(is_shown)
        self.directories.start()
        self.producer_ids.take_ahead()

    async def _note_registration(self, image: Image, _: Sequence[str]) -> None:
        """Once the controller has dealt with this broker's registration, its log folders say so: after a kill they show
        by it that nothing was lost since."""
        broker = image.brokers.get(self._config.node_id)
        if broker is not None and broker.epoch == self.membership.epoch != self._served_in:
            self._served_in = broker.epoch
            await self._runtime.run(partial(self._folders.note_running, broker.epoch))

    @property
    def store(self) -> MetadataStore:
        return self.membership.store

    @property
    def decided_on(self) -> Image | None:
        return None if self.acting.stream is None else self.acting.metadata.image

    async def hand_over(self) -> None:
        """The first step of a stop: let other replicas lead what this broker leads, and leave every ISR."""
        config, me = self._config, self._config.node_id
        if not config.controlled_shutdown_enable:
            return
        limit_s = config.controlled_shutdown_max_retries * config.controlled_shutdown_retry_backoff_ms / 1000
        handed_over = await self.following.leave(limit_s)
        parts = [part for topic in self.image.topics.values() for part in topic.partitions if me in part.replicas]
        if not handed_over:
            led = counted(sum(part.leader == me for part in parts), "partition")
            logger.warning(
                "no controller answered within %g s, so this broker stops while it still leads %s", limit_s, led
            )
        elif left := sum(part.leader == NO_LEADER for part in parts):
            has = "has" if left == 1 else "have"
            logger.info(
                "%s %s no leader while this broker is away: no other replica is in sync",
                counted(left, "partition"),
                has,
            )

    async def unfollow(self) -> None:
        """Take over no more changes, and answer no other broker's questions for them."""
        await self.directories.stop()
        self.acting.leave()
        await self.following.stop()

    async def close(self) -> None:
        self.disconnect()
        await self.membership.close()

    async def alter_isr(self, proposals: Sequence[ProposedIsr]) -> list[ErrorCode]:
        """Propose ISRs of partitions that this broker leads to the controller; NONE for those that it has accepted.
        Their new state is not in the answer: it comes with the image. Raises `KafkaError` or `StorageError`; then
        nobody knows which of them are accepted, unless it is STALE_BROKER_EPOCH."""
        me, epoch = self._config.node_id, self.membership.epoch
        if self.acting.stream is None:
            return await self.forwarding_link.call(
                ALTER_PARTITION, request_of(me, epoch, proposals), ALTER_MS, lambda reply: codes_of(proposals, reply)
            )
        results = await self.acting.isr.alter(me, epoch, proposals)
        return [one if isinstance(one, ErrorCode) else ErrorCode.NONE for one in results]

    async def known_brokers(self) -> Mapping[int, BrokerImage]:
        """Raises `StorageError` if the store does not answer soon."""
        if sentence := self.store_away():
            raise StorageError(sentence)
        try:
            async with asyncio.timeout(KNOWN_S):
                return await self.store.read(read_known())
        except TimeoutError:
            raise StorageError(f"the cluster's store has not answered within {KNOWN_S:g} s") from None

    def log_ends(self, wanted: Sequence[WantedLog]) -> dict[WantedLog, LogEnd]:
        """How far these logs go here."""
        return log_ends(self._folders, self.image, wanted)

    async def _log_ends_of(
        self, broker_id: int, broker_epoch: int, wanted: Sequence[WantedLog]
    ) -> dict[WantedLog, LogEnd]:
        if broker_id == self._config.node_id:
            return self.log_ends(wanted)
        request = request_for(broker_id, wanted)
        return ends_in(await self.links.call(broker_id, GET_REPLICA_LOG_INFO, request, ENDS_MS), broker_epoch)

    @property
    def unclean_elections(self) -> int:
        return self.acting.longest_logs.unclean

    def has_controller(self) -> bool:
        silent_s = self._lease.controller_silent_s(self._runtime.clock.elapsed_s())
        return silent_s <= POLL_S + AWAY_S or not self._lease_keeping.store_away_s()

    def store_away(self) -> str:
        """A sentence for clients that want to change something while the store does not answer; "" while it does."""
        away_s = self._lease_keeping.store_away_s()
        if not away_s:
            return ""
        store = (
            "the file of the metadata" if (self._config.zookeeper_connect or "").startswith("file:") else "ZooKeeper"
        )
        return (
            f"{store} has not answered broker {self._config.node_id} for {away_s:.0f} s, and nothing can be created or "
            "changed until it does"
        )

    def disconnect(self) -> None:
        """Close the connections to other brokers."""
        for links in (self.links, self.forwarding_link, self._following_link):
            links.close()

    def may_lead(self, followers_silent_s: float) -> bool:
        """Whether this broker may lead a partition with several replicas: see `Lease.may_lead`."""
        broker = self.metadata.image.brokers.get(self._config.node_id)
        shown = NOT_REGISTERED if broker is None else broker.epoch
        return self._lease.may_lead(shown, self._runtime.clock.elapsed_s(), followers_silent_s)

    async def _report(self, placed: Sequence[InDirectory]) -> list[ErrorCode]:
        epoch = self.membership.epoch
        if self.acting.stream is not None:
            return await self.acting.assign_directories(self._config.node_id, epoch, placed)
        request = to_request(self._config.node_id, epoch, placed)
        return await self.forwarding_link.call(
            ASSIGN_REPLICAS_TO_DIRS, request, REPORT_MS, lambda answer: outcomes(answer, placed)
        )

    async def _served(self, store: MetadataStore) -> None:
        async with asyncio.TaskGroup() as parts:
            for part in (self.acting, self._locator, self._lease_keeping):
                parts.create_task(part.serve(store))


class MemberRegistration(Registration):
    """This broker's node, in whichever session it has."""

    def __init__(self, membership: Membership, acting: Acting, folders: LogFolders):
        self._membership = membership
        self._acting = acting
        self._folders = folders

    async def register(self, endpoints: Sequence[Endpoint], directories: Sequence[str] = ()) -> None:
        await self._membership.register(endpoints, directories, self._folders.kept_since)

    async def serve_only(self, directories: Sequence[str]) -> None:
        await self._membership.serve_only(directories)
        self._acting.look_at_brokers()  # its own session does not hear what it has written itself


class MemberTopics(TopicChanges):
    """Changes of topics, made here while this broker is the controller. Topics that a broker needs itself are made by
    the controller wherever it is."""

    def __init__(
        self,
        acting: Acting,
        following: Following,
        link: ControllerLink,
        shown: MetadataCache,
        runtime: Runtime,
    ):
        super().__init__(acting.metadata, acting.queue, acting.directories, runtime)
        self._acting = acting
        self._following = following
        self._link = link
        self._shown = shown

    async def create_needed(self, wanted: Sequence[NewTopic]) -> list[tuple[str, TopicImage | Refusal]]:
        deadline_s = asyncio.get_running_loop().time() + CREATE_MS / 1000
        while True:
            try:
                if self._acting.stream is not None:
                    made = await self.create(wanted)
                    refusals = {name: one for name, one in made if isinstance(one, Refusal)}
                else:
                    refusals = await self._asked_for(wanted)
                break
            except KafkaError as error:
                if not error.retriable or asyncio.get_running_loop().time() > deadline_s:
                    raise
            await asyncio.sleep(RETRY_S)
        return [(wish.name, await self._result(wish.name, refusals.get(wish.name))) for wish in wanted]

    async def ensure(self, name: str) -> TopicImage | Refusal:
        topic = self._shown.image.topics.get(name)
        if topic is not None:
            return topic
        wish = self.automatic(name)
        return lack_of_brokers(self._shown.image, wish) or (await self.create_needed([wish]))[0][1]

    async def forget_deleted(self, topic_ids: Sequence[uuid.UUID]) -> None:
        """The controller forgets them, when no broker has them any more."""

    async def _asked_for(self, wanted: Sequence[NewTopic]) -> dict[str, Refusal]:
        topics = [
            CreatableTopic(
                name=wish.name,
                num_partitions=wish.num_partitions,
                replication_factor=wish.replication_factor,
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in wish.configs],
            )
            for wish in wanted
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=CREATE_MS)

        def refusals(answer: object) -> dict[str, Refusal]:
            return {
                one.name: Refusal(error_of(one.error_code), one.error_message)
                for one in answer.topics  # type: ignore[attr-defined]
                if one.error_code
            }

        refused = await self._link.call(CREATE_TOPICS, request, CREATE_MS, refusals)
        if any(one.code is ErrorCode.NOT_CONTROLLER for one in refused.values()):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return refused

    async def _result(self, name: str, refusal: Refusal | None) -> TopicImage | Refusal:
        if refusal is not None and refusal.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            return refusal
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_S):
                await self._following.until(lambda image: name in image.topics)
        topic = self._shown.image.topics.get(name)
        return topic or Refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name} is not known to this broker yet")
