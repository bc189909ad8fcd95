"""`moldau cluster adopt`: the log folders of a broker that was alone become those of the first of several.

    cluster-store                made before the last step in ZooKeeper: from then on the broker starts alone no more
    metadata.sqlite.adopted      the metadata, when all of it is in ZooKeeper; its copies are removed before

The steps in ZooKeeper are in `cluster.adopting`. After a crash all of it is done again.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

from moldau.cluster.copies import COPY, SPARE
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import last_producer_id, read_image
from moldau.errors import StorageError
from moldau.files.held import HeldFolders
from moldau.log.folders import identity
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.runtime import Disk

ADOPTED: Final = FILE_NAME + ".adopted"


class LoneBroker(NamedTuple):
    """The metadata of a broker that was alone. `producer_id` is the last that may have been assigned; `was_noted`: all
    of it may be in ZooKeeper already."""

    node_id: int
    image: Image
    producer_id: int
    was_noted: bool


class ClusterAdoption:
    """All log folders of one stopped broker, which stay locked meanwhile. Use it in `with`."""

    def __init__(self, folders: Sequence[Path], disk: Disk):
        """Raises `StorageError`, `OSError`."""
        self._disk = disk
        self._held = HeldFolders(folders, disk)
        self._home: Path

    def __enter__(self) -> "ClusterAdoption":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.release()

    def read(self, connect: str) -> LoneBroker | None:
        """The metadata; None if they are in that ZooKeeper and nothing is left to do. Raises `StorageError` if there
        are none, or they are, or may be, in another ZooKeeper; `OSError`."""
        noted = {folder: identity.cluster_store(self._disk, folder) for folder in self._held.paths}
        for folder, begun in noted.items():
            if begun not in (None, connect):
                raise StorageError(
                    f"{folder} was adopted by the cluster that has its metadata in {begun}, or is about to be: name "
                    "that one"
                )
        having = [folder for folder in self._held.paths if self._disk.exists(folder / FILE_NAME)]
        if not having and any(self._disk.exists(folder / ADOPTED) for folder in self._held.paths):
            return None
        if len(having) != 1:
            where = f"both {having[0]} and {having[1]}" if having else "none of these folders"
            raise StorageError(f"the {FILE_NAME} of a standalone broker is in {where}")
        self._home = having[0]
        return self._read(noted[having[0]] is not None)

    def note(self, connect: str) -> None:
        """The metadata may be in that ZooKeeper from now on. Raises `OSError`."""
        identity.note_cluster_store(self._disk, self._home, connect)

    def finish(self) -> None:
        """All of the metadata is in ZooKeeper. Raises `OSError`."""
        for name in (COPY, SPARE):
            for folder in self._held.paths:
                if self._disk.exists(folder / name):
                    self._disk.remove(folder / name)
                    self._disk.sync_folder(folder)
        for folder in self._held.paths:
            if self._disk.exists(folder / FILE_NAME):
                self._disk.rename(folder / FILE_NAME, folder / ADOPTED)
                self._disk.sync_folder(folder)

    def _read(self, was_noted: bool) -> LoneBroker:
        home = self._home
        store = EmbeddedStore(home)
        try:
            image, producer_id = store.read(read_image()), store.read(last_producer_id())
        finally:
            store.close()
        if image is None:
            raise StorageError(f"{home / FILE_NAME} is empty: run `moldau log repair` first")
        metas = [identity.read_meta(self._disk, folder) for folder in self._held.paths]
        for folder, meta in zip(self._held.paths, metas, strict=True):
            if meta.get("cluster.id") != image.cluster_id:
                raise StorageError(
                    f"{folder} is not a log folder of the broker with the metadata in {home}: name those of one broker"
                )
        text = metas[0].get("node.id") or metas[0].get("broker.id") or ""
        if not text.isdecimal():
            raise StorageError(f"{self._held.paths[0]} does not say which node.id its broker has")
        return LoneBroker(int(text), image, producer_id, was_noted)
