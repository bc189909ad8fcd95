"""The cluster as one broker sees it: the current `Image`, who wants to know of the next one, and how it is changed.

Every change goes one way, one at a time: decide on the image (pure) -> write to the store, off the loop -> read back
what was written -> new image -> subscribers -> answer. So an image never shows what is not on the disk, and what a
caller was told is in every image after that. A block of producer ids is in the store before the first of them is
given away.
"""

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from moldau.cluster import alterations, controller, layout
from moldau.cluster.alterations import Replacement, Wish
from moldau.cluster.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.descriptions import Sources
from moldau.cluster.image import BrokerImage, Endpoint, Image, TopicImage
from moldau.cluster.reading import last_producer_id, read_changes, read_image
from moldau.cluster.store import Delete, MetadataStore, Operation
from moldau.config import BrokerConfig, GroupConfig, TopicConfig, group_config, topic_config, with_changes
from moldau.errors import ConfigError, ErrorCode, StorageError
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition, short_id
from moldau.notices import Notices
from moldau.runtime import Runtime

Place = Callable[[int], Sequence[str]]
"""The ids of the log folders that so many new partitions of this broker go to."""
MadeIn = Callable[[TopicPartition], str | None]
"""The id of the log folder that has this partition's folder for good; None if that is not made yet."""
InTheWay = Callable[[str], Path | None]
"""A folder with records of a topic of this name that is not in the metadata."""
Subscriber = Callable[[Image, Sequence[str]], Awaitable[None] | None]
P = ParamSpec("P")
T = TypeVar("T")
DECIDED_AT_ONCE = 1000
"""The most topics, partitions or settings of a decision made on the loop."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


def _alone(
    change: "Callable[Concatenate[Cluster, P], Coroutine[Any, Any, T]]",
) -> "Callable[Concatenate[Cluster, P], Coroutine[Any, Any, T]]":
    """Makes a change wait for its turn, and run to its end even if whoever asked for it goes away."""

    @wraps(change)
    async def whole(self: "Cluster", /, *args: P.args, **named: P.kwargs) -> T:
        async def in_turn() -> T:
            async with self._changing:
                try:
                    return await change(self, *args, **named)
                except StorageError as error:
                    notices.error(
                        "",
                        "%s. The request (topics, settings, producer ids) was refused and nothing was changed. "
                        "Repair the disk that holds this file, or free space on it",
                        error,
                    )
                    raise

        return await asyncio.shield(asyncio.ensure_future(in_turn()))

    return whole


class Cluster:
    """Made by `Cluster.open`; used from one event loop."""

    def __init__(
        self,
        store: MetadataStore,
        config: BrokerConfig,
        runtime: Runtime,
        image: Image,
        place: Place | None = None,
        made_in: MadeIn | None = None,
        in_the_way: InTheWay = lambda _: None,
    ):
        self._store = store
        self._static = config
        self._runtime = runtime
        self._image = image
        self._config = _with_dynamic(config, image)
        self._topic_configs: dict[str, TopicConfig] = {}
        self._group_config = group_config(self._config, {})
        self._group_configs: dict[str, GroupConfig] = {}
        self._subscribers: list[Subscriber] = []
        self._changing = asyncio.Lock()
        self._touched: deque[str] = deque()
        self._producer_ids = range(0)
        self._place = place
        self._made_in = made_in
        self._in_the_way = in_the_way
        self._endpoints: tuple[Endpoint, ...] = ()
        store.watch(self._touched.append)

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
        place: Place | None = None,
        made_in: MadeIn | None = None,
        in_the_way: InTheWay = lambda _: None,
    ) -> "Cluster":
        """Read the store, or begin a cluster in it (with `cluster_id` if it has one already), and become its
        controller.

        `clean` is whether this broker stopped cleanly: if not, it leads in new epochs; `directories` says that of each
        of its log folders that are there. `place` is asked where new partitions go, `made_in` whether they are there,
        `in_the_way` whether a name is taken by records of no known topic. Raises `StorageError`; the store is closed
        then.
        """
        now_ms = runtime.clock.now_ms()

        def begin() -> Image:
            image = read_image(store)
            operations: list[Operation] = [layout.controller(config.node_id, now_ms)]
            if image is None:
                operations += layout.new_cluster(cluster_id or _new_cluster_id(runtime))
            else:
                operations += layout.missing(store)
                for topic in controller.lead_again(image, config.node_id, clean=clean, directories=directories):
                    operations += layout.topic_changed(image.topics[topic.name], topic)
            store.multi(operations)
            if image is not None:
                return read_changes(store, image, [operation.path for operation in operations])[0]
            image = read_image(store)
            assert image is not None
            return image

        try:
            return cls(store, config, runtime, await runtime.run(begin), place, made_in, in_the_way)
        except BaseException:
            await runtime.run(store.close)
            raise

    async def close(self) -> None:
        """End the session, after the change that is being made."""
        async with self._changing:
            await self._runtime.run(self._store.close)

    @property
    def image(self) -> Image:
        return self._image

    @property
    def config(self) -> BrokerConfig:
        """This broker's settings, those that were changed while it ran included."""
        return self._config

    @property
    def sources(self) -> Sources:
        """Who said what of the settings in force."""
        own, everyone = _dynamic(self.broker_id, self._image)
        return Sources(self._static, self._config, own, everyone)

    @property
    def broker_id(self) -> int:
        return self._static.node_id

    def topic_config(self, name: str) -> TopicConfig:
        """The settings in force for a topic that is in the image."""
        found = self._topic_configs.get(name)
        if found is None:
            found = self._topic_configs[name] = topic_config(
                self._config, self._image.topics[name].overrides, judge=False
            )
        return found

    def group_config(self, group_id: str) -> GroupConfig:
        """The settings in force for a group, existing or not."""
        overrides = self._image.group_overrides.get(group_id)
        if not overrides:
            return self._group_config
        found = self._group_configs.get(group_id)
        if found is None:
            found = self._group_configs[group_id] = group_config(self._config, overrides, judge=False)
        return found

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber(image, names of changed topics)` with every next image.

        The change is answered only when the awaitables that subscribers return are done.
        """
        self._subscribers.append(subscriber)

    @_alone
    async def register(self, endpoints: Sequence[Endpoint], directories: Sequence[str] = ()) -> None:
        """Register this broker as up: its listeners (at least one), and the ids of the log folders it serves."""
        self._endpoints = tuple(endpoints)
        await self._register(directories)

    @_alone
    async def serve_only(self, directories: Sequence[str]) -> None:
        """The broker serves only these log folders any more: it leads nothing that is in others."""
        if self._endpoints:
            await self._register(directories)
        else:
            await self._commit(self._lost(directories))

    async def _register(self, directories: Sequence[str]) -> None:
        me = BrokerImage(self.broker_id, self._endpoints, self._static.broker_rack, tuple(directories))
        operations: list[Operation] = [layout.broker(me, self._runtime.clock.now_ms())]
        if self.broker_id in self._image.brokers:
            operations.insert(0, Delete(f"{layout.BROKERS}/{self.broker_id}"))
        await self._commit([*operations, *(self._lost(directories) if directories else ())])

    def _lost(self, directories: Sequence[str]) -> list[Operation]:
        changed = controller.directories_lost(self._image, self.broker_id, directories)
        return [step for topic in changed for step in layout.topic_changed(self._image.topics[topic.name], topic)]

    @_alone
    async def assign_directories(self, found: Mapping[str, Mapping[int, str]]) -> None:
        """Remember in which log folders these partitions of this broker were found: topic -> partition -> directory
        id. From then on these folders must exist."""
        await self._commit_made(found)

    async def _commit_made(self, found: Mapping[str, Mapping[int, str]]) -> None:
        topics = self._image.topics
        changed = [
            (topics[name], controller.made_in(topics[name], self.broker_id, directories))
            for name, directories in found.items()
            if name in topics
        ]
        await self._commit([step for old, new in changed for step in layout.topic_changed(old, new)])

    async def _note_made(self, names: Sequence[str]) -> None:
        """From now on it is a loss if a folder of these topics, which subscribers have made, is missing."""
        found: dict[str, dict[int, str]] = {}
        for name in names if self._made_in else ():
            for number, part in enumerate(self._image.topics[name].partitions):
                directory = None if part.made or not self._made_in else self._made_in(TopicPartition(name, number))
                if directory is not None:
                    found.setdefault(name, {})[number] = directory
        try:
            await self._commit_made(found)
        except StorageError as error:  # the topics are there all the same, and the next start notes it
            logger.warning("the metadata does not say yet that %s are made: %s", ", ".join(found), error)

    def _refusal(self, name: str) -> Refusal | None:
        """The reason why a valid and free name is refused: a folder has records that would pass for the new topic's."""
        path = self._in_the_way(name)
        if path is None:
            return None
        sentence = f"{path} belongs to an unknown topic: add it with `moldau log repair`, or move the folder away"
        notices.error(name, "topic %s cannot be created: %s", name, sentence)
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, sentence)

    def _placed(self, topics: Sequence[tuple[TopicImage, int]]) -> list[TopicImage]:
        """The topics with the log folders that their partitions from the given one on are to be made in, as far as they
        are this broker's."""
        new = [
            [at for at, part in enumerate(topic.partitions) if at >= first and self.broker_id in part.replicas]
            for topic, first in topics
        ]
        directories = iter(self._place(sum(map(len, new))) if self._place else ())
        placed = [
            controller.with_directories(topic, self.broker_id, dict(zip(numbers, directories, strict=False)))
            for (topic, _), numbers in zip(topics, new, strict=True)
        ]
        if self._made_in is None:
            return placed
        return [controller.unmade(topic, numbers) for topic, numbers in zip(placed, new, strict=True)]

    @_alone
    async def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[tuple[str, TopicImage | Refusal]]:
        start = self._runtime.random.below(max(len(self._image.brokers), 1))
        image, config, new_id = self._image, self._config, self._runtime.random.uuid
        made = await self._decided(len(wanted), lambda: controller.create_topics(image, config, wanted, new_id, start))
        made = [(name, self._refusal(name) or result) for name, result in made]
        if not validate_only:
            new = self._placed([(topic, 0) for _, topic in made if isinstance(topic, TopicImage)])
            by_name = {topic.name: topic for topic in new}
            made = [(name, by_name.get(name, result)) for name, result in made]
            operations = await self._decided(
                sum(len(topic.partitions) for topic in new),
                lambda: [operation for topic in new for operation in layout.topic_created(topic)],
            )
            await self._commit(operations)
            await self._note_made([topic.name for topic in new])
        return made

    @_alone
    async def delete_topics(
        self, wanted: Sequence[tuple[str | None, uuid.UUID | None]], *, validate_only: bool = False
    ) -> list[tuple[str | None, uuid.UUID | None, TopicImage | Refusal]]:
        image = self._image
        results = await self._decided(len(wanted), lambda: controller.delete_topics(image, wanted))
        if validate_only:
            return results
        gone = [topic for _, _, topic in results if isinstance(topic, TopicImage)]
        await self._commit([operation for topic in gone for operation in layout.topic_deleted(topic)])
        return results

    @_alone
    async def create_partitions(
        self, wanted: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[tuple[str, TopicImage | Refusal]]:
        image = self._image
        results = await self._decided(len(wanted), lambda: controller.create_partitions(image, wanted))
        if not validate_only:
            before = image.topics
            grown = self._placed(
                [(topic, len(before[topic.name].partitions)) for _, topic in results if isinstance(topic, TopicImage)]
            )
            await self._commit([step for topic in grown for step in layout.topic_changed(before[topic.name], topic)])
            await self._note_made([topic.name for topic in grown])
        return results

    @_alone
    async def alter_topic_configs(self, name: str, wanted: Wish, *, validate_only: bool = False) -> Refusal | None:
        topic = self._image.topics.get(name)
        if topic is None:
            unknown = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name[:249]}")
            return controller.name_refusal(name) or unknown
        image, config = self._image, self._config

        def decide() -> TopicImage | Refusal:
            overrides = alterations.topic_overrides(config, topic.overrides, wanted)
            if isinstance(overrides, Refusal):
                return overrides
            return controller.with_overrides(image, config, name, overrides)

        changed = await self._decided(_length(wanted), decide)
        if isinstance(changed, Refusal):
            return changed
        if not validate_only:
            await self._commit(layout.topic_changed(topic, changed))
        return None

    @_alone
    async def alter_broker_configs(self, broker: str, wanted: Wish, *, validate_only: bool = False) -> Refusal | None:
        """Of one broker by its number, or of all by `layout.DEFAULT_BROKER`."""
        now = self._image.broker_overrides.get(broker)
        config = self._config
        overrides = await self._decided(
            _length(wanted), lambda: alterations.broker_overrides(config, now or {}, wanted)
        )
        if isinstance(overrides, Refusal):
            return overrides
        changed = {**self._image.broker_overrides, broker: overrides}
        try:
            _with_dynamic(self._static, replace(self._image, broker_overrides=changed))
        except ConfigError as wrong:
            return Refusal(ErrorCode.INVALID_REQUEST, str(wrong))
        if not validate_only and overrides != (now or {}):
            path = f"{layout.BROKER_CONFIGS}/{broker}"
            await self._commit([layout.config(path, overrides, is_new=now is None)])
        return None

    @_alone
    async def alter_group_configs(self, group_id: str, wanted: Wish, *, validate_only: bool = False) -> Refusal | None:
        """Of a group by its name, whether it exists or not."""
        now = self._image.group_overrides.get(group_id)
        overrides = alterations.group_overrides(self._config, now or {}, wanted)
        if isinstance(overrides, Refusal):
            return overrides
        if not validate_only and overrides != (now or {}):
            await self._commit(layout.group_changed(group_id, now, overrides))
        return None

    async def ensure_offsets_topic(self) -> TopicImage | Refusal:
        """The topic that groups keep their offsets in, made when it is first needed."""
        return await self.ensure_topic(OFFSETS_TOPIC)

    async def ensure_transactions_topic(self) -> TopicImage | Refusal:
        """The topic that the coordinator of transactions keeps them in, made when it is first needed."""
        return await self.ensure_topic(TRANSACTIONS_TOPIC)

    async def ensure_topic(self, name: str) -> TopicImage | Refusal:
        """A topic by name, made with the settings of an automatic creation if it is not there."""
        found = self._image.topics.get(name)
        if found is not None:
            return found
        _, made = (await self.create_topics([self.automatic_topic(name)]))[0]
        if isinstance(made, Refusal) and made.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return self._image.topics[name]
        return made

    def automatic_topic(self, name: str) -> NewTopic:
        """What a topic gets that nobody made: defaults, or what an internal topic needs to hold what it is for."""
        config, brokers = self._config, max(len(self._image.brokers), 1)
        if name == OFFSETS_TOPIC:
            count, replicas = config.offsets_topic_num_partitions, min(config.offsets_topic_replication_factor, brokers)
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
        elif name == TRANSACTIONS_TOPIC:
            count = config.transaction_state_log_num_partitions
            replicas = min(config.transaction_state_log_replication_factor, brokers)
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, replicas)),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            }
        else:
            return NewTopic(name)
        return NewTopic(name, count, replicas, (), list(settings.items()))

    @_alone
    async def forget_deleted(self, topic_ids: Sequence[uuid.UUID]) -> None:
        """These deleted topics have left the disks."""
        known = [topic_id for topic_id in topic_ids if topic_id in self._image.deleted]
        await self._commit([Delete(f"{layout.DELETED_TOPICS}/{short_id(one)}") for one in known])

    def next_producer_id(self) -> int | Awaitable[int]:
        """A number that no producer was ever given before; awaited only when a new block of them is needed."""
        if self._producer_ids:
            first, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
            return first
        return self._first_of_next_block()

    @_alone
    async def _first_of_next_block(self) -> int:
        if not self._producer_ids:
            self._producer_ids = await self._runtime.run(self._take_block)
        first, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
        return first

    def _take_block(self) -> range:
        node = self._store.get(layout.PRODUCER_ID_BLOCK)
        start = last_producer_id(self._store) + 1
        end = start + layout.PRODUCER_IDS_PER_BLOCK - 1
        self._store.multi([layout.producer_ids(self.broker_id, start, end, None if node is None else node.version)])
        return range(start, end + 1)

    async def _decided(self, elements: int, decide: Callable[[], T]) -> T:
        """A decision about many elements is made in the executor (D14). The image stays as it is: one change is made at
        a time."""
        return decide() if elements <= DECIDED_AT_ONCE else await self._runtime.run(decide)

    async def _commit(self, operations: Sequence[Operation]) -> None:
        """Write, read back, show. Raises `StorageError`; then nothing was written or shown."""
        if not operations:
            return
        before = self._image

        def write() -> tuple[Image, list[str]]:
            self._store.multi(operations)
            touched = [self._touched.popleft() for _ in range(len(self._touched))]
            return read_changes(self._store, before, touched)

        self._image, names = await self._runtime.run(write)
        if self._image.broker_overrides != before.broker_overrides:
            self._config = _with_dynamic(self._static, self._image)
            self._group_config = group_config(self._config, {})
            self._group_configs.clear()
        if self._image.group_overrides is not before.group_overrides:
            self._group_configs.clear()
        for name in names:
            self._topic_configs.pop(name, None)
        waiting = [subscriber(self._image, names) for subscriber in self._subscribers]
        for awaitable in waiting:
            if awaitable is not None:
                await awaitable


def _length(wanted: Wish) -> int:
    return len(wanted.settings) if isinstance(wanted, Replacement) else len(wanted)


def _new_cluster_id(runtime: Runtime) -> str:
    """As Kafka's: a UUID in 22 characters, not beginning with a dash, which command lines would take for an option."""
    while (made := short_id(runtime.random.uuid())).startswith("-"):
        pass
    return made


def _dynamic(broker_id: int, image: Image) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What was changed while running, for this broker and for all."""
    return image.broker_overrides.get(str(broker_id), {}), image.broker_overrides.get(layout.DEFAULT_BROKER, {})


def _with_dynamic(config: BrokerConfig, image: Image) -> BrokerConfig:
    """The settings with those on top that were changed while running: of all brokers, then of this one."""
    own, everyone = _dynamic(config.node_id, image)
    return with_changes(config, {**everyone, **own})
