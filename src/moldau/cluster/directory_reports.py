"""The log folders of a broker's partitions, for a broker of several: reported to the controller, which records them.

The broker chooses the log folder of a new partition itself, and reports it once the partition's own folder is durable
(AssignReplicasToDirs, as in KIP-858). Reports are collected for a moment and sent together, again and again until the
controller has answered.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice

from moldau.cluster.controlling.assigned_directories import InDirectory
from moldau.cluster.controlling.directory_placement import DirectoryPlacement, FolderOf
from moldau.cluster.state.image import Image, PartitionImage
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import StoreConflict
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.peers.unreachable import NO_CONTROLLER
from moldau.tasks import ended

COLLECT_S = 0.2
RETRY_S = 0.5
TOGETHER_MAX = 2250
"""The most partitions of one report, as in Kafka."""
Send = Callable[[Sequence[InDirectory]], Awaitable[Sequence[ErrorCode]]]
"""Reports partitions to the controller; returns the outcome for each. Raises `KafkaError`, `StorageError`,
`StoreConflict`: send it again."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class DirectoryReports(DirectoryPlacement):
    """`image` returns what this broker serves by; `folder_of` the log folder where a partition is. Belongs to the loop
    it is used on."""

    def __init__(self, broker_id: int, image: Callable[[], Image], folder_of: FolderOf, send: Send):
        self._broker_id = broker_id
        self._image = image
        self._made_in = folder_of
        self._send = send
        self._waiting: dict[tuple[uuid.UUID, int], str] = {}
        self._sending: asyncio.Task[None] | None = None
        self._is_started = False

    def is_made(self, partition: PartitionImage) -> bool:
        return bool(partition.directory_of(self._broker_id))

    async def assign(self, directories: Mapping[str, Mapping[int, str]]) -> None:
        """Report the log folders in which these partitions are: topic -> partition -> folder id."""
        topics = self._image().topics
        for name, by_number in directories.items():
            for number, directory in by_number.items():
                self._waiting[topics[name].id, number] = directory
        self._wake()

    def note(self, image: Image, names: Sequence[str]) -> None:
        """Report this broker's partitions of these topics that are elsewhere than the image has them."""
        for name in names:
            topic = image.topics.get(name)
            if topic is None:
                continue
            for number, part in enumerate(topic.partitions):
                directory = self._made_in(TopicPartition(name, number)) if self._broker_id in part.replicas else None
                if directory is not None and directory != part.directory_of(self._broker_id):
                    self._waiting[topic.id, number] = directory
        self._wake()

    def start(self) -> None:
        """Report from now on: this broker is registered."""
        self._is_started = True
        self._wake()

    async def stop(self) -> None:
        """Report no more; the next start reports what is left."""
        self._is_started = False
        await ended(self._sending)

    def _wake(self) -> None:
        if self._is_started and self._waiting and (self._sending is None or self._sending.done()):
            self._sending = asyncio.ensure_future(self._report())

    async def _report(self) -> None:
        await asyncio.sleep(COLLECT_S)
        while self._waiting:
            batch = dict(islice(self._waiting.items(), TOGETHER_MAX))
            placed = [InDirectory(topic_id, number, directory) for (topic_id, number), directory in batch.items()]
            try:
                errors = await self._send(placed)
            except (KafkaError, StorageError, StoreConflict) as failure:
                if not (isinstance(failure, KafkaError) and failure.code in NO_CONTROLLER):
                    line = "the controller does not know yet in which log folders partitions are: %s"
                    notices.error("", line, failure)
                await asyncio.sleep(RETRY_S)
                continue
            for one, error in zip(placed, errors, strict=True):
                if error:  # it was deleted meanwhile
                    logger.debug(
                        "partition %d of topic id %s was not assigned: %s", one.number, one.topic_id, error.name
                    )
            for place, directory in batch.items():
                if self._waiting.get(place) == directory:
                    del self._waiting[place]
