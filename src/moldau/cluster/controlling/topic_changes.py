"""Topics created, deleted, enlarged and replicated more, as administrators ask for it, or as a broker needs them.

Results come in the order of the request, each with the topic or its `Refusal`; with `validate_only` nothing is written.
Raises what `ChangeQueue.commit` raises.
"""

import asyncio
import uuid
from collections.abc import Sequence

from moldau.cluster.controlling import controller
from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.controlling.directory_placement import DirectoryPlacement
from moldau.cluster.controlling.reassigning import reassigned
from moldau.cluster.state import layout
from moldau.cluster.state.elections import Elected, in_batches, steps_of
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.move_throttles import moves_over, under_way_in, without_throttles_of
from moldau.cluster.state.placement import Draw
from moldau.config.internal_topics import FACTOR_SETTINGS
from moldau.errors import ErrorCode
from moldau.metadata_store.store import Delete, NodeOperation
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition, short_id
from moldau.runtime import Runtime


class TopicChanges:
    """`is_alone`: this broker has no others, so internal topics have one replica whatever the settings say."""

    def __init__(
        self,
        metadata: MetadataCache,
        queue: ChangeQueue,
        directories: DirectoryPlacement,
        runtime: Runtime,
        *,
        is_alone: bool = False,
    ):
        self.queue = queue
        self._metadata = metadata
        self._directories = directories
        self._runtime = runtime
        self._is_alone = is_alone

    @in_turn
    async def create(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[tuple[str, TopicImage | Refusal]]:
        image, config, new_id = self._metadata.image, self._metadata.config, self._runtime.random.uuid
        draw = Draw(self._runtime.random.below(max(len(image.brokers), 1)), self._shift())
        results = await self.queue.decided(
            len(wanted), lambda: controller.create_topics(image, config, wanted, new_id, draw)
        )
        results = [(name, self._directories.refusal(name) or result) for name, result in results]
        if not validate_only:
            made = [topic for _, topic in results if isinstance(topic, TopicImage)]

            def decide() -> tuple[list[TopicImage], list[NodeOperation]]:
                new = self._directories.placed([(topic, 0) for topic in made])
                return new, [step for topic in new for step in layout.topic_created(topic, image.controller_epoch)]

            new, operations = await self.queue.decided(_partitions(made), decide)
            by_name = {topic.name: topic for topic in new}
            results = [(name, by_name.get(name, result)) for name, result in results]
            await self.queue.commit(operations)
            await self._directories.note_made(new)
        return results

    @in_turn
    async def delete(
        self, wanted: Sequence[tuple[str | None, uuid.UUID | None]], *, validate_only: bool = False
    ) -> list[tuple[str | None, uuid.UUID | None, TopicImage | Refusal]]:
        """`wanted` has a name or an id for each topic."""
        image = self._metadata.image
        results = await self.queue.decided(len(wanted), lambda: controller.delete_topics(image, wanted))
        if not validate_only:
            deleted = [topic for _, _, topic in results if isinstance(topic, TopicImage)]

            def decide() -> list[NodeOperation]:
                throttles = without_throttles_of(image, under_way_in(deleted))
                return [*throttles, *(step for topic in deleted for step in layout.topic_deleted(topic))]

            await self.queue.commit(await self.queue.decided(_partitions(deleted), decide))
        return results

    @in_turn
    async def create_partitions(
        self, wanted: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[tuple[str, TopicImage | Refusal]]:
        image, shift = self._metadata.image, self._shift()
        results = await self.queue.decided(len(wanted), lambda: controller.create_partitions(image, wanted, shift))
        if not validate_only:
            before = image.topics
            larger = [topic for _, topic in results if isinstance(topic, TopicImage)]

            def decide() -> tuple[list[TopicImage], list[NodeOperation]]:
                grown = self._directories.placed([(topic, len(before[topic.name].partitions)) for topic in larger])
                changes = ((before[topic.name], topic, image.controller_epoch) for topic in grown)
                return grown, [step for change in changes for step in layout.topic_changed(*change)]

            grown, operations = await self.queue.decided(_partitions(larger), decide)
            await self.queue.commit(operations)
            await self._directories.note_made(grown)
        return results

    @in_turn
    async def reassign(
        self, wanted: Sequence[tuple[TopicPartition, Sequence[int] | None]], *, keeps_factor: bool = False
    ) -> list[Refusal | None]:
        """Begin to move partitions to these replicas, or cancel that (see `reassigning`); returns why one stays as it
        is, or None."""
        image = self._metadata.image
        results = await self.queue.decided(
            len(wanted),
            lambda: [
                reassigned(image, tp, to, self._metadata.least_in_sync, keeps_factor=keeps_factor) for tp, to in wanted
            ],
        )
        changed = [
            Elected(tp.topic, tp.partition, result)
            for (tp, _), result in zip(wanted, results, strict=True)
            if isinstance(result, PartitionImage) and result != image.partition(tp)
        ]
        over = moves_over(image, zip((tp for tp, _ in wanted), results, strict=True))
        await self.queue.commit(without_throttles_of(image, over))
        for batch in in_batches(changed):
            await self.queue.commit(steps_of(self._metadata.image, batch))
            await asyncio.sleep(0)
        return [result if isinstance(result, Refusal) else None for result in results]

    def _shift(self) -> int:
        count = len(self._metadata.image.brokers)
        return self._runtime.random.below(count) if count > 1 else 0

    async def ensure_offsets_topic(self) -> TopicImage | Refusal:
        """The topic of the groups' offsets, created when it is first needed."""
        return await self.ensure(OFFSETS_TOPIC)

    async def ensure_transactions_topic(self) -> TopicImage | Refusal:
        """The topic of the transaction coordinators, created when it is first needed."""
        return await self.ensure(TRANSACTIONS_TOPIC)

    async def create_needed(self, wanted: Sequence[NewTopic]) -> list[tuple[str, TopicImage | Refusal]]:
        """Topics that a broker needs, or that are created when a client first names them."""
        return await self.create(wanted)

    async def ensure(self, name: str) -> TopicImage | Refusal:
        """A topic by name, created with the settings of an automatic creation if it does not exist."""
        topic = self._metadata.image.topics.get(name)
        if topic is not None:
            return topic
        _, result = (await self.create_needed([self.automatic(name)]))[0]
        if isinstance(result, Refusal) and result.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return self._metadata.image.topics[name]
        return result

    def automatic(self, name: str) -> NewTopic:
        """A topic as automatic creation makes it: with the defaults, or with the settings that an internal topic
        needs."""
        config = self._metadata.config
        if name == OFFSETS_TOPIC:
            count = config.offsets_topic_num_partitions
            replicas = 1 if self._is_alone else config.offsets_topic_replication_factor
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
        elif name == TRANSACTIONS_TOPIC:
            count = config.transaction_state_log_num_partitions
            replicas = 1 if self._is_alone else config.transaction_state_log_replication_factor
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

    @in_turn
    async def forget_deleted(self, topic_ids: Sequence[uuid.UUID]) -> None:
        """The data of these deleted topics is on no disk any more."""
        known = [topic_id for topic_id in topic_ids if topic_id in self._metadata.image.deleted]
        await self.queue.commit([Delete(f"{layout.DELETED_TOPICS}/{short_id(one)}") for one in known])


def _partitions(topics: Sequence[TopicImage]) -> int:
    return sum(len(topic.partitions) for topic in topics)


def lack_of_brokers(image: Image, wish: NewTopic) -> Refusal | None:
    """Why this internal topic has to wait: it is not created before as many brokers run as it has replicas."""
    if wish.replication_factor <= len(image.brokers):
        return None
    return Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"it needs {wish.replication_factor} running brokers ({FACTOR_SETTINGS[wish.name]}), and the cluster has "
        f"{len(image.brokers)}. Start more brokers, or lower that setting on all of them",
    )
