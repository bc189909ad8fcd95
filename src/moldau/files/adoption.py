"""Copies partitions from another broker's log folders into one of ours, while neither broker runs.

The steps for a topic: copy its partitions under names that end in .tmp, bring each copy into the state of a clean stop,
flush, and write a file that marks the copies as complete. Then rename the copies, write our checkpoints, let the caller
register the topic in the metadata (only this makes the topic known to the broker), and remove the mark. A broker
ignores what a crash leaves before the registration, and a second run continues where the first ended. The other
broker's folders are only read.

    adopting-<key>-0.tmp/, adopting-<key>-1.tmp/    copies of partitions, complete or not; key: a hash of the topic
    adopting-<key>.tmp                              the mark: {"topic_id", "partitions": {"0": {"end", "start", ...}}};
                                                    complete partitions, under those names or renamed already
"""

import dataclasses
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from moldau.config import TopicConfig
from moldau.errors import StorageError
from moldau.files.foreign import ForeignPartition, ForeignTopic
from moldau.files.inspection import reading
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.file_names import DELETED_SUFFIX
from moldau.log.folders import identity
from moldau.log.folders.identity import LOCK, META_PROPERTIES
from moldau.log.folders.opening import LeftState, open_log
from moldau.log.services import LogServices
from moldau.names import TopicPartition
from moldau.runtime import Disk, Runtime, is_folder

COPY_BYTES: Final = 4 << 20


@dataclass(frozen=True)
class Adopted:
    """The facts about an adopted partition that go into our checkpoints and metadata."""

    end: int
    start: int
    leader_epoch: int
    """The latest leader epoch in the partition; -1 if unknown."""
    producer_id_max: int
    """The largest producer id in the partition; -1 if it has none."""
    cleaned: int = -1
    """The offset up to which the partition was compacted; -1 if it never was."""


@dataclass(frozen=True)
class Ready:
    """A topic whose partitions are all copied and flushed."""

    topic_id: uuid.UUID
    partitions: Mapping[int, Adopted]


def _copy_name(topic: str, partition: int | None = None) -> str:
    """The name of a partition's copy, or (without a partition) of the mark. It has a hash of the topic, because a
    topic's name with a suffix may be too long for a file name."""
    key = hashlib.sha256(topic.encode()).hexdigest()[:16]
    return f"adopting-{key}.tmp" if partition is None else f"adopting-{key}-{partition}.tmp"


class Intake:
    """Our log folder, locked. The steps for one topic are `stage`, `place` and `forget`, in this order."""

    def __init__(self, runtime: Runtime, folder: Path):
        """Lock the folder, and create it if needed. Raises `StorageError` if a broker is using it, and `OSError`."""
        self.folder = folder
        self._runtime = runtime
        self._disk = runtime.disk
        self._make(folder)
        self._unlock = self._disk.lock(folder / LOCK)
        self._is_new = not self.properties

    def __enter__(self) -> "Intake":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._unlock()

    def _make(self, folder: Path) -> None:
        """Create the folder and its missing parents, and sync each new name to the disk."""
        made = [each for each in (folder, *folder.parents) if not self._disk.exists(each)]
        self._disk.make_folder(folder)
        for each in made:
            self._disk.sync_folder(each.parent)

    @property
    def properties(self) -> dict[str, str]:
        """The contents of our meta.properties; empty if the folder is new."""
        return reading.properties_in(self._disk, self.folder / META_PROPERTIES)

    def claim(self, cluster_id: str, node_id: int, directory_id: str) -> None:
        """Write the new folder's meta.properties."""
        meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id), "directory.id": directory_id}
        identity.write_meta(self._disk, self.folder, meta)

    def in_the_way(self, topic: ForeignTopic) -> Path | None:
        """A folder of our broker that already has the name of one of the partitions, and is not from an earlier
        adoption."""
        if self.ready(topic.name) is not None:
            return None
        paths = (self.folder / str(partition.tp) for partition in topic.partitions.values())
        return next((path for path in paths if self._disk.exists(path)), None)

    def ready(self, topic: str) -> Ready | None:
        """The topic, if an earlier run completed its copies. Raises `StorageError`."""
        path = self.folder / _copy_name(topic)
        try:
            text = reading.text(self._disk, path)
            if text is None:
                return None
            said = json.loads(text)
            partitions = {int(number): Adopted(**fields) for number, fields in said["partitions"].items()}
            return Ready(uuid.UUID(said["topic_id"]), partitions)
        except (CorruptCheckpoint, ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise StorageError(f"{path} was not written by an adoption: remove it and the copies of {topic}") from wrong

    def current(self, topic: ForeignTopic) -> Ready | None:
        """As `ready`; but if the original has changed since, remove its copies and return None."""
        ready = self.ready(topic.name)
        if ready is None or {number: one.end for number, one in topic.partitions.items()} == {
            number: done.end for number, done in ready.partitions.items()
        }:
            return ready
        for number in ready.partitions:
            self._disk.remove(self.folder / str(TopicPartition(topic.name, number)))
        self.forget(topic.name)
        return None

    def stage(self, topic: ForeignTopic, config: TopicConfig) -> Ready:
        """Copy the topic's partitions, complete and flush the copies, and mark them as complete. Raises `OSError`."""
        topic_id = topic.id or self._runtime.random.uuid()
        done: dict[int, Adopted] = {}
        for number, partition in sorted(topic.partitions.items()):
            target = self.folder / _copy_name(topic.name, number)
            self._disk.remove(target)
            self._disk.make_folder(target)
            self._copy(partition.folder, target)
            done[number] = self._complete(partition, target, config, topic_id)
        self._disk.sync_folder(self.folder)
        fields = {str(number): dataclasses.asdict(adopted) for number, adopted in done.items()}
        text = json.dumps({"topic_id": str(topic_id), "partitions": fields})
        checkpoints.replace_file(self._disk, self.folder / _copy_name(topic.name), text.encode())
        return Ready(topic_id, done)

    def _copy(self, source: Path, target: Path) -> None:
        for name in self._disk.list(source):
            if is_folder(self._disk, source / name) or name.endswith(DELETED_SUFFIX):
                continue
            with reading.opened(self._disk, source / name) as old:
                new = self._disk.open(target / name, create=True)
                try:
                    size = old.size()
                    for at in range(0, size, COPY_BYTES):
                        piece = old.read(min(COPY_BYTES, size - at), at)
                        if piece.strip(b"\0"):
                            new.write(piece, at)
                    new.truncate(size)  # blocks of zeros, as in preallocated indexes, stay unallocated
                    new.flush()
                finally:
                    new.close()
        self._disk.sync_folder(target)

    def _complete(self, partition: ForeignPartition, target: Path, config: TopicConfig, topic_id: uuid.UUID) -> Adopted:
        """Open the copy with recovery, as its broker would after its last stop, and close it cleanly."""
        left = LeftState(partition.clean, partition.recovery_point, partition.log_start)
        log = open_log(target, partition.tp, topic_id, config, LogServices.alone(self._runtime), left)
        adopted = Adopted(
            end=int(log.log_end_offset),
            start=int(log.log_start_offset),
            leader_epoch=max(int(log.epochs.latest), partition.leader_epoch),
            producer_id_max=max([partition.producer_id_max, *(number for number, _ in log.producers)]),
            cleaned=min(partition.cleaned, int(log.log_end_offset)),
        )
        log.close()
        self._disk.sync_folder(target)
        return adopted

    def place(self, topic: str, ready: Ready) -> None:
        """Rename the partitions into place and write them into our checkpoints. Raises `OSError`."""
        disk, tps = self._disk, {TopicPartition(topic, number): done for number, done in ready.partitions.items()}
        for tp in tps:
            copy = self.folder / _copy_name(topic, tp.partition)
            if disk.exists(copy):
                disk.rename(copy, self.folder / str(tp))
        disk.sync_folder(self.folder)
        self._note(checkpoints.RECOVERY_POINTS, {tp: done.end for tp, done in tps.items()})
        self._note(checkpoints.LOG_STARTS, {tp: done.start for tp, done in tps.items() if done.start})
        self._note(checkpoints.HIGH_WATERMARKS, {tp: done.end for tp, done in tps.items()})
        self._note(checkpoints.CLEANER_OFFSETS, {tp: done.cleaned for tp, done in tps.items() if done.cleaned >= 0})
        self._note(checkpoints.CLOSED_ENDS, {tp: done.end for tp, done in tps.items()})

    def _note(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        path = self.folder / name
        try:
            known = checkpoints.read_offsets(self._disk, path)
        except CorruptCheckpoint as corrupt:
            raise StorageError(f"{corrupt}: start and stop Moldau's broker once to rewrite the file") from corrupt
        checkpoints.write_offsets(self._disk, path, {**known, **offsets})

    def end(self) -> None:
        """Finish after the last topic. A new folder gets the mark of a clean stop. In the folder of a broker that was
        killed, `place` has already noted that the adopted partitions were closed cleanly."""
        if self._is_new:
            identity.leave_marker(self._disk, self.folder, identity.NO_BROKER_EPOCH)
            self._disk.remove(self.folder / checkpoints.CLOSED_ENDS)

    def forget(self, topic: str) -> None:
        """Remove the mark, after the topic has been registered in the metadata."""
        self._disk.remove(self.folder / _copy_name(topic))
        self._disk.sync_folder(self.folder)


def bytes_of(disk: Disk, topics: Sequence[ForeignTopic]) -> int:
    """The disk space that copies of these topics take, in bytes."""
    folders = [partition.folder for topic in topics for partition in topic.partitions.values()]
    return sum(
        disk.size(folder / name)
        for folder in folders
        for name in disk.list(folder)
        if not is_folder(disk, folder / name)
    )
