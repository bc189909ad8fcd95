"""All log folders of a broker together: where a partition is, where a new one goes, and what survives if one fails.

A folder is known by its directory id, which the metadata keeps for every partition (KIP-858), so that a partition whose
folder is missing is never created empty in another one. A folder that cannot be opened, or fails later, takes only its
own partitions offline. The broker stops when its last folder fails, or the one with the metadata (`needed`). A new
partition goes to the folder with the fewest partitions. `losses` says which starts are refused.

`load` and `shut` are coroutines, whose blocking work goes to the runtime's executor. Methods that block say so.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from moldau.config import TopicConfig
from moldau.errors import KafkaError, StartInterrupted, StorageError
from moldau.log.files import HELD_MAX, OPEN_FILES_MAX, OpenFiles
from moldau.log.folders import identity
from moldau.log.folders.arriving import settle_copies
from moldau.log.folders.closing import close_logs
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folder_names import partition_of
from moldau.log.folders.identity import META_PROPERTIES, NO_BROKER_EPOCH
from moldau.log.folders.losses import Expected, accepted_losses, refuse_doubles
from moldau.log.folders.placing import PreferredFolders, spread
from moldau.log.folders.usage import FolderUse, use_of
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.runtime import Runtime, out_of_descriptors

T = TypeVar("T")
UNASSIGNED = ""
"""The directory id of a partition whose log folder is not known."""

logger = logging.getLogger(__name__)


class LogFolders:
    """`folders` are those that could be opened, in the order of `log.dirs`; some may have `failed` since. `unusable`
    has the error of each of the others. `on_failure` is called with every folder that fails later. `of_several`: they
    belong to one of several brokers."""

    def __init__(
        self,
        paths: Sequence[Path],
        runtime: Runtime,
        open_files_max: int = OPEN_FILES_MAX,
        held_max: int = HELD_MAX,
        of_several: bool = False,
    ):
        """Raises `StorageError` if another process uses one of them, `OSError` if none can be opened."""
        self.folders: list[LogFolder] = []
        self.unusable: dict[Path, OSError] = {}
        self._strays: dict[str, Path] = {}
        self.begun_empty: set[TopicPartition] = set()
        """The lost partitions that may start empty, in whichever folder."""
        self.preferred = PreferredFolders()
        self.needed: Path | None = None
        self.on_failure: Callable[[LogFolder], None] | None = None
        self._runtime = runtime
        self._paths = list(paths)
        self._of_several = of_several
        self._interrupted = False
        self.files = OpenFiles(runtime.disk, open_files_max, held_max)
        try:
            for path in paths:
                self._open(path)
            self._check_ids()
            for folder in self.folders:
                folder.repair_command = self.repair_command
        except BaseException:
            self.close(clean=False)
            raise

    def _open(self, path: Path) -> None:
        try:
            folder = LogFolder(path, self._runtime, files=self.files)
        except OSError as error:
            _refuse_without_descriptors(error)
            self.unusable[path] = error
            if len(self._paths) > 1:  # else it is the error of the start
                logger.error("the log folder %s cannot be opened and is left out: %s", path, error.strerror or error)
            return
        self.folders.append(folder)
        folder.on_failure = lambda error: self._failed(folder)

    def _check_ids(self) -> None:
        if not self.folders:
            raise next(iter(self.unusable.values()))
        by_id = {folder.directory_id: folder.path for folder in self.folders}
        for folder in self.folders:
            other = by_id[folder.directory_id]
            if other != folder.path:
                raise StorageError(
                    f"{folder.path} and {other} have the same directory.id in meta.properties: one is a copy of the "
                    "other, and only one of them may be in log.dirs"
                )

    def _failed(self, folder: LogFolder) -> None:
        if self.on_failure is not None:
            self.on_failure(folder)

    @property
    def repair_command(self) -> str | None:
        """The command that repairs these folders; None for one of several brokers, whose folders it refuses."""
        if self._of_several:
            return None
        import shlex  # not needed at start-up, which it would slow down

        return " ".join(["moldau log repair", *(shlex.quote(str(path)) for path in self._paths)])

    def _or_repair(self, effect: str) -> str:
        """The end of a sentence that says how to go on."""
        return f", or run `{self.repair_command}`, which {effect}" if self.repair_command else ""

    @property
    def were_used(self) -> bool:
        """Whether a broker has stored partitions or checkpoints in these folders. Raises `OSError`."""
        return any(folder.was_used for folder in self.folders)

    @property
    def serving(self) -> list[LogFolder]:
        """The folders that are not offline."""
        return [folder for folder in self.folders if folder.failed is None]

    @property
    def whole(self) -> bool:
        """Whether every folder is online. Only then does a partition without a folder not exist."""
        return not self.unusable and len(self.serving) == len(self.folders)

    @property
    def lost(self) -> bool:
        """Whether the broker must stop: no folder is left, or the one with the metadata has failed."""
        serving = self.serving
        return not serving or (self.needed is not None and all(folder.path != self.needed for folder in serving))

    @property
    def directories(self) -> dict[str, bool]:
        """The directory ids of the online folders, and whether the last stop of each was clean."""
        return {folder.directory_id: folder.clean for folder in self.serving}

    @property
    def kept_since(self) -> dict[str, int]:
        """The directory ids of the online folders, and the registration (broker epoch) since which each has lost
        nothing, -1 if that cannot be shown. Known when the logs are loaded."""
        return {folder.directory_id: folder.kept_since for folder in self.serving}

    def note_running(self, broker_epoch: int) -> None:
        """From now on the folders are served in this registration of the broker. Blocks."""
        for folder in self.serving:
            _quietly(partial(folder.note_running, broker_epoch))

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the folders belong to; None if they are new."""
        ids = [folder.meta["cluster.id"] for folder in self.folders if "cluster.id" in folder.meta]
        return ids[0] if ids else None

    @property
    def cluster_store(self) -> str | None:
        """The `zookeeper.connect` that the folders were served with last; None if their broker was, or may have been,
        alone. Raises `OSError`."""
        stores = (identity.cluster_store(self._runtime.disk, folder.path) for folder in self.serving)
        return next(filter(None, stores), None)

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks in the checkpoints of all folders."""
        watermarks: dict[TopicPartition, int] = {}
        for folder in self.serving:
            watermarks.update(folder.high_watermarks)
        return watermarks

    def check_identity(self) -> None:
        """Raises `StorageError` if a used folder lacks its cluster or node id, `OSError`."""
        for folder in self.folders:
            missing = identity.missing_in(folder.meta)
            if missing and folder.was_used:
                raise StorageError(
                    f"{folder.path / META_PROPERTIES} lacks {' and '.join(missing)}, but the folder was used before: "
                    f"restore the file{self._or_repair('writes it again')}"
                )

    def claim(self, cluster_id: str, node_id: int, store: str | None = None) -> None:
        """Record that the folders belong to this node of this cluster. `store` is the `zookeeper.connect` of a cluster
        of several. Raises `StorageError` if one belongs to another."""
        for folder in self.serving:
            try:
                folder.claim(cluster_id, node_id, store)
            except OSError as error:
                _failed_at_start(folder, error)
        self._check_left()

    def _check_left(self) -> None:
        if self.lost:
            why = next((folder.failed for folder in self.folders if folder.failed is not None), None)
            raise why or StorageError("no log folder is left")

    async def load(
        self,
        known: Mapping[str, uuid.UUID],
        config_of: Callable[[str], TopicConfig],
        deleted: Mapping[uuid.UUID, str] | None = None,
        threads: int = 1,
        made: Mapping[TopicPartition, str] | None = None,
        accepted: Callable[[TopicPartition], bool] | None = None,
    ) -> list[str]:
        """Open the partitions of all known topics (name -> id), with `threads` threads in each folder; returns the
        unknown paths. A folder that cannot be read goes offline. `made` are the partitions that must exist in some
        folder, and the directory id of the one they were in; `accepted` decides which of them may start empty if they
        are lost, None if a repair decides that.

        Raises `StorageError` for a partition that is in two folders, or lost; `OSError` if no folder is left,
        `StartInterrupted`.
        """
        by_folder: dict[LogFolder, list[TopicPartition]] = {folder: [] for folder in self.serving}
        copies: dict[LogFolder, dict[TopicPartition, str]] = {}
        strays: list[str] = []

        def sift(folder: LogFolder) -> None:
            try:
                by_folder[folder], copies[folder], names = folder.sift(known, deleted)
                strays.extend(str(folder.path / name) for name in names)
            except OSError as error:
                _failed_at_start(folder, error)

        await asyncio.gather(*[self._runtime.run(partial(sift, folder)) for folder in self.serving])
        await self._runtime.run(partial(settle_copies, by_folder, copies, made or {}, _failed_at_start))
        refuse_doubles(by_folder)
        homes = {folder.directory_id: folder for folder in self.serving}
        if self.whole:  # a partition that was assigned to no folder may be in one that is offline
            homes[UNASSIGNED] = self.serving[0]
        were_in = {tp: homes.get(directory_id) for tp, directory_id in (made or {}).items()}
        lost = accepted_losses(Expected(were_in, known, accepted, self.whole), by_folder, strays, self._or_repair)
        self.begun_empty.update(lost)
        for folder in filter(None, {were_in[tp] for tp in lost}):
            await self._runtime.run(folder.forget_kept)
        loading = [
            self._load(folder, partitions, known, config_of, threads)
            for folder, partitions in by_folder.items()
            if folder.failed is None
        ]
        await asyncio.gather(*loading)
        if self._interrupted:
            raise StartInterrupted("the broker was asked to stop while it loaded its partitions")
        self._check_left()
        self._strays = {tp.topic: path for path in map(Path, strays) if (tp := partition_of(path.name)) is not None}
        return sorted(strays)

    def interrupt(self) -> None:
        """Open no further partition: `load` raises `StartInterrupted` once the partitions being opened are open."""
        self._interrupted = True
        for folder in self.folders:
            folder.stop_loading()

    async def _load(
        self,
        folder: LogFolder,
        partitions: list[TopicPartition],
        known: Mapping[str, uuid.UUID],
        config_of: Callable[[str], TopicConfig],
        threads: int,
    ) -> None:
        try:
            work = await self._runtime.run(lambda: folder.loading(partitions, known, config_of, threads))
        except OSError as error:
            _failed_at_start(folder, error)
            return
        ends = await asyncio.gather(*[self._runtime.run(piece) for piece in work], return_exceptions=True)
        for end in ends:
            if isinstance(end, OSError):
                _failed_at_start(folder, end)
            elif end is not None:
                raise end
        try:
            if folder.failed is None:
                await self._runtime.run(folder.settle)
        except OSError as error:
            _failed_at_start(folder, error)

    @property
    def named(self) -> dict[str, bool]:
        """The path of every configured folder, and whether it is online."""
        serving = {folder.path for folder in self.serving}
        return {str(path): path in serving for path in self._paths}

    def in_use(self, wanted: Collection[TopicPartition] | None = None) -> list[FolderUse]:
        """The content of every configured folder, or what it has of these partitions. Blocks."""
        by_path = {folder.path: folder for folder in self.serving}
        return [use_of(path, by_path.get(path), wanted) for path in self._paths]

    def in_the_way(self, topic: str) -> Path | None:
        """A partition folder with this topic's name that belonged to no known topic at the start and still exists."""
        path = self._strays.get(topic)
        return path if path is not None and self._runtime.disk.exists(path) else None

    def directory_of(self, tp: TopicPartition) -> str | None:
        """The directory id of the folder that serves a partition; None where `folder_of` returns None."""
        folder = self.folder_of(tp)
        return folder.directory_id if folder is not None else None

    def folder_of(self, tp: TopicPartition) -> LogFolder | None:
        """The folder that serves a partition; None if no folder has it, or its folder is offline."""
        for folder in self.folders:
            if tp in folder.logs and folder.failed is None:
                return folder
        return None

    def find(self, tp: TopicPartition) -> Log | None:
        folder = self.folder_of(tp)
        return folder.logs[tp] if folder is not None else None

    def home(self, directory_id: str, *, is_new: bool = False, tp: TopicPartition | None = None) -> LogFolder | None:
        """The folder for a partition assigned to `directory_id`; for an unassigned partition, the one that is preferred
        for `tp`, or the folder with the fewest partitions. None if the assigned folder is, or may be, offline or
        missing: an unassigned partition may be in such a folder unless it `is_new`."""
        serving = self.serving
        if directory_id == UNASSIGNED and is_new and tp is not None:
            directory_id = self.preferred.take(tp, self.directories) or UNASSIGNED
        if directory_id != UNASSIGNED:
            return next((folder for folder in serving if folder.directory_id == directory_id), None)
        return min(serving, key=lambda folder: len(folder.logs)) if serving and (is_new or self.whole) else None

    def place(self, partitions: Sequence[TopicPartition]) -> list[str]:
        """The directory ids for these new partitions: each goes to the folder that is preferred for it, or that has the
        fewest partitions by then."""
        counts = {folder.directory_id: len(folder.logs) for folder in self.serving}
        return spread(partitions, counts, self.preferred) if counts else [UNASSIGNED] * len(partitions)

    def at(self, path: str) -> LogFolder | None:
        """The folder at this path, exactly as `log.dirs` names it; None if it is offline or not there."""
        return next((folder for folder in self.serving if str(folder.path) == path), None)

    def discard_copies(self, partitions: Collection[TopicPartition], now_ms: int) -> None:
        """These partitions do not move any more. Blocks."""
        for folder in self.serving:
            for tp in partitions:
                _quietly(partial(folder.futures.discard, tp, now_ms))

    def delete(self, partitions: Collection[TopicPartition], now_ms: int) -> None:
        """Delete partitions from the folders that serve them. A folder that fails goes offline and logs it."""
        self.discard_copies(partitions, now_ms)  # first: without the partition, a copy could pass for it
        for folder in self.serving:
            own = [tp for tp in partitions if tp in folder.logs]
            if own:
                _quietly(partial(folder.delete_all, own, now_ms))

    def check_places(self) -> None:
        """Take folders offline whose paths now lead elsewhere. Blocks."""
        for folder in self.serving:
            folder.check_place()

    def remove_due(self, now_ms: int) -> int:
        """Remove deleted files and folders whose delay has passed; returns their number. Blocks."""
        return sum(_quietly(partial(folder.remove_due, now_ms)) or 0 for folder in self.serving)

    def checkpoint_recovery_points(self) -> None:
        for folder in self.serving:
            _quietly(folder.checkpoint_recovery_points)

    def checkpoint_log_starts(self) -> None:
        for folder in self.serving:
            _quietly(folder.checkpoint_log_starts)

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write to each folder the high watermarks of its own partitions. Blocks."""
        for folder in self.serving:
            own = {tp: offset for tp, offset in high_watermarks.items() if tp in folder.logs}
            _quietly(partial(folder.checkpoint_high_watermarks, own))

    async def shut(
        self, high_watermarks: Mapping[TopicPartition, int] | None, broker_epoch: int = NO_BROKER_EPOCH
    ) -> None:
        """Close all folders cleanly, in several threads each, and log the progress of a slow stop. Without
        `high_watermarks` (after an interrupted start) the last checkpoint is kept. `broker_epoch` is the registration
        in which they were served."""
        await close_logs([folder.closing() for folder in self.serving], self._runtime)
        await self._runtime.run(partial(self.close, True, high_watermarks, broker_epoch))

    def close(
        self,
        clean: bool = True,
        high_watermarks: Mapping[TopicPartition, int] | None = None,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        """Close all folders. Each gets its clean-shutdown marker, unless it failed or `clean` is false. Blocks."""
        for folder in self.folders:
            own = None
            if high_watermarks is not None:
                own = {tp: offset for tp, offset in high_watermarks.items() if tp in folder.logs}
            folder.close(clean and folder.is_loaded, own, broker_epoch)


def _refuse_without_descriptors(error: OSError) -> None:
    if out_of_descriptors(error):
        raise StorageError(
            f"the log folders cannot be opened: {error}. Raise the limit of open files (`ulimit -n`, LimitNOFILE in "
            "systemd) and start again"
        ) from error


def _failed_at_start(folder: LogFolder, error: OSError) -> None:
    """Take the folder offline and go on with the others. If only file descriptors are missing, refuse the start
    instead."""
    _refuse_without_descriptors(error)
    folder.fail(error)


def _quietly(work: Callable[[], T]) -> T | None:
    """The result of `work`; None if the folder went offline: its failure callback has already run."""
    try:
        return work()
    except KafkaError:
        return None
