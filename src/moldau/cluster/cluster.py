"""The parts of a broker that know and change its cluster's metadata, put together.

metadata      the current image, the settings in force, subscribers         (MetadataCache)
queue         the one order of all changes                                  (ChangeQueue)
topics        created, deleted, enlarged                                    (TopicChanges)
configs       settings of topics, brokers and groups                        (ConfigChanges)
directories   the log folder of each of this broker's partitions            (DirectoryPlacement)
registration  this broker's node                                            (Registration)
producer_ids  in blocks                                                     (ProducerIds)
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from moldau.cluster.beginning import begin
from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.cluster.controlling.config_changes import ConfigChanges
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.controlling.directory_placement import ChooseFolders, DirectoryPlacement, FolderInTheWay, FolderOf
from moldau.cluster.controlling.topic_changes import TopicChanges
from moldau.cluster.producer_ids import ProducerIds
from moldau.cluster.registration import Registration
from moldau.cluster.state.image import BrokerImage, Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.metadata_store.store import Check, MetadataStore
from moldau.names import TopicPartition
from moldau.protocol.apis import Api
from moldau.runtime import Runtime


class Cluster:
    """Made by `Cluster.open`; used from one event loop."""

    elect: Callable[..., Awaitable[Collection[TopicPartition]]] | None = None
    """Lets other replicas lead (see `Acting.elect`); None for a broker alone, whose partitions have no others."""
    forget_broker: Callable[[int], Awaitable[Refusal | None]] | None = None
    """Forgets a broker that has left for good (see `ForgottenBrokers`); None for a broker alone."""

    known_brokers: Callable[[], Awaitable[Mapping[int, BrokerImage]]] | None = None
    """All brokers of the cluster, also those that are away (see `read_known`); None for a broker alone."""
    ask_brokers: Callable[[int, Api, Any, int], Awaitable[Any]] | None = None
    """Asks another broker: its id, the API, the request, the milliseconds to wait; None for a broker alone."""

    @property
    def unclean_elections(self) -> int:
        """How many this broker has made as the controller."""
        return 0

    def has_controller(self) -> bool:
        """Whether there is a controller, as far as this broker knows."""
        return True

    def __init__(
        self,
        store: MetadataStore,
        config: BrokerConfig,
        runtime: Runtime,
        image: Image,
        fence: Check,
        place: ChooseFolders | None,
        made_in: FolderOf | None,
        in_the_way: FolderInTheWay,
    ):
        self._store = store
        self.metadata = MetadataCache(config, image)
        self.queue = ChangeQueue(self.metadata, runtime)
        self.queue.begin(store, fence)
        self.directories = DirectoryPlacement(self.metadata, self.queue, place, made_in, in_the_way)
        self.topics = TopicChanges(self.metadata, self.queue, self.directories, runtime, is_alone=True)
        self.configs = ConfigChanges(self.metadata, self.queue)
        self.registration = Registration(self.metadata, self.queue, runtime)
        self.producer_ids = ProducerIds(config.node_id, store, self.queue)

    @classmethod
    async def open(
        cls,
        store: MetadataStore,
        config: BrokerConfig,
        runtime: Runtime,
        *,
        clean: bool = True,
        cluster_id: str | None = None,
        directories: Mapping[str, bool] | None = None,
        place: ChooseFolders | None = None,
        made_in: FolderOf | None = None,
        in_the_way: FolderInTheWay = lambda _: None,
    ) -> "Cluster":
        """Read the store, or begin a cluster in it (with `cluster_id` if it has one already), and become its
        controller.

        `clean`: this broker stopped cleanly; after an unclean stop it leads its partitions in new epochs.
        `directories` maps the id of each available log folder to whether that folder was left clean. Raises
        `BrokerConflict`, `ConfigError` or `StorageError`; the session in the store is ended then.
        """
        try:
            image, fence = await begin(
                store, config.node_id, runtime, clean=clean, cluster_id=cluster_id, directories=directories
            )
            cluster = cls(store, config, runtime, image, fence, place, made_in, in_the_way)
            await cluster.queue.start()
            return cluster
        except BaseException:
            await store.close()
            raise

    @property
    def store(self) -> MetadataStore:
        """This broker's session in the store."""
        return self._store

    @property
    def decided_on(self) -> Image | None:
        """The image that this broker decides on as the controller; None if it is not the controller."""
        return self.image

    async def close(self) -> None:
        """End the session, after the change that is being made."""
        await self.queue.close()

    @property
    def image(self) -> Image:
        """The current image, as `metadata` has it."""
        return self.metadata.image
