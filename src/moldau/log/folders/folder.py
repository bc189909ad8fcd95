"""A log folder: all partitions of one broker on one disk, and the files that describe them together.

    .lock                                locked by the process that uses the folder
    .kafka_cleanshutdown                 {"version": 0, "brokerEpoch": -1}: the last stop was clean; gone while we run
    meta.properties                      whose folder it is: version, cluster.id, node.id, directory.id
    recovery-point-offset-checkpoint     the recovery point of each log: all records below it were flushed
    log-start-offset-checkpoint          the start of each log that starts after its first segment's base offset
    replication-offset-checkpoint        the high watermarks
    running-broker                       in a cluster: the broker's registration that it is served in, and the boot
    closed-offset-checkpoint             the ends of the logs that an interrupted stop had closed; not a file of Kafka's
    <topic>-<partition>/                 a partition
    <topic>-<partition>.<id>-delete/     a deleted partition, removed later
    <topic>-<partition>.<id>-future/     the copy of a partition that moves here (`future_logs`)

The clean-shutdown marker is deleted before any log is loaded, so that a crash while loading counts as unclean; a stop
writes it last. Partitions of unknown topics, and all other names, are left alone and reported. One `OSError` while
serving takes the whole folder and every log in it offline until the next start, and no marker is written.
"""

import contextlib
import errno
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.log import checkpoints
from moldau.log.deletion import Doomed
from moldau.log.failures import no_descriptor
from moldau.log.files import OPEN_FILES_MAX, OpenFiles
from moldau.log.folders import arrival, identity, sifting
from moldau.log.folders.advice import remedy
from moldau.log.folders.arrival import Arrival
from moldau.log.folders.closing import ClosingLogs, Pace
from moldau.log.folders.folder_checkpoints import FolderCheckpoints
from moldau.log.folders.folder_names import folder_name_for_deletion, partition_of
from moldau.log.folders.future_logs import FutureLogs
from moldau.log.folders.identity import LOCK, META_PROPERTIES, NO_BROKER_EPOCH, RUNNING
from moldau.log.folders.opening import LeftState, open_log
from moldau.log.log import Log
from moldau.log.recovering.progress import Progress
from moldau.log.services import LogServices
from moldau.names import TopicPartition, short_id
from moldau.runtime import Runtime, is_folder, out_of_descriptors

T = TypeVar("T")

logger = logging.getLogger(__name__)


def _shared(waiting: deque[T], workers: int, do: Callable[[T], object]) -> list[Callable[[], None]]:
    def work() -> None:
        while waiting:
            try:
                item = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            do(item)

    return [work] * max(workers, 1)


class LogFolder:
    """An open log folder. `logs` are its partitions, `futures` the copies of those that move here; `clean`: the last
    stop was clean; `failed` is why it is offline, or None; `directory_id` identifies it in the metadata, wherever it is
    mounted. `arrived`: partitions that have just moved here, whose notes say so (`arrival`)."""

    def __init__(
        self, path: Path, runtime: Runtime, open_files_max: int = OPEN_FILES_MAX, files: OpenFiles | None = None
    ):
        """Create the folder if it does not exist, take its lock, read its description files, delete the marker. `files`
        counts the open files of all folders together.

        Raises `StorageError` if another process uses the folder, `OSError`.
        """
        self.path = path
        self.repair_command: str | None = f"moldau log repair {path}"
        self.runtime = runtime
        self.logs: dict[TopicPartition, Log] = {}
        self.failed: OSError | None = None
        self.on_failure: Callable[[OSError], None] | None = None
        self._disk = runtime.disk
        self._files = files if files is not None else OpenFiles(runtime.disk, open_files_max)
        self._doomed = Doomed(runtime.disk)
        self._touched = False
        self._waiting: deque[TopicPartition] = deque()
        self._wanted = True
        self._half_made: set[TopicPartition] = set()
        self._make(path)
        self._unlock = self._disk.lock(path / LOCK)
        self._file_system = self._disk.file_system(path)
        try:
            self.meta = identity.read_meta(self._disk, path)
            self.directory_id = self.meta.get("directory.id") or short_id(runtime.random.uuid())
            self.clean, self.broker_epoch = identity.take_marker(self._disk, path)
            self._shown_epoch = self.broker_epoch if self.clean else identity.running_epoch(self._disk, path)
            if self.clean and self.broker_epoch != NO_BROKER_EPOCH:  # a kill before the next registration loses nothing
                identity.note_running(self._disk, path, self.broker_epoch)
            self._offsets = FolderCheckpoints(self._disk, path, self.logs)
        except BaseException:
            self._file_system.close()
            self._unlock()
            raise
        self._services = LogServices(
            runtime, self._files, self._doomed, self.fail, self._offsets.write_recovery_points,
            self._offsets.write_log_starts,
        )  # fmt: skip
        self.arrived: dict[TopicPartition, Arrival] = {}
        self.futures = FutureLogs(path, self._services, self._failing)

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks in the checkpoint, as read at the start or last written."""
        return self._offsets.high_watermarks

    @property
    def kept_since(self) -> int:
        """The registration (broker epoch) since which this folder has lost nothing; -1 if that cannot be shown, or if
        recovery found less than was committed. Known when the logs are loaded."""
        committed = self.high_watermarks
        is_cut = any(log.log_end_offset < committed.get(tp, 0) for tp, log in self.logs.items())
        return NO_BROKER_EPOCH if is_cut else self._shown_epoch

    def note_running(self, broker_epoch: int) -> None:
        """From now on it is served in this registration of the broker. Blocks. Raises `KafkaError` if it fails and goes
        offline."""
        self._guarded(lambda: identity.note_running(self._disk, self.path, broker_epoch))

    def forget_kept(self) -> None:
        """The folder has lost records, whatever else it shows. Blocks. Raises `OSError`."""
        self._shown_epoch = NO_BROKER_EPOCH
        identity.forget_running(self._disk, self.path)

    def _make(self, path: Path) -> None:
        """Create the folder and flush its name: without the name, files flushed in it would be lost in a crash."""
        made = [each for each in (path, *path.parents) if not self._disk.exists(each)]
        self._disk.make_folder(path)
        for each in made or [path]:
            with contextlib.suppress(PermissionError):  # the parent belongs to another user and is not readable
                self._disk.sync_folder(each.parent)

    @property
    def was_used(self) -> bool:
        """Whether a broker has stored partitions or checkpoints here. Raises `OSError`."""
        names = filter(partition_of, self._disk.list(self.path))
        return bool(self._offsets.recovery_points) or any(is_folder(self._disk, self.path / name) for name in names)

    def claim(self, cluster_id: str, node_id: int, store: str | None = None) -> None:
        """Record that the folder belongs to this node of this cluster. `store` is the `zookeeper.connect` of a cluster
        of several. Raises `StorageError` if the folder belongs to another node."""
        correct = f"run `{self.repair_command}`" if self.repair_command else "correct it"
        remedy = f"give this one another folder, or, if {META_PROPERTIES} is wrong, {correct}"
        meta = identity.claimed(self.meta, self.path, cluster_id, node_id, self.directory_id, remedy)
        if meta != self.meta:
            self.meta = meta
            identity.write_meta(self._disk, self.path, self.meta)
        if store is not None:
            identity.note_cluster_store(self._disk, self.path, store)

    def load(
        self,
        known: Mapping[str, uuid.UUID],
        config_of: Callable[[str], TopicConfig],
        deleted: Mapping[uuid.UUID, str] | None = None,
    ) -> list[str]:
        """Open the partitions of all known topics (name -> id), recovering where needed; returns the unknown names,
        which are left alone for the caller to report. Partitions of topics in `deleted` (id -> name) are removed.
        Blocks. Raises `OSError`."""
        sifted = self.sift(known, deleted)
        for work in self.loading(sifted.partitions, known, config_of):
            work()
        self.settle()
        return sifted.strays

    def sift(self, known: Mapping[str, uuid.UUID], deleted: Mapping[uuid.UUID, str] | None = None) -> sifting.Sifted:
        """What is in this folder. Does all of `load`'s work except opening the partitions. Blocks. Raises `OSError`."""
        return sifting.sift(self._disk, self.path, known, deleted)

    def loading(
        self,
        partitions: Iterable[TopicPartition],
        known: Mapping[str, uuid.UUID],
        config_of: Callable[[str], TopicConfig],
        workers: int = 1,
    ) -> list[Callable[[], None]]:
        """The work of `workers` threads that open these partitions: each takes the next partition until none is left.

        Each callable blocks and raises `OSError`.
        """
        self._touched = True
        partitions = list(partitions)
        progress = None
        if not self.clean:
            unclean = [tp for tp in partitions if tp not in self._offsets.closed_ends]
            progress = Progress(self.path, self.runtime, self._offsets.recovery_points, unclean)
        self._waiting.extend(partitions)
        if not self._wanted:
            self.stop_loading()

        def load(tp: TopicPartition) -> None:
            closed_at = self._offsets.closed_ends.get(tp, -1)
            reported = progress if closed_at < 0 else None
            self._open(tp, known[tp.topic], config_of(tp.topic), self.clean, reported, closed_at)

        return _shared(self._waiting, workers, load)

    def stop_loading(self) -> None:
        """Open no further partition. `close` keeps the checkpoints of the last stop for those that were not opened."""
        self._wanted = False
        with contextlib.suppress(IndexError):  # the threads of `loading` take from it too
            while True:
                self._offsets.unloaded.append(self._waiting.popleft())

    @property
    def is_loaded(self) -> bool:
        """Whether `loading` began, so that logs may need closing."""
        return self._touched

    def closing(self, pace: Pace = Pace()) -> ClosingLogs:
        """The steps that flush and close all logs, before `close`."""
        logs = list(self.logs.values()) if self.failed is None else []
        return ClosingLogs(logs, self._file_system, self._note_closed, self.fail, self.runtime.clock, pace)

    def _note_closed(self, closed: Mapping[TopicPartition, int]) -> None:
        """The closed logs and their ends, for a start after an interrupted stop. Raises `KafkaError`."""

        self._guarded(lambda: self._offsets.write_closed_ends(closed))

    def settle(self) -> None:
        """Lower the recovery points of logs that recovery has cut below them, before new records would count as
        flushed; and complete the moves of the logs that had just arrived. Blocks. Raises `OSError`."""
        is_cut = any(log.recovery_point < self._offsets.recovery_points.get(tp, 0) for tp, log in self.logs.items())
        if is_cut or self.arrived:
            self._offsets.write_recovery_points()
        if self.arrived:
            self._offsets.write_log_starts()
            for tp in self.arrived:
                arrival.forget(self._disk, self.path / str(tp))
            self.arrived.clear()

    def _open(
        self,
        tp: TopicPartition,
        topic_id: uuid.UUID,
        config: TopicConfig,
        clean: bool,
        progress: Progress | None = None,
        closed_at: int = -1,
    ) -> Log:
        offsets, arrived = self._offsets, self.arrived.get(tp)
        log_start = offsets.log_starts.get(tp, 0)
        if arrived is not None:  # the checkpoints here may not know of it yet
            log_start, closed_at = max(log_start, arrived.log_start), max(closed_at, arrived.log_end)
        left = LeftState(
            clean,
            recovery_point=offsets.recovery_points.get(tp, 0),
            log_start=log_start,
            closed_at=closed_at,
            gaps_are_losses=offsets.knows_recovery_points,
        )
        log = open_log(self.path / str(tp), tp, topic_id, config, self._services, left, progress)
        if progress is not None:
            progress.partition_done()
        self.logs[tp] = log
        return log

    def create(self, tp: TopicPartition, topic_id: uuid.UUID, config: TopicConfig) -> Log:
        """A new, empty partition. Raises `KafkaError` (KAFKA_STORAGE_ERROR), `StorageError` if its folder already
        exists."""
        self._check()
        path = self.path / str(tp)
        if tp in self.logs or (tp not in self._half_made and self._disk.exists(path)):
            raise StorageError(f"{path} already exists")
        self._touched = True
        try:
            if tp in self._half_made:
                self._disk.remove(path)
            self._forget(tp)
            log = self._open(tp, topic_id, config, clean=True)
        except OSError as error:
            self._half_made.add(tp)
            raise self.fail(error) from error
        self._half_made.discard(tp)
        return log

    def sync_names(self) -> None:
        """Flush the names of new partitions' folders, so that they survive a power loss. Blocks. Raises
        `KafkaError`."""
        self._guarded(lambda: self._disk.sync_folder(self.path))

    def _forget(self, tp: TopicPartition) -> None:
        """Remove an earlier partition of that name from the checkpoints, so that a start never applies its offsets
        here."""
        if self._offsets.mentions(tp):
            self._offsets.write({known: offset for known, offset in self.high_watermarks.items() if known in self.logs})

    def delete(self, tp: TopicPartition, now_ms: int) -> None:
        """Delete a partition: rename its folder now, remove its files later. Raises `KafkaError`
        (KAFKA_STORAGE_ERROR)."""
        self.delete_all([tp], now_ms)

    def delete_all(self, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """As `delete`, with one flush of the names for all. Blocks."""
        self._check()
        self.retire([self.logs.pop(tp) for tp in partitions], now_ms)

    def retire(self, logs: Iterable[Log], now_ms: int) -> None:
        """As `delete_all`, for logs that are no longer among those of this folder. Blocks."""
        with self._failing():
            for log in logs:
                log.abandon()
                if self._disk.exists(log.folder):  # else an attempt before has come as far as that
                    target = self.path / folder_name_for_deletion(log.tp, self.runtime.random.uuid())
                    self._disk.rename(log.folder, target)
                    self._doomed.add(target, now_ms + log.config.file_delete_delay_ms)
            self._disk.sync_folder(self.path)

    def check_place(self) -> None:
        """Take the folder offline if its path now leads elsewhere: the next start would not find the data written to
        its open files. Blocks."""
        try:
            if self.failed is None and not self._unlock.in_place():
                self.fail(OSError(errno.ENODEV, "it was renamed, or its disk was unmounted or replaced"))
        except OSError as error:
            self.fail(error)

    def remove_due(self, now_ms: int) -> int:
        """Remove deleted files and folders whose time has come. Blocks. Raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
        self._check()
        try:
            return self._doomed.remove_due(now_ms)
        except OSError as error:
            raise self.fail(error) from error

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Write the checkpoints: recovery points, log starts and, if given, high watermarks. Blocks. Raises
        `KafkaError`."""
        self._guarded(lambda: self._offsets.write(high_watermarks))

    def checkpoint_recovery_points(self) -> None:
        """Blocks. Raises `KafkaError`; so do the next two methods."""
        self._guarded(self._offsets.write_recovery_points)

    def checkpoint_log_starts(self) -> None:
        self._guarded(self._offsets.write_log_starts)

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self._guarded(lambda: self._offsets.write_high_watermarks(high_watermarks))

    def _guarded(self, work: Callable[[], None]) -> None:
        with self._failing():
            work()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Wraps work on the folder's files. Raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
        self._check()
        try:
            yield
        except OSError as error:
            raise self.fail(error) from error

    def close(
        self,
        clean: bool = True,
        high_watermarks: Mapping[TopicPartition, int] | None = None,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        """Close all logs, checkpoint, leave the marker, release the lock. No marker after an error, or if not `clean`,
        or if an interrupted start has left logs that need recovery."""
        try:
            if clean and self.failed is None:
                for log in self.logs.values():
                    log.close()
                self._offsets.write(high_watermarks if high_watermarks is not None else self.high_watermarks)
                if self.clean or not self._offsets.unloaded:
                    epoch = self.kept_since if broker_epoch == NO_BROKER_EPOCH else broker_epoch
                    identity.leave_marker(self._disk, self.path, epoch)
                    self._disk.remove(self.path / checkpoints.CLOSED_ENDS)
                else:
                    self._note_closed({tp: int(log.log_end_offset) for tp, log in self.logs.items()})
            elif self._offsets.closed_ends and not self._touched and self.failed is None:
                self._offsets.restore_closed_ends()
            elif self.clean and not self._touched and self.failed is None:
                # the start was refused before loading: keep everything as the last stop left it
                identity.leave_marker(self._disk, self.path, self.broker_epoch)
        except (OSError, KafkaError) as error:
            logger.error("%s was not closed cleanly: %s", self.path, error)
        finally:
            self._abandon(self.logs.values())
            self.futures.abandon()
            self._file_system.close()
            self._unlock()

    @staticmethod
    def _abandon(logs: Iterable[Log]) -> None:
        for log in logs:
            log.abandon()

    def fail(self, error: OSError) -> KafkaError:
        """Take the folder offline, once, unless only a file descriptor was missing; returns the error for the
        client."""
        if out_of_descriptors(error):
            return no_descriptor(self.path, error)
        if self.failed is None:
            self.failed = error
            logger.error(
                "the log folder %s is offline: %s. %s and restart the broker, so that its partitions are served again",
                self.path, error, remedy(error),
            )  # fmt: skip
            self._abandon(list(self.logs.values()))
            self.futures.abandon()
            if error.errno not in (errno.ENOSPC, errno.ENODEV):  # a failed flush may have lost what was written
                self._shown_epoch = NO_BROKER_EPOCH
                with contextlib.suppress(OSError):
                    self._disk.remove(self.path / RUNNING)
            if self.on_failure is not None:
                self.on_failure(error)
        return self._storage_error()

    def _storage_error(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log folder {self.path} is offline: {self.failed}")

    def _check(self) -> None:
        if self.failed is not None:
            raise self._storage_error()
