"""`moldau log repair`: make the log folders of a stopped broker consistent, so that it can start again.

    metadata.sqlite      kept if sound, else restored from its newest copy, else rebuilt; then adapted to the partitions
                         in the folders (`rebuilding`)
    meta.properties      cluster id and node id from the metadata or from the other folders; directory id kept, or the
                         one that the metadata has for the partitions in the folder
    partition.metadata   gets the topic id that the metadata has

`plan` changes nothing; `carry_out` does. After a crash during `carry_out` the same plan can be made again, because the
metadata, from which the plan is derived, is written last.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

from moldau.cluster.copies import COPY, SPARE, newest_copy, put_in_place
from moldau.cluster.opening import refuse_member
from moldau.cluster.rebuilding import Known, rebuild
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import last_producer_id, read_image
from moldau.errors import StorageError
from moldau.files.held import HeldFolders
from moldau.files.kafka_settings import FOLDER as KAFKAS_METADATA
from moldau.log import checkpoints
from moldau.log.folders import identity
from moldau.log.folders.identity import META_PROPERTIES
from moldau.log.folders.traces import Trace, traces
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.names import TopicPartition, short_id
from moldau.runtime import Disk, Runtime

DEFAULT_NODE_ID: Final = 1
Meta = Mapping[str, str]


@dataclass
class RepairPlan:
    """The changes that a repair makes. `changes` and `problems` are sentences for the operator. `metadata` goes into
    `home` (None if unchanged), `metas` into the meta.properties of log folders, `topic_ids` into partitions'
    folders."""

    home: Path
    changes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    metadata: bytes | None = None
    metas: dict[Path, Meta] = field(default_factory=dict)
    topic_ids: dict[Path, uuid.UUID] = field(default_factory=dict)


class _Metadata(NamedTuple):
    """The remaining metadata, and whether it may be older than the partitions."""

    image: Image | None
    stale: bool
    producer_id: int = -1


class Repair:
    """A repair of some log folders, which stay locked meanwhile."""

    def __init__(self, folders: Sequence[Path], runtime: Runtime):
        """Lock the folders. Raises `StorageError` if a broker is using one of them, or they are of one of several
        brokers; and `OSError`."""
        self._runtime = runtime
        self._disk: Disk = runtime.disk
        self._held = HeldFolders(folders, runtime.disk)
        self._folders = self._held.paths
        try:
            for folder in self._folders:
                refuse_member(self._disk, folder)
        except BaseException:
            self._held.release()
            raise

    def __enter__(self) -> "Repair":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.release()

    def plan(self, accepted: Callable[[TopicPartition], bool], node_id: int | None = None) -> RepairPlan:
        """The changes to make. `accepted` decides which lost partitions may start empty; `node_id` is used if no file
        names this broker's. Raises `StorageError`, `OSError`."""
        metas = {folder: self._meta(folder) for folder in self._folders}
        having = [folder for folder in self._folders if self._disk.exists(folder / FILE_NAME)]
        if len(having) > 1:
            raise StorageError(f"{FILE_NAME} is in {having[0]} and in {having[1]}: remove the older one")
        plan = RepairPlan((having or self._having(COPY) or self._folders)[0])
        traced = [trace for folder in self._folders for trace in traces(self._disk, folder)]
        left = self._metadata(plan)
        if left.image is None and (not traced or self._having(KAFKAS_METADATA)):
            raise StorageError(
                "these folders hold neither metadata nor partitions of Moldau (topics of Apache Kafka: "
                "`moldau log adopt`)"
            )
        node = _node_id(left.image, metas.values(), node_id)
        cluster_id = left.image.cluster_id if left.image else _most_common(metas.values(), "cluster.id")
        cluster_id = cluster_id or short_id(self._runtime.random.uuid())
        ids = {folder: self._directory_id(folder, meta, node, left.image, traced) for folder, meta in metas.items()}
        known = Known(
            node,
            cluster_id,
            {str(folder): directory_id for folder, directory_id in ids.items()},
            self._runtime.random.uuid,
            left.image,
            left.stale,
            left.producer_id,
            accepted,
        )
        rebuilt = rebuild(traced, known)
        plan.changes += rebuilt.done
        plan.problems += rebuilt.problems
        if left.image is None or left.stale or rebuilt.image.topics != left.image.topics:
            plan.metadata = EmbeddedStore.file_of(rebuilt.operations(node))
        for folder, meta in metas.items():
            right = {"cluster.id": cluster_id, "node.id": str(node), "directory.id": ids[folder]}
            self._plan_meta(plan, folder, meta, right)
        plan.topic_ids = {one.folder: rebuilt.renamed[one.tp] for one in traced if one.tp in rebuilt.renamed}
        return plan

    def carry_out(self, plan: RepairPlan) -> None:
        """Make the changes of the plan. After an `OSError`, make a new plan and carry it out."""
        disk = self._disk
        for folder, topic_id in plan.topic_ids.items():
            checkpoints.write_topic_id(disk, folder, topic_id)
            checkpoints.flush_topic_id(disk, folder)
            disk.sync_folder(folder)
        for folder, meta in plan.metas.items():
            identity.write_meta(disk, folder, meta)
        if plan.metadata is not None:
            put_in_place(disk, plan.home, plan.metadata)
            checkpoints.replace_file(disk, plan.home / COPY, plan.metadata)

    def _having(self, name: str) -> list[Path]:
        return [folder for folder in self._folders if self._disk.exists(folder / name)]

    def _meta(self, folder: Path) -> Meta:
        try:
            return identity.read_meta(self._disk, folder)
        except StorageError:
            return {}

    def _metadata(self, plan: RepairPlan) -> _Metadata:
        path = plan.home / FILE_NAME
        wrong = f"{path} is missing"
        if self._disk.exists(path):
            wrong = f"{path} is empty"
            try:
                if self._disk.size(path):
                    store = EmbeddedStore(plan.home)
                    try:
                        image = store.read(read_image())
                        if image is not None:
                            return _Metadata(image, False, store.read(last_producer_id()))
                    finally:
                        store.close()
            except StorageError as error:
                wrong = str(error)
        copy = newest_copy(self._disk, [folder / name for folder in self._folders for name in (COPY, SPARE)])
        if copy is None:
            lost = "settings of topics and brokers are lost"
            plan.changes.append(f"{wrong}, and it has no usable copy: it is rebuilt from the partitions; {lost}")
            return _Metadata(None, True)
        made = datetime.fromtimestamp(copy.made_ms // 1000, UTC).isoformat()
        plan.changes.append(
            f"{wrong}: it is restored from {copy.path}, made at {made}; changes of settings since then are lost"
        )
        return _Metadata(copy.image, True, copy.producer_id)

    def _directory_id(
        self, folder: Path, meta: Meta, node_id: int, image: Image | None, traced: Iterable[Trace]
    ) -> str:
        """The directory id of a folder: from its meta.properties, else the one that the metadata has for most of its
        partitions, else a new one."""
        if meta.get("directory.id"):
            return meta["directory.id"]
        parts = [image.partition(one.tp) for one in traced if one.folder.parent == folder] if image else []
        ids = Counter(part.directory_of(node_id) for part in parts if part is not None)
        del ids[""]
        return ids.most_common(1)[0][0] if ids else short_id(self._runtime.random.uuid())

    def _plan_meta(self, plan: RepairPlan, folder: Path, meta: Meta, right: Meta) -> None:
        said = {"node.id": meta["broker.id"], **meta} if "broker.id" in meta else meta
        wrong = [
            f"{name} changes from {said.get(name) or 'missing'} to {right[name]}"
            for name in right
            if said.get(name) != right[name]
        ]
        if wrong:
            plan.changes.append(f"{folder / META_PROPERTIES}: {'; '.join(wrong)}")
            plan.metas[folder] = {**meta, "version": "1", **right}


def _most_common(metas: Iterable[Meta], name: str) -> str | None:
    values = Counter(meta[name] for meta in metas if meta.get(name))
    return values.most_common(1)[0][0] if values else None


def _node_id(image: Image | None, metas: Iterable[Meta], given: int | None) -> int:
    """This broker's node id: the only broker with partitions in the metadata, else the folders' node id, else the given
    one."""
    replicas = {
        replica
        for topic in (image.topics.values() if image else ())
        for part in topic.partitions
        for replica in part.replicas
    }
    if len(replicas) == 1:
        return replicas.pop()
    metas = list(metas)
    said = _most_common(metas, "node.id") or _most_common(metas, "broker.id") or ""
    return int(said) if said.isdecimal() else DEFAULT_NODE_ID if given is None else given
