"""The copies in a log folder of partitions that move here from other log folders of the broker (KIP-113).

A copy is a log of its own in `<topic>-<partition>.<id>-future`, which serves nobody and counts for nothing until it is
complete. A start finds it and goes on with it. Its closed segments are flushed one by one as it grows, so that a start
after a crash reads no more of it again than the last two.

A complete copy takes the partition's place in these steps; a crash may interrupt any of them (see `arriving`):

    1  the copy is flushed and closed, and a note in its folder says that it is complete (`arrival`)
    2  its folder gets the partition's name; it is opened as the partition's log
    3  the other log folder's copy becomes `-delete`
    4  the checkpoints of this log folder are written, and the note goes

Nothing is appended to the partition from before the first step until the third one is done. Every method blocks; they
raise `KafkaError` (KAFKA_STORAGE_ERROR) when the disk fails, and the log folder goes offline.
"""

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from moldau.config import TopicConfig
from moldau.log.deletion import Doomed
from moldau.log.file_names import LOG_SUFFIX, base_of, is_segment_name
from moldau.log.folders import arrival
from moldau.log.folders.arrival import Arrival
from moldau.log.folders.folder_names import folder_name_for_deletion, folder_name_for_future
from moldau.log.folders.opening import LeftState, open_log
from moldau.log.log import Log
from moldau.log.services import LogServices
from moldau.names import TopicPartition
from moldau.runtime import Disk


class FutureLogs:
    """Those of the log folder at `path`. `found`: copies that are there and not open, by the names of their folders;
    `logs`: the open ones. `guard` takes the log folder offline after an `OSError`."""

    def __init__(self, path: Path, services: LogServices, guard: Callable[[], AbstractContextManager[None]]):
        self.found: dict[TopicPartition, str] = {}
        self.logs: dict[TopicPartition, Log] = {}
        self._path = path
        self._services = services
        self._guard = guard

    @property
    def _disk(self) -> Disk:
        return self._services.runtime.disk

    @property
    def _doomed(self) -> Doomed:
        return self._services.doomed

    def __contains__(self, tp: object) -> bool:
        return tp in self.logs or tp in self.found

    def open(self, tp: TopicPartition, topic_id: uuid.UUID, config: TopicConfig, begins_at: int) -> Log:
        """The copy of a partition, as far as it got; a new one is empty and begins at that offset."""
        with self._guard():
            name = self.found.get(tp) or folder_name_for_future(tp, self._services.runtime.random.uuid())
            folder = self._path / name
            flushed = self._flushed_up_to(folder) if tp in self.found else None
            left = LeftState(
                clean=flushed is None, recovery_point=flushed or 0, log_start=begins_at if flushed is None else 0
            )
            log = self.logs[tp] = open_log(folder, tp, topic_id, config, self._services, left)
            self.found.pop(tp, None)
        return log

    def _flushed_up_to(self, folder: Path) -> int:
        """Where the last segment but one begins: those before it were flushed before it was made."""
        names = self._disk.list(folder)
        bases = [base_of(name) for name in names if name.endswith(LOG_SUFFIX) and is_segment_name(name)]
        return bases[-2] if len(bases) > 1 else 0

    def discard(self, tp: TopicPartition, now_ms: int) -> None:
        """The partition moves here no more, if it did."""
        log, name = self.logs.pop(tp, None), self.found.pop(tp, None)
        if log is not None:
            log.abandon()
            name = log.folder.name
        if name is not None:
            with self._guard():
                doomed = self._path / folder_name_for_deletion(tp, self._services.runtime.random.uuid())
                self._disk.rename(self._path / name, doomed)
                self._doomed.add(doomed, now_ms)
                self._disk.sync_folder(self._path)

    def complete(self, tp: TopicPartition, source: str) -> Arrival:
        """Step 1, for the copy of a partition in the log folder with the directory id `source`."""
        log = self.logs.pop(tp)
        self.found[tp] = log.folder.name
        arrived = Arrival(source, int(log.log_start_offset), int(log.log_end_offset))
        log.close()
        with self._guard():
            arrival.note(self._disk, log.folder, arrived)
        return arrived

    def take_name(self, tp: TopicPartition, topic_id: uuid.UUID, arrived: Arrival, config: TopicConfig) -> Log:
        """Step 2: the log, as a partition of the log folder."""
        with self._guard():
            name = self.found.pop(tp)
            self._disk.rename(self._path / name, self._path / str(tp))
            self._disk.sync_folder(self._path)
            left = LeftState(clean=True, recovery_point=arrived.log_end, log_start=arrived.log_start)
            try:
                return open_log(self._path / str(tp), tp, topic_id, config, self._services, left)
            except OSError:  # perhaps only a file descriptor is missing: the move tries again
                self._disk.rename(self._path / str(tp), self._path / name)
                self.found[tp] = name
                raise

    def forget_arrival(self, tp: TopicPartition) -> None:
        """The end of step 4."""
        with self._guard():
            arrival.forget(self._disk, self._path / str(tp))

    def abandon(self) -> None:
        """Let go of all files; the copies stay for the next start."""
        for tp, log in list(self.logs.items()):
            log.abandon()
            self.found[tp] = log.folder.name
        self.logs.clear()
