"""All partitions this broker hosts, kept in step with the cluster's image.

`follow` creates the logs of partitions assigned to this broker, passes on changed settings and leaderships, and removes
the logs of deleted topics and of partitions that have moved to other brokers. The log of a topic that is only missing
stays, and is served again when the topic is back; one that was moved while this broker was down stays, too, unserved.
`follow` is awaited before a change is answered, so a topic that was created can be written to.
Every request looks its partitions up in `hosted`, after the topic's name in `names` if it has only the id.

A partition whose log folder is offline or missing has no replica here, and is not created anew elsewhere. `absence`
distinguishes it from a partition that is still being created and from one that does not exist.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from moldau.cluster.cluster import Cluster
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.log.files import OpenFiles
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import UNASSIGNED, LogFolders
from moldau.log.traffic import AllTraffic
from moldau.names import BrokerId, LeaderEpoch, Offset, TopicPartition
from moldau.notices import Notices
from moldau.replication.leadership import Leadership, PartitionRoles
from moldau.replication.log_dirs.log_moves import LogMoves
from moldau.replication.replica import FLUSH_NEVER, Replica
from moldau.replication.results import LogDirectory
from moldau.replication.unserved import moved_away, moved_line, offline_line
from moldau.runtime import Runtime
from moldau.tasks import to_its_end

PARTITIONS_PER_TURN = 200
"""The most partitions that are hosted, or leave, in one turn of the loop: up to about 10 ms."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class MissingReplica(NamedTuple):
    """A partition assigned to this broker that has no replica yet; `directory` is the id of the log folder it belongs
    to. One that `is_new` has never had a folder: it has come since this process began."""

    tp: TopicPartition
    topic_id: uuid.UUID
    directory: str
    is_new: bool


class Exchange(Protocol):
    """Hears of every replica whose roles are new: see `exchange`."""

    def changed(self, replica: Replica) -> None:
        """It leads, follows another broker, or has no leader now."""

    def left(self, replica: Replica) -> None:
        """It is not hosted here any more."""

    def leads(self, replica: Replica) -> bool:
        """Whether no other broker can have been elected in this leader's place."""

    def folder_failed(self) -> None:
        """A log folder is offline, and the logs in it."""


class Replicas:
    """`local` is this broker's id. No partition is hosted before `load`.

    `hosted` has the replicas by topic name and partition, `names` the names of their topics by id: for reading.
    """

    def __init__(self, local: BrokerId, cluster: Cluster, folders: LogFolders, runtime: Runtime):
        self._local = local
        self._cluster = cluster
        self._folders = folders
        self._runtime = runtime
        self.hosted: dict[tuple[str | None, int], Replica] = {}
        self.names: dict[bytes, str] = {}
        self.traffic = AllTraffic()
        self._followed: dict[str, TopicImage] = {}
        """Each topic as it was when its replicas were last followed."""
        self.exchange: Exchange | None = None
        """With other brokers; None for a broker alone."""
        self._is_loaded = False
        self._following = asyncio.Lock()
        self._worked_on = 0
        """Partitions, in this turn of the loop."""
        self._unmade: dict[str, None] = {}
        config, assign = cluster.metadata, cluster.directories.assign
        self.moves = LogMoves(folders, self.hosted, self._following, lambda: config.config, assign, runtime)
        """Of replicas, between the log folders of this broker."""

    def find(self, name: str | None, topic_id: bytes | None, index: int) -> Replica | None:
        """The replica of a topic's partition, by topic id, or by name where the id is None; None if this broker has no
        such replica."""
        return self.hosted.get((name if topic_id is None else self.names.get(topic_id), index))

    def topic_name(self, name: str | None, topic_id: bytes | None) -> str | None:
        """The name of a topic in the cluster, by its id, or by name where the id is None; None if no topic has the
        id."""
        if topic_id is None:
            return name
        topic = self._cluster.image.topics_by_id.get(uuid.UUID(bytes=topic_id))
        return None if topic is None else topic.name

    def absence(self, name: str | None, topic_id: bytes | None, index: int) -> ErrorCode:
        """Why `find` returned None: the topic or partition does not exist, its log folder is offline, or its log is
        still being created. The codes are Kafka's: after NOT_LEADER_OR_FOLLOWER clients ask for metadata and try
        again."""
        image = self._cluster.image
        topic = image.topics.get(name or "") if topic_id is None else image.topics_by_id.get(uuid.UUID(bytes=topic_id))
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic_id is None else ErrorCode.UNKNOWN_TOPIC_ID
        if not 0 <= index < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        was_tried = topic.id.bytes in self.names and self._was_ours(TopicPartition(topic.name, index))
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
        """Skips replicas that leave during the iteration, so the caller may await between two of them."""
        for place, replica in list(self.hosted.items()):
            if self.hosted.get(place) is replica:
                yield replica

    @property
    def files(self) -> OpenFiles:
        """The count of open files, which includes those that replies hold until they are sent."""
        return self._folders.files

    async def log_directories(self, wanted: Collection[TopicPartition] | None = None) -> list[LogDirectory]:
        """Every folder of `log.dirs` with its partitions, or those that are `wanted`, and sizes, in the order of the
        setting."""
        uses, copies = await self._runtime.run(partial(self._folders.in_use, wanted)), self.moves.copies()
        return [LogDirectory(*use, copies.get(use.path, {})) for use in uses]

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {replica.tp: replica.high_watermark for replica in self}

    def assigned(self) -> set[TopicPartition]:
        """All partitions that have a replica on this broker, by the image."""
        return {tp for topic in self._cluster.image.topics.values() for tp in self._ours(topic)}

    async def load(self, threads: int = 1, accepted: Callable[[TopicPartition], bool] | None = None) -> list[str]:
        """Open the partitions that are both in the log folders and in the image, with `threads` threads a folder.
        Returns the paths in the folders that belong to no known partition. `accepted` is as in `LogFolders.load`.

        Deletions that a crash interrupted are completed. Raises `StorageError`, `OSError`.
        """
        image = self._cluster.image
        known = {name: topic.id for name, topic in image.topics.items()}
        made = {
            tp: topic.partitions[tp.partition].directory_of(self._local)
            for topic in image.topics.values()
            for tp in self._ours(topic)
            if self._cluster.directories.is_made(topic.partitions[tp.partition])
        }
        topic_config = self._cluster.metadata.topic_config
        strays = await self._folders.load(known, topic_config, image.deleted, threads, made, accepted)
        await self.forget_deleted()
        for topic in image.topics.values():
            if self._cluster.metadata.topic_config(topic.name).flush_messages < FLUSH_NEVER:
                await self._runtime.run(partial(self._flush_recovered, topic))
        await self.follow(image, list(image.topics))
        placed = await self._remember()
        await self.follow(self._cluster.image, placed)
        self._is_loaded = True
        if away := moved_away(image, self._local, self._folders.folder_of):
            logger.warning("%s", moved_line(away))
        return strays

    def _flush_recovered(self, topic: TopicImage) -> None:
        """If the topic flushes records before readers see them, flush those that recovery found too: an earlier run may
        have died before flushing them, and once read they must survive the next crash."""
        for tp in self._ours(topic):
            folder = self._folders.folder_of(tp)
            log = None if folder is None else folder.logs.get(tp)
            if log is not None and log.unflushed_records:
                try:
                    log.flush()
                except KafkaError as error:
                    logger.error("%s cannot be flushed: %s", tp, error)

    async def forget_deleted(self) -> None:
        """Drop deleted topics from the metadata, unless a log folder is offline or missing: only the metadata tells
        that the partitions in it were deleted."""
        deleted = list(self._cluster.image.deleted)
        if deleted and self._folders.whole:
            await self._cluster.topics.forget_deleted(deleted)

    async def _remember(self) -> list[str]:
        """Correct the log folders that the metadata records for partitions, from where they were found; returns the
        names of the topics that changed."""
        directories: dict[str, dict[int, str]] = {}
        folders: set[LogFolder] = set()
        for topic in self._cluster.image.topics.values():
            for tp in self._ours(topic):
                folder, part = self._folders.folder_of(tp), topic.partitions[tp.partition]
                if folder is not None and not (part.made and folder.directory_id == part.directory_of(self._local)):
                    directories.setdefault(topic.name, {})[tp.partition] = folder.directory_id
                    folders.add(folder)
        if directories:
            await self._runtime.run(partial(_sync_names, folders))
            await self._cluster.directories.assign(directories)
        return list(directories)

    async def follow(self, image: Image, names: Sequence[str]) -> None:
        """Bring the replicas in line with `image` for the topics that changed."""
        async with self._following:
            await self._follow(image, names)

    async def make_missing(self) -> None:
        """Create the partitions for which no file descriptor was left when their topic was created."""
        if self._unmade:
            async with self._following:
                names = list(self._unmade)
                self._unmade.clear()
                await self._follow(self._cluster.image, names)
            await self._remember()

    async def _follow(self, image: Image, names: Sequence[str]) -> None:
        missing: list[MissingReplica] = []
        gone: dict[TopicPartition, None] = {}
        for name in names:
            await self._in_turns(name, self._leave(image, name, gone, missing))
        await self.moves.drop(gone)
        if gone or missing:
            change = partial(self._change_folders, list(gone), missing)
            await to_its_end(self._runtime.run(change))  # a broker that stops must not close the folders before
        for name in names:
            topic = image.topics.get(name)
            if topic is not None:
                await self._in_turns(name, self._host(topic))

    async def _in_turns(self, name: str, work: Iterator[None]) -> None:
        """Do work on a topic that yields after each of its partitions, with a turn for others after every
        `PARTITIONS_PER_TURN` of all topics."""
        await self._until_whole([name])
        for _ in work:
            self._worked_on += 1
            if self._worked_on >= PARTITIONS_PER_TURN:
                self._worked_on = 0
                await asyncio.sleep(0)
                await self._until_whole([name])

    def _leave(
        self, image: Image, name: str, gone: dict[TopicPartition, None], missing: list[MissingReplica]
    ) -> Iterator[None]:
        """Stop serving a topic that is another one by now, or none, and partitions that have moved to other brokers.
        Adds the partitions that have to be deleted to `gone`, and those that have to be made to `missing`."""
        topic, before = image.topics.get(name), self._followed.get(name)
        if before is not None and (topic is None or topic.id != before.id):
            self.names.pop(before.id.bytes, None)
            for number in range(len(before.partitions)):
                tp = TopicPartition(name, number)
                self._stop(tp)
                if self._topic_of(tp) in image.deleted:
                    gone[tp] = None
                yield
            del self._followed[name]
            self.traffic.forget(name)
        if topic is None:
            return
        for number, part in enumerate(topic.partitions):
            tp = TopicPartition(name, number)
            # A log of which this process has never served a replica may be the only one: the metadata may be rebuilt.
            if self._local not in part.replicas and self._was_ours(tp):
                self._stop(tp)
                if self._topic_of(tp) == topic.id:
                    gone[tp] = None
                yield
        for tp in self._ours(topic):
            if self._topic_of(tp) not in (None, topic.id):
                gone[tp] = None
            if tp in gone or self._folders.folder_of(tp) is None:
                missing.append(self._missing(tp, topic.id, topic.partitions[tp.partition]))
            yield

    def _missing(self, tp: TopicPartition, topic_id: uuid.UUID, partition: PartitionImage) -> MissingReplica:
        if tp in self._folders.begun_empty:
            return MissingReplica(tp, topic_id, UNASSIGNED, True)
        was_tried = not self._is_loaded or self._was_ours(tp)
        is_new = not (was_tried or self._cluster.directories.is_made(partition))
        return MissingReplica(tp, topic_id, partition.directory_of(self._local), is_new)

    def _was_ours(self, tp: TopicPartition) -> bool:
        """Whether this broker had a replica of the partition when the topic was last followed."""
        parts = self._partitions_followed(tp.topic)
        return tp.partition < len(parts) and self._local in parts[tp.partition].replicas

    def _partitions_followed(self, name: str) -> Sequence[PartitionImage]:
        topic = self._followed.get(name)
        return topic.partitions if topic is not None else ()

    def _topic_of(self, tp: TopicPartition) -> uuid.UUID | None:
        """The id of the topic whose log is in that partition's folder; None if there is no log."""
        folder = self._folders.folder_of(tp)
        return None if folder is None else folder.logs[tp].topic_id

    async def _until_whole(self, names: Sequence[str]) -> None:
        """Wait until no log of these topics is being truncated, or flushed by a follower: roles do not change
        meanwhile."""
        while self.exchange is not None:
            under_way = [
                task
                for name in names
                for number in range(len(self._partitions_followed(name)))
                if (replica := self.hosted.get((name, number))) is not None
                for task in replica.under_way
            ]
            if not under_way:
                return
            await asyncio.wait(under_way)

    def _ours(self, topic: TopicImage) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, number)
            for number, partition in enumerate(topic.partitions)
            if self._local in partition.replicas
        ]

    def _change_folders(self, gone: list[TopicPartition], missing: list[MissingReplica]) -> None:
        now_ms = self._runtime.clock.now_ms()
        self._folders.delete(gone, now_ms)
        away: list[str] = []
        folders: set[LogFolder] = set()
        for tp, topic_id, directory, is_new in missing:
            if self._folders.folder_of(tp) is not None:
                continue
            folder = self._folders.home(directory, is_new=is_new, tp=tp)
            if folder is None:
                away.append(directory)
                continue
            try:
                folder.create(tp, topic_id, self._cluster.metadata.topic_config(tp.topic))
                folders.add(folder)
            except StorageError as error:
                logger.error("%s is not served: %s and belongs to no known topic", tp, error)
            except KafkaError:
                if folder.failed is None:  # no file descriptor was left: `make_missing` tries again
                    self._unmade[tp.topic] = None
                else:
                    away.append(folder.directory_id)
        _sync_names(folders)
        if away:
            place = ",".join(sorted(set(away)))
            notices.error(place, "%s", offline_line(len(away), away, self._folders.repair_command))

    def _host(self, topic: TopicImage) -> Iterator[None]:
        """Serve the partitions of a topic as it is now. Yields after each. The topic counts as followed once all are
        served: before, a partition that is not is still being made (see `absence`)."""
        config = self._cluster.metadata.topic_config(topic.name)
        for number, partition in enumerate(topic.partitions):
            tp = TopicPartition(topic.name, number)
            replica = self.hosted.get(tp)
            folder = self._folders.folder_of(tp) if self._local in partition.replicas else None
            if folder is None:
                self._stop(tp)
                yield
                continue
            log = folder.logs[tp]
            if replica is None:
                committed = min(folder.high_watermarks.get(tp, 0), log.log_end_offset)
                watermark = Offset(max(committed, log.log_start_offset))
                leadership = Leadership(self._local, self._cluster.metadata.config.replica_lag_time_max_ms)
                traffic = self.traffic.of(topic.name)
                replica = Replica(tp, topic.id, log, config, leadership, watermark, self._runtime, traffic)
                self.hosted[tp] = replica
            elif replica.config != config:
                replica.configure(config)
            replica.take_roles(roles_in(partition), elapsed_ms())
            if self.exchange is not None:
                self.exchange.changed(replica)
            yield
        self.names[topic.id.bytes] = topic.name
        self._followed[topic.name] = topic

    def _stop(self, tp: TopicPartition) -> None:
        """Serve that replica no more. Wakes the requests that wait for it; those in progress find that it is gone."""
        replica = self.hosted.pop(tp, None)
        if replica is None:
            return
        replica.leave()
        if self.exchange is not None:
            self.exchange.left(replica)

    def exchange_by(self, exchange: Exchange) -> None:
        """Follow and lead replicas on other brokers from now on."""
        self.exchange = exchange
        for replica in self:
            exchange.changed(replica)


def roles_in(partition: PartitionImage) -> PartitionRoles:
    return PartitionRoles(
        BrokerId(partition.leader),
        LeaderEpoch(partition.leader_epoch),
        tuple(BrokerId(broker) for broker in partition.isr),
        tuple(BrokerId(broker) for broker in partition.replicas),
        partition.partition_epoch,
        bool(partition.elr),
        tuple(BrokerId(broker) for broker in partition.adding_replicas),
    )


def elapsed_ms() -> int:
    """The time of the running loop: of a clock that never jumps."""
    return int(asyncio.get_running_loop().time() * 1000)


def _sync_names(folders: Iterable[LogFolder]) -> None:
    """Make the partitions' names in these folders survive a power loss: only then may the cluster treat a missing
    partition as lost. Blocks. A folder that fails goes offline and logs it."""
    for folder in folders:
        with suppress(KafkaError):
            folder.sync_names()
