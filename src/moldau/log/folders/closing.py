"""Closes the logs of one folder at a clean stop: many at once, so that a kill in the middle costs little.

A log has about seven files and names to flush. Many logs are closed in pieces: each log of a piece writes out its
buffered state, then one flush of the whole file system covers them all (and the writes of other processes). If there
are only a few logs, or the file system cannot be flushed as a whole, each log flushes its own files. Measured with
10,000 partitions of one record each on ext4: 26 s one file after the other, 5 s in pieces.

Every two seconds the recovery points are written to disk, with the log end of every closed log. If the process is
killed, the next start recovers only the other logs.
"""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from moldau.errors import KafkaError
from moldau.log.log import Log
from moldau.names import TopicPartition, counted
from moldau.runtime import Clock, FileSystem, Runtime

THREADS: Final = 8
"""Parallel flushes of one folder. A file system's journal combines several in one write: 12,000 fsyncs took 8 to 18 s
in one thread on ext4, 0.5 to 3 s in two threads, 0.3 s in eight."""
TELL_S = 3.0
"""The interval at which a slow stop logs its progress."""

logger = logging.getLogger(__name__)


class Pace(NamedTuple):
    """`together_min`: the number of logs from which the file system is flushed as a whole; `piece`: logs in one such
    flush; `note_ms`: the interval at which the closed logs are written to disk."""

    together_min: int = 100
    piece: int = 250
    note_ms: int = 2000


class ClosingLogs:
    """`note` writes the closed logs to disk (partition -> log end); `fail` takes the folder offline."""

    def __init__(
        self,
        logs: Sequence[Log],
        file_system: FileSystem,
        note: Callable[[Mapping[TopicPartition, int]], None],
        fail: Callable[[OSError], object],
        clock: Clock,
        pace: Pace = Pace(),
    ):
        self.total = len(logs)
        self.closed: dict[TopicPartition, int] = {}
        self._file_system = file_system
        self._note = note
        self._fail = fail
        self._clock = clock
        self._note_ms = pace.note_ms
        self._noted_ms = clock.now_ms()
        self._noting = threading.Lock()
        self._flushing = threading.Lock()
        self._failed = False
        self._together = len(logs) >= pace.together_min
        size = pace.piece if self._together else 1
        self._waiting = deque(logs[at : at + size] for at in range(0, len(logs), size))

    def work(self) -> None:
        """Close logs until none is left; several threads may call this. A log that cannot be closed is left out of
        `closed`, and its folder goes offline unless only a file descriptor was missing. Blocks."""
        while True:
            try:
                piece = self._waiting.popleft()
            except IndexError:
                return
            with contextlib.suppress(KafkaError):  # it has been logged
                if not (self._together and self._close_together(piece)):
                    for log in piece:
                        log.close()
            self._done(piece)

    def _close_together(self, logs: Sequence[Log]) -> bool:
        """Whether the file system could be flushed as a whole. It is flushed twice if leader epochs are new: their
        files are renamed into place only after their bytes are flushed."""
        for log in logs:
            log.write_out()
        while logs:
            with self._flushing:  # the system reports a failure once: no other thread may flush before it is handled
                if self._failed:
                    return True
                try:
                    if not self._file_system.flush():
                        self._together = False
                        return False
                except OSError as error:
                    self._failed = True
                    self._fail(error)
                    return True
            logs = [log for log in logs if not log.close_flushed()]
        return True

    def _done(self, logs: Sequence[Log]) -> None:
        with self._noting:
            self.closed.update({log.tp: int(log.log_end_offset) for log in logs if log.offline})
            now_ms = self._clock.now_ms()
            if now_ms - self._noted_ms >= self._note_ms and len(self.closed) < self.total:
                with contextlib.suppress(KafkaError):
                    self._note(self.closed)
                self._noted_ms = self._clock.now_ms()


async def close_logs(closings: Sequence[ClosingLogs], runtime: Runtime) -> None:
    """Carry out the closings of all folders at once, in several threads each, and log the progress of a slow stop."""
    ticker = asyncio.ensure_future(_tell_how_far(closings))
    try:
        await asyncio.gather(*[runtime.run(one.work) for one in closings for _ in range(THREADS)])
    finally:
        ticker.cancel()


async def _tell_how_far(closings: Sequence[ClosingLogs]) -> None:
    total = counted(sum(one.total for one in closings), "partition")
    while True:
        await asyncio.sleep(TELL_S)
        logger.info("stopping: %s of %s flushed", f"{sum(len(one.closed) for one in closings):,}", total)
