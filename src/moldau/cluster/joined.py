"""A broker of several: the same parts as those of a broker alone (`cluster.py`), but what it knows comes from the
controller, and what it changes goes there.

    membership   its session in the shared store, and its registration
    acting       its standing for controller, and its work as one
    following    the stream of changes, from the controller to `metadata`
    links        to the controller, and to the other brokers
"""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Sequence

from moldau.cluster import layout
from moldau.cluster.acting import Acting
from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.broker_links import BrokerLinks
from moldau.cluster.cluster import Cluster
from moldau.cluster.controller import NewTopic, Refusal
from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.following import Following
from moldau.cluster.image import Endpoint, Image, TopicImage
from moldau.cluster.membership import Membership, SharedStore
from moldau.cluster.metadata_cache import MetadataCache
from moldau.cluster.producer_ids import ProducerIds
from moldau.cluster.reading import block_end
from moldau.cluster.registration import Registration
from moldau.cluster.store import MetadataStore, OutcomeUnknown, StoreConflict, node_at
from moldau.cluster.topic_changes import TopicChanges
from moldau.config import BrokerConfig
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.protocol.apis import CREATE_TOPICS
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.runtime import Runtime

CREATE_MS = 30_000
SHOWN_S = 5.0
"""How long a broker waits for a topic that the controller has made for it."""
RETRY_S = 0.1


class JoinedCluster(Cluster):
    """Made by `join`; used from one event loop."""

    producer_ids: "MemberProducerIds"

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        shared: SharedStore,
        in_trouble: Callable[[BrokerConflict], None],
    ):
        self._config = config
        self._runtime = runtime
        self.acting = Acting(config, runtime)
        self._locator = ControllerLocator()
        self.membership = Membership(config.node_id, config.broker_rack, shared, runtime, self._served, in_trouble)
        self.queue = self.acting.queue
        self.configs = self.acting.configs
        self.directories = self.acting.directories
        self.registration = MemberRegistration(self.membership)
        self.producer_ids = MemberProducerIds(config.node_id, lambda: self.membership.store)

    async def join(self, cluster_id: str | None) -> None:
        """Open the session and read the metadata. Raises `ConfigError`, `StorageError`."""
        config = self._config
        image = await self.membership.join(cluster_id)
        try:
            self.metadata = MetadataCache(config, image)
        except BaseException:
            await self.membership.close()
            raise
        identity = Identity(image.cluster_id, config.node_id, lambda: self.membership.epoch)
        self._following_link, self.forwarding_link = [
            ControllerLink(self._locator, identity, config.inter_broker_listener, self._runtime) for _ in range(2)
        ]
        self.links = BrokerLinks(lambda: self.metadata.image, identity, config.inter_broker_listener)
        self.following = Following(self.metadata, self._following_link, lambda: self.acting.stream, self._runtime)
        self.topics = MemberTopics(self.acting, self.following, self.forwarding_link, self.metadata, self._runtime)

    async def follow(self) -> None:
        """Follow the controller; returns when the metadata shows this broker's registration."""
        self.following.start()
        broker_id = self._config.node_id

        def is_shown(image: Image) -> bool:
            broker = image.brokers.get(broker_id)
            return broker is not None and broker.epoch == self.membership.epoch

        await self.following.until(is_shown)

    async def unfollow(self) -> None:
        """Take over no more changes, and answer no other broker's questions for them."""
        self.acting.leave()
        await self.following.stop()

    async def close(self) -> None:
        self.disconnect()
        await self.membership.close()

    def disconnect(self) -> None:
        """Close the connections to other brokers."""
        for links in (self.links, self.forwarding_link, self._following_link):
            links.close()

    async def _served(self, store: MetadataStore) -> None:
        await asyncio.gather(self.acting.serve(store), self._locator.serve(store))


class MemberRegistration(Registration):
    """This broker's node, in whichever session it has."""

    def __init__(self, membership: Membership):
        self._membership = membership

    async def register(self, endpoints: Sequence[Endpoint], directories: Sequence[str] = ()) -> None:
        await self._membership.register(endpoints, directories)

    async def serve_only(self, directories: Sequence[str]) -> None:
        await self._membership.serve_only(directories)


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
        return topic if topic is not None else (await self.create_needed([self.automatic(name)]))[0][1]

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

        found = await self._link.call(CREATE_TOPICS, request, CREATE_MS, refusals)
        if any(one.code is ErrorCode.NOT_CONTROLLER for one in found.values()):
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return found

    async def _result(self, name: str, refusal: Refusal | None) -> TopicImage | Refusal:
        if refusal is not None and refusal.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            return refusal
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_S):
                await self._following.until(lambda image: name in image.topics)
        topic = self._shown.image.topics.get(name)
        return topic or Refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name} is not known to this broker yet")


class MemberProducerIds(ProducerIds):
    """Producer ids from blocks that all brokers of the cluster take from the shared store."""

    def __init__(self, broker_id: int, store: Callable[[], MetadataStore]):
        self._broker_id = broker_id
        self._block = range(0)
        self._shared = store
        self._taking = asyncio.Lock()

    async def _first_of_next_block(self) -> int:
        async with self._taking:
            if not self._block:
                self._block = await self.take_for(self._broker_id)
            return self._first()

    async def take_for(self, broker_id: int) -> range:
        """The next block, for that broker. A block whose answer was lost is never used."""
        while True:
            store = self._shared()
            node = await store.read(node_at(layout.PRODUCER_ID_BLOCK))
            start = block_end(node) + 1
            end = start + layout.PRODUCER_IDS_PER_BLOCK - 1
            version = None if node is None else node.version
            with contextlib.suppress(StoreConflict, OutcomeUnknown):
                await store.multi([layout.producer_ids(broker_id, start, end, version)])
                return range(start, end + 1)
