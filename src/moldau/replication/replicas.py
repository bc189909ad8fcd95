"""All partitions this broker hosts, kept in step with the cluster's image.

`follow` makes and opens the logs of partitions that became ours, hands changed settings and leaderships on, and
removes what is gone; it is awaited before the change is answered, so a topic that was created can be written to. The
look-up by name or id is what every request pays: a few subscripts, no object made.

A partition whose log folder is offline or away is not here, and is not made anew: `absence` distinguishes it from one
that is still being made and from one that does not exist.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from moldau.cluster.cluster import Cluster
from moldau.cluster.image import Image, TopicImage
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.log.files import OpenFiles
from moldau.log.folder import LogFolder
from moldau.log.folders import LogFolders
from moldau.names import BrokerId, LeaderEpoch, Offset, TopicPartition, counted
from moldau.notices import Notices
from moldau.replication.leadership import Leadership
from moldau.replication.replica import FLUSH_NEVER, Replica
from moldau.replication.results import LogDirectory
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)
notices = Notices(logger)


class MissingReplica(NamedTuple):
    """A partition that is ours and not here yet; `directory` is the id of the log folder it belongs into."""

    tp: TopicPartition
    topic_id: uuid.UUID
    directory: str


class Replicas:
    """`local` is this broker. Nothing is hosted before `load`."""

    def __init__(self, local: BrokerId, cluster: Cluster, folders: LogFolders, runtime: Runtime):
        self._local = local
        self._cluster = cluster
        self._folders = folders
        self._runtime = runtime
        self._by_name: dict[str, list[Replica | None]] = {}
        self._names: dict[bytes, str] = {}
        self._following = asyncio.Lock()
        self._unmade: dict[str, None] = {}

    def find(self, name: str | None, topic_id: bytes | None, index: int) -> Replica | None:
        """The partition of the topic of that id, or of that name where the id is None; None if it is not here."""
        if topic_id is not None:
            name = self._names.get(topic_id)
        hosts = self._by_name.get(name) if name is not None else None
        if hosts is None or not 0 <= index < len(hosts):
            return None
        return hosts[index]

    def knows(self, topic_id: bytes) -> bool:
        return topic_id in self._names

    def absence(self, name: str | None, topic_id: bytes | None, index: int) -> ErrorCode:
        """Why `find` did not find it: the topic or partition does not exist, its log folder is offline, or its log is
        still being made. Codes as Kafka's: after NOT_LEADER_OR_FOLLOWER clients ask for metadata and try again."""
        image = self._cluster.image
        topic = image.topics.get(name or "") if topic_id is None else image.topics_by_id.get(uuid.UUID(bytes=topic_id))
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic_id is None else ErrorCode.UNKNOWN_TOPIC_ID
        if not 0 <= index < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        was_tried = topic.id.bytes in self._names and index < len(self._by_name[topic.name])
        partition = topic.partitions[index]
        if not was_tried or self._local not in partition.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if topic.name in self._unmade:
            return ErrorCode.KAFKA_STORAGE_ERROR
        directory = partition.directory_of(self._local)
        notices.error(
            directory,
            "%s-%d and all else in the log folder with directory.id=%s cannot be served: the folder is offline or "
            "missing. Repair its disk, name it in log.dirs, and restart the broker",
            topic.name, index, directory or "(not assigned)",
        )  # fmt: skip
        return ErrorCode.KAFKA_STORAGE_ERROR

    def __iter__(self) -> Iterator[Replica]:
        """Those that are there when their turn comes: who iterates may await."""
        for name, hosts in list(self._by_name.items()):
            for replica in list(hosts):
                if replica is not None and self._by_name.get(name) is hosts:
                    yield replica

    @property
    def files(self) -> OpenFiles:
        """Where the files are counted that replies hold until they have left."""
        return self._folders.files

    async def log_directories(self) -> list[LogDirectory]:
        """Every folder of `log.dirs` with what is in it, in the order of the setting."""
        return [LogDirectory(*use) for use in await self._runtime.run(self._folders.in_use)]

    @property
    def log_dirs(self) -> dict[str, bool]:
        """The path of every log folder, and whether it is served."""
        return self._folders.named

    def log_dir_of(self, tp: TopicPartition) -> str | None:
        """The path of the log folder that a partition is served from."""
        folder = self._folders.folder_of(tp)
        return None if folder is None else str(folder.path)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {replica.tp: replica.high_watermark for replica in self}

    async def load(self, threads: int = 1) -> list[str]:
        """Open what is in the log folders and in the image, in so many threads a folder. Returns the paths in the
        folders that belong to nothing known.

        Partitions whose deletion was cut off by a crash go now. Raises `StorageError`, `OSError`.
        """
        image = self._cluster.image
        known = {name: topic.id for name, topic in image.topics.items()}
        made = {
            tp: topic.partitions[tp.partition].directory_of(self._local)
            for topic in image.topics.values()
            for tp in self._ours(topic)
            if topic.partitions[tp.partition].made
        }
        strays = await self._folders.load(known, self._cluster.metadata.topic_config, image.deleted, threads, made)
        await self.forget_deleted()
        for topic in image.topics.values():
            if self._cluster.metadata.topic_config(topic.name).flush_messages < FLUSH_NEVER:
                await self._runtime.run(partial(self._flush_recovered, topic))
        await self.follow(image, list(image.topics))
        moved = await self._remember()
        await self.follow(self._cluster.image, moved)
        return strays

    def _flush_recovered(self, topic: TopicImage) -> None:
        """Where records are flushed before they are seen, so are those that an earlier life wrote and did not live to
        flush: now they are there, and the next crash must not take them back."""
        for tp in self._ours(topic):
            folder = self._folders.folder_of(tp)
            log = None if folder is None else folder.logs.get(tp)
            if log is not None and log.unflushed_records:
                try:
                    log.flush()
                except KafkaError as error:
                    logger.error("%s cannot be flushed: %s", tp, error)

    async def forget_deleted(self) -> None:
        """Topics that were deleted have left the served folders; those in a folder that is away are still known when
        it comes back."""
        deleted = list(self._cluster.image.deleted)
        if deleted and self._folders.whole:
            await self._cluster.topics.forget_deleted(deleted)

    async def _remember(self) -> list[str]:
        """Tell the cluster in which folders partitions were found, where it does not know or believes otherwise; the
        names of their topics."""
        found: dict[str, dict[int, str]] = {}
        folders: set[LogFolder] = set()
        for topic in self._cluster.image.topics.values():
            for tp in self._ours(topic):
                folder, part = self._folders.folder_of(tp), topic.partitions[tp.partition]
                if folder is not None and not (part.made and folder.directory_id == part.directory_of(self._local)):
                    found.setdefault(topic.name, {})[tp.partition] = folder.directory_id
                    folders.add(folder)
        if found:
            await self._runtime.run(partial(_sync_names, folders))
            await self._cluster.directories.assign(found)
        return list(found)

    async def follow(self, image: Image, names: Sequence[str]) -> None:
        """Be as `image` says for the topics that changed."""
        async with self._following:
            await self._follow(image, names)

    async def make_missing(self) -> None:
        """Make the partitions for which no descriptor was left when their topic was made."""
        if self._unmade:
            async with self._following:
                names = list(self._unmade)
                self._unmade.clear()
                await self._follow(self._cluster.image, names)
            await self._remember()

    async def _follow(self, image: Image, names: Sequence[str]) -> None:
        missing: list[MissingReplica] = []
        gone: list[TopicPartition] = []
        for name in names:
            topic, hosts = image.topics.get(name), self._by_name.get(name)
            if hosts is not None and (topic is None or self._names.get(topic.id.bytes) != name):
                gone += self._drop(name)
            if topic is not None:
                missing += [
                    MissingReplica(tp, topic.id, topic.partitions[tp.partition].directory_of(self._local))
                    for tp in self._ours(topic)
                    if tp in gone or self._folders.folder_of(tp) is None
                ]
        if gone or missing:
            await self._runtime.run(partial(self._change_folders, gone, missing))
        for name in names:
            topic = image.topics.get(name)
            if topic is not None:
                self._host(topic)

    def _ours(self, topic: TopicImage) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, number)
            for number, partition in enumerate(topic.partitions)
            if self._local in partition.replicas
        ]

    def _drop(self, name: str) -> list[TopicPartition]:
        """Serve a topic no longer; whoever waits for it is told, whoever is in the middle of something finds it
        gone."""
        hosts = self._by_name.pop(name)
        self._names = {topic_id: known for topic_id, known in self._names.items() if known != name}
        found = [replica for replica in hosts if replica is not None]
        for replica in found:
            replica.leave()
        return [replica.tp for replica in found]

    def _change_folders(self, gone: list[TopicPartition], missing: list[MissingReplica]) -> None:
        now_ms = self._runtime.clock.now_ms()
        self._folders.delete(gone, now_ms)
        away = 0
        folders: set[LogFolder] = set()
        for tp, topic_id, directory in missing:
            if self._folders.folder_of(tp) is not None:
                continue
            folder = self._folders.home(directory)
            if folder is None:
                away += 1
                continue
            try:
                folder.create(tp, topic_id, self._cluster.metadata.topic_config(tp.topic))
                folders.add(folder)
            except StorageError as error:
                logger.error("%s is not served: %s, and is not ours", tp, error)
            except KafkaError:
                if folder.failed is None:  # for want of a descriptor
                    self._unmade[tp.topic] = None
                else:
                    away += 1
        _sync_names(folders)
        if away:
            offline = f"{counted(away, 'partition')} {'is' if away == 1 else 'are'}"
            logger.error("%s offline: the log folders that hold them are offline or missing", offline)

    def _host(self, topic: TopicImage) -> None:
        config = self._cluster.metadata.topic_config(topic.name)
        hosts = self._by_name.setdefault(topic.name, [])
        self._names[topic.id.bytes] = topic.name
        hosts += [None] * (len(topic.partitions) - len(hosts))
        for number, partition in enumerate(topic.partitions):
            replica = hosts[number]
            tp = replica.tp if replica is not None else TopicPartition(topic.name, number)
            folder = self._folders.folder_of(tp)
            if folder is None:
                if replica is not None:
                    hosts[number] = None
                    replica.leave()
                continue
            log = folder.logs[tp]
            if replica is None:
                committed = min(folder.high_watermarks.get(tp, 0), log.log_end_offset)
                leadership = Leadership(self._local, Offset(max(committed, log.log_start_offset)))
                replica = hosts[number] = Replica(tp, topic.id, log, config, leadership, self._runtime)
            elif replica.config != config:
                replica.configure(config)
            isr = tuple(BrokerId(broker) for broker in partition.isr)
            leader, epoch = BrokerId(partition.leader), LeaderEpoch(partition.leader_epoch)
            replica.lead(leader, epoch, isr)


def _sync_names(folders: Iterable[LogFolder]) -> None:
    """The partitions in these folders outlive a power loss: only then may the cluster take a missing one for lost.
    Blocks. A folder that fails is offline, and says so itself."""
    for folder in folders:
        with suppress(KafkaError):
            folder.sync_names()
