"""Taking the partitions of another broker's log folders into one of ours, while neither broker runs.

A topic is copied under names that end in .tmp, brought into a state that a clean stop would leave, and flushed; then a
file beside the copies says so. From then on it is only renames within our folder, our checkpoints, and (by the caller)
the metadata, which alone makes the topic known; then that file goes. A crash before that leaves nothing that a broker
would look at; doing it again goes on where it ended. The other folders are only read.

    adopting-<key>-0.tmp/, adopting-<key>-1.tmp/    copies of partitions, complete or not; the key stands for the topic
    adopting-<key>.tmp                              {"topic_id", "partitions": {"0": {"end", "start", ...}}}: complete
                                                    ones, under those names or in place already
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
from moldau.log import checkpoints, identity
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.file_names import DELETED_SUFFIX
from moldau.log.folder import LOCK
from moldau.log.identity import META_PROPERTIES
from moldau.log.opening import LeftState, open_log
from moldau.log.services import LogServices
from moldau.names import TopicPartition
from moldau.runtime import Disk, Runtime, is_folder

COPY_BYTES: Final = 4 << 20


@dataclass(frozen=True)
class Adopted:
    """What our checkpoints and metadata have to know of a partition that was taken in."""

    end: int
    start: int
    leader_epoch: int
    """The latest that wrote in it; -1 if none is known."""
    producer_id_max: int
    """The largest that wrote in it; -1 if none did."""
    cleaned: int = -1
    """Up to where it was compacted; -1 if it never was."""


@dataclass(frozen=True)
class Ready:
    """A topic whose partitions are complete."""

    topic_id: uuid.UUID
    partitions: Mapping[int, Adopted]


def _copy_name(topic: str, partition: int | None = None) -> str:
    """Of a copy, or of what says that all are complete; a topic's own name may be too long for more behind it."""
    key = hashlib.sha256(topic.encode()).hexdigest()[:16]
    return f"adopting-{key}.tmp" if partition is None else f"adopting-{key}-{partition}.tmp"


class Intake:
    """Our folder, locked. `stage`, `place` and `forget` are the steps of one topic, in this order."""

    def __init__(self, runtime: Runtime, folder: Path):
        """Raises `StorageError` if a broker has the folder, `OSError`."""
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
        """The folder and its parents, whose names last."""
        made = [each for each in (folder, *folder.parents) if not self._disk.exists(each)]
        self._disk.make_folder(folder)
        for each in made:
            self._disk.sync_folder(each.parent)

    @property
    def properties(self) -> dict[str, str]:
        """What our meta.properties says; nothing if the folder is new."""
        return reading.properties_in(self._disk, self.folder / META_PROPERTIES)

    def claim(self, cluster_id: str, node_id: int, directory_id: str) -> None:
        """Write down whose the new folder is."""
        lines = ["#", "version=1", f"cluster.id={cluster_id}", f"node.id={node_id}", f"directory.id={directory_id}", ""]
        checkpoints.replace_file(self._disk, self.folder / META_PROPERTIES, "\n".join(lines).encode())

    def in_the_way(self, topic: ForeignTopic) -> Path | None:
        """A folder of ours that has a partition's name and was not put there by us."""
        if self.ready(topic.name) is not None:
            return None
        paths = (self.folder / str(partition.tp) for partition in topic.partitions.values())
        return next((path for path in paths if self._disk.exists(path)), None)

    def ready(self, topic: str) -> Ready | None:
        """The topic, if its partitions were completed before. Raises `StorageError`."""
        path = self.folder / _copy_name(topic)
        try:
            text = reading.text(self._disk, path)
            if text is None:
                return None
            said = json.loads(text)
            partitions = {int(number): Adopted(**fields) for number, fields in said["partitions"].items()}
            return Ready(uuid.UUID(said["topic_id"]), partitions)
        except (CorruptCheckpoint, ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise StorageError(
                f"{path} is not what an adoption left: remove it, and what it made of {topic}"
            ) from wrong

    def current(self, topic: ForeignTopic) -> Ready | None:
        """The same, unless the original has changed since: then what was made of it goes."""
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
        """Copy the topic's partitions, complete them, flush them. Raises `OSError`."""
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
                    new.truncate(size)  # what is made of zeros, as room in indexes is, takes no room here either
                    new.flush()
                finally:
                    new.close()
        self._disk.sync_folder(target)

    def _complete(self, partition: ForeignPartition, target: Path, config: TopicConfig, topic_id: uuid.UUID) -> Adopted:
        """Open the copy as a broker would after the stop that the original had, and close it cleanly."""
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
            raise StorageError(f"{corrupt}: start and stop our broker once, which writes it anew") from corrupt
        checkpoints.write_offsets(self._disk, path, {**known, **offsets})

    def end(self) -> None:
        """All topics are taken in. A folder that was new is as after a clean stop; in one of a broker that was killed
        `place` has noted that those of these topics were closed."""
        if self._is_new:
            identity.leave_marker(self._disk, self.folder, identity.NO_BROKER_EPOCH)
            self._disk.remove(self.folder / checkpoints.CLOSED_ENDS)

    def forget(self, topic: str) -> None:
        """The topic is known to the metadata: nothing is left to do."""
        self._disk.remove(self.folder / _copy_name(topic))
        self._disk.sync_folder(self.folder)


def bytes_of(disk: Disk, topics: Sequence[ForeignTopic]) -> int:
    """What copying these topics takes on the disk."""
    folders = [partition.folder for topic in topics for partition in topic.partitions.values()]
    return sum(
        disk.size(folder / name)
        for folder in folders
        for name in disk.list(folder)
        if not is_folder(disk, folder / name)
    )
