"""The warehouse on disk: data files, manifests, and the one atomic step that commits a load.

    DIR/topic=flights/date=2013-01-01/part-00002-START-END-LOAD.parquet    data, committed or about to be
    DIR/_moldau/manifest-000001.json ...     the committed loads: only these count
    DIR/_moldau/pending-LOAD.json            the names of files that a load is about to move into place
    DIR/_moldau/staging/LOAD/                files that tasks are writing
    DIR/_moldau/lock                         held by the running load

The steps of a commit: complete and flush the files in staging; write `pending`; rename the files into place; flush the
folders; create the manifest under a free number; remove `pending`. A crash before the manifest leaves files that
`recover` removes by the names in `pending`; no other file is ever deleted. A crash after the manifest leaves only
`pending` and staging. So reading through the manifests is always exact. Reading all files under `topic=*` shows each
record at most once, and exactly once after `recover`.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from moldau.errors import StorageError
from moldau.names import TopicPartition
from moldau.pipeline.manifest import DataFile, Manifest, WarehouseError, file_name, from_json, to_json
from moldau.runtime import Runtime

MANIFEST_NAME = re.compile(r"manifest-(\d{6,})\.json")
PENDING_NAME = re.compile(r"pending-([0-9a-f]+)\.json")


@dataclass(frozen=True)
class Staged:
    """A finished file in staging: its path there, and its entry for the manifest."""

    staged_path: str
    file: DataFile


class Warehouse:
    """One warehouse folder. Reading needs no lock; `recover` and `commit` are for the holder of `locked()`."""

    def __init__(self, folder: Path, runtime: Runtime | None = None):
        self.folder = folder.absolute()
        self.state = self.folder / "_moldau"
        self.runtime = runtime or Runtime()
        self.disk = self.runtime.disk

    def manifests(self) -> list[Manifest]:
        """Every committed load, oldest first; WarehouseError when one is unreadable or missing."""
        if not self.disk.exists(self.state):
            return []
        found = sorted(int(match[1]) for name in self.disk.list(self.state) if (match := MANIFEST_NAME.fullmatch(name)))
        if found != list(range(1, len(found) + 1)):
            missing = next(number for number in range(1, len(found) + 1) if number not in found)
            raise WarehouseError(f"{self.state / file_name(missing)} is missing; restore it from a backup.")
        return [self._manifest(number) for number in found]

    def files(self) -> list[DataFile]:
        """Every committed file, in the order of its load."""
        return [file for manifest in self.manifests() for file in manifest.files]

    def paths(self, topic: str | None = None) -> list[str]:
        """Absolute paths of the committed files, of one topic or of all."""
        return [str(self.folder / file.path) for file in self.files() if topic in (None, file.topic)]

    def offsets(self) -> dict[TopicPartition, int]:
        """The next offset to load, for each partition ever loaded."""
        manifests = self.manifests()
        return dict(manifests[-1].offsets) if manifests else {}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other loads out for as long as the block runs; the lock dies with the process."""
        try:
            self.disk.make_folder(self.state)
            release = self.disk.lock(self.state / "lock")
        except StorageError:
            raise WarehouseError(f"Another load is writing to {self.folder}; wait until it has ended.") from None
        except OSError as error:
            raise WarehouseError(f"The warehouse {self.folder} cannot be written: {error.strerror}.") from None
        try:
            yield
        finally:
            release()

    def staging(self, load_id: str) -> Path:
        return self.state / "staging" / load_id

    def recover(self) -> int:
        """Remove the leftovers of loads that died. Returns the number of files removed from the data folders."""
        committed = {manifest.load_id for manifest in self.manifests()}
        removed = 0
        for name in self.disk.list(self.state):
            match = PENDING_NAME.fullmatch(name)
            if match and match[1] not in committed:
                removed += self._take_back(self.state / name)
            if match or name.endswith(".tmp"):
                self.disk.remove(self.state / name)
        self.disk.remove(self.state / "staging")
        return removed

    def commit(self, load_id: str, staged: Sequence[Staged], offsets: Mapping[TopicPartition, int]) -> Manifest:
        """Make the staged files and the offsets part of the warehouse, all of them or nothing.

        `offsets` are merged into those of the last manifest. WarehouseError if another load got in between.
        """
        before = self.manifests()
        number = len(before) + 1
        merged = {**(before[-1].offsets if before else {}), **offsets}
        files = tuple(sorted((one.file for one in staged), key=lambda file: file.path))
        manifest = Manifest(number, load_id, self.runtime.clock.now_ms(), files, merged)
        pending = self.state / f"pending-{load_id}.json"
        self._write(pending, json.dumps([file.path for file in files]).encode())
        try:
            self._move_into_place(staged)
        except OSError as error:
            self._take_back(pending)
            self.disk.remove(pending)
            raise WarehouseError(f"The warehouse {self.folder} cannot be written: {error.strerror}.") from None
        try:
            self._create(self.state / file_name(number), to_json(manifest))
        except FileExistsError:
            self._take_back(pending)
            self.disk.remove(pending)
            raise WarehouseError(f"Another load committed to {self.folder} meanwhile; run this load again.") from None
        self.disk.remove(pending)
        self.disk.remove(self.staging(load_id))
        with contextlib.suppress(OSError):  # another load's folder may be in there
            (self.state / "staging").rmdir()
        return manifest

    def _manifest(self, number: int) -> Manifest:
        path = self.state / file_name(number)
        manifest = from_json(self._read(path), str(path))
        if manifest.number != number:
            raise WarehouseError(f"{path} says it is manifest {manifest.number}; restore the right one from a backup.")
        return manifest

    def _move_into_place(self, staged: Sequence[Staged]) -> None:
        """Rename every file to its place, then flush each folder whose names changed, the deepest first."""
        folders: dict[Path, None] = {}
        for one in staged:
            target = self._inside(one.file.path)
            if target.parent not in folders:
                self.disk.make_folder(target.parent)
                folders[target.parent] = None
            self.disk.rename(Path(one.staged_path), target)
        for topic_folder in [folder.parent for folder in folders]:
            folders[topic_folder] = None
        folders[self.folder] = None
        for folder in sorted(folders, key=lambda path: (-len(path.parts), path)):
            self.disk.sync_folder(folder)

    def _take_back(self, pending: Path) -> int:
        try:
            names = json.loads(self._read(pending))
        except ValueError:
            raise WarehouseError(f"{pending} is damaged; files of that load may lie among the data.") from None
        there = [path for path in map(self._inside, names) if self.disk.exists(path)]
        for path in there:
            self.disk.remove(path)
        return len(there)

    def _inside(self, relative: str) -> Path:
        parts = PurePosixPath(relative).parts
        if len(parts) != 3 or ".." in parts or not parts[0].startswith("topic="):
            raise WarehouseError(f"{relative!r} is not a path inside the warehouse.")
        return self.folder.joinpath(*parts)

    def _read(self, path: Path) -> bytes:
        file = self.disk.open(path, writable=False)
        try:
            return file.read(file.size(), 0)
        finally:
            file.close()

    def _write(self, path: Path, data: bytes) -> None:
        """Write a whole file; after a crash it exists completely or not at all."""
        self.disk.rename(self._write_aside(path, data), path)
        self.disk.sync_folder(path.parent)

    def _create(self, path: Path, data: bytes) -> None:
        """As `_write`, but raises `FileExistsError` if the name is taken: only one of two concurrent writers
        succeeds."""
        aside = self._write_aside(path, data)
        try:
            os.link(aside, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: only the lock excludes other loads
            if self.disk.exists(path):
                raise FileExistsError(str(path)) from None
            self.disk.rename(aside, path)
        finally:
            self.disk.remove(aside)
        self.disk.sync_folder(path.parent)

    def _write_aside(self, path: Path, data: bytes) -> Path:
        aside = path.with_name(f"{path.name}.{self.runtime.random.uuid().hex[:8]}.tmp")
        file = self.disk.open(aside, create=True)
        try:
            file.write(data, 0)
            file.flush()
        finally:
            file.close()
        return aside
