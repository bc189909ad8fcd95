"""The log folder of each of this broker's partitions, as the metadata of a broker alone records it (KIP-858).

A new partition gets a folder when it is created. Once the partition's own folder in it is durable, the partition counts
as *made*: from then on a missing folder means lost data.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau.cluster.controlling import controller
from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state import layout
from moldau.cluster.state.image import PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, StorageError
from moldau.metadata_store.store import NodeOperation, StoreConflict
from moldau.names import TopicPartition
from moldau.notices import Notices

ChooseFolders = Callable[[Sequence[TopicPartition]], Sequence[str]]
"""The ids of the log folders for these new partitions of this broker."""
FolderOf = Callable[[TopicPartition], str | None]
"""The id of the log folder in which a partition's folder is durable; None before that."""
FolderInTheWay = Callable[[str], Path | None]
"""A folder with records of a topic of this name that is not in the metadata."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class DirectoryPlacement:
    """Without `choose` the folders of new partitions are not recorded, without `folder_of` every partition counts as
    made."""

    def __init__(
        self,
        metadata: MetadataCache,
        queue: ChangeQueue,
        choose: ChooseFolders | None = None,
        folder_of: FolderOf | None = None,
        in_the_way: FolderInTheWay = lambda _: None,
    ):
        self.queue = queue
        self._metadata = metadata
        self._choose = choose
        self._folder_of = folder_of
        self._in_the_way = in_the_way

    def refusal(self, name: str) -> Refusal | None:
        """The reason why a valid and free name is refused: a folder has records that would pass for the new topic's."""
        path = self._in_the_way(name)
        if path is None:
            return None
        sentence = f"{path} belongs to an unknown topic: add it with `moldau log repair`, or move the folder away"
        notices.error(name, "topic %s cannot be created: %s", name, sentence)
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, sentence)

    def is_made(self, partition: PartitionImage) -> bool:
        """Whether this broker's replica has had a folder: a missing one means lost data."""
        return partition.made

    def placed(self, topics: Sequence[tuple[TopicImage, int]]) -> list[TopicImage]:
        """These topics, with log folders for their partitions from the given number on that have a replica here."""
        broker_id = self._metadata.broker_id
        new = [
            [at for at, part in enumerate(topic.partitions) if at >= first and broker_id in part.replicas]
            for topic, first in topics
        ]
        partitions = [TopicPartition(topic.name, at) for (topic, _), own in zip(topics, new, strict=True) for at in own]
        directories = iter(self._choose(partitions) if self._choose else ())
        placed = [
            controller.with_directories(topic, broker_id, dict(zip(numbers, directories, strict=False)))
            for (topic, _), numbers in zip(topics, new, strict=True)
        ]
        if self._folder_of is None:
            return placed
        return [controller.unmade(topic, numbers) for topic, numbers in zip(placed, new, strict=True)]

    @in_turn
    async def assign(self, directories: Mapping[str, Mapping[int, str]]) -> None:
        """Record the log folders in which these partitions of this broker are: topic -> partition -> folder id. They
        count as made."""
        await self._commit_made(directories)

    async def note_made(self, topics: Sequence[TopicImage]) -> None:
        """Record the new partitions of these topics as made, as far as their folders are durable. Part of the change
        that created them."""
        folder_of, now = self._folder_of, self._metadata.image.topics
        if folder_of is None:
            return

        def placed() -> dict[str, dict[int, str]]:
            directories: dict[str, dict[int, str]] = {}
            for name in (topic.name for topic in topics):
                for number, part in enumerate(now[name].partitions):
                    directory = None if part.made else folder_of(TopicPartition(name, number))
                    if directory is not None:
                        directories.setdefault(name, {})[number] = directory
            return directories

        directories = await self.queue.decided(sum(len(topic.partitions) for topic in topics), placed)
        try:
            await self._commit_made(directories)
        except (StorageError, StoreConflict) as error:  # the topics exist nevertheless, and the next start records it
            logger.warning("the metadata does not record yet that %s are made: %s", ", ".join(directories), error)

    async def _commit_made(self, directories: Mapping[str, Mapping[int, str]]) -> None:
        topics, broker_id = self._metadata.image.topics, self._metadata.broker_id
        epoch = self._metadata.image.controller_epoch

        def decide() -> list[NodeOperation]:
            changed = (
                (topics[name], controller.made_in(topics[name], broker_id, by_number))
                for name, by_number in directories.items()
                if name in topics
            )
            return [step for old, new in changed for step in layout.topic_changed(old, new, epoch)]

        partitions = sum(len(topics[name].partitions) for name in directories if name in topics)
        await self.queue.commit(await self.queue.decided(partitions, decide))
