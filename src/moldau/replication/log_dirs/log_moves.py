"""The moves of this broker's replicas from one of its log folders to another, as AlterReplicaLogDirs asks for them.

A move copies the log while it is served (`log_copy`), one move at a time into each folder, and then puts the copy in
its place (`LogMoves._swap`): appends wait for that, and reads go on. What is asked for last counts: another folder
begins the copy anew there, and the folder that the partition is in ends the move. A move that a stop or a crash has cut
off goes on at the next start; it ends if the partition leaves this broker, or if one of the two disks fails.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

from moldau.config import BrokerConfig
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.log.compaction.cleaned_offsets import CleanedOffsets
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import LogFolders
from moldau.log.log import Log
from moldau.names import TopicPartition, counted
from moldau.replication.log_dirs.log_copy import STEP_BYTES, LogCopy, first_base
from moldau.replication.quota import ReplicationQuota
from moldau.replication.replica import Replica
from moldau.replication.results import CopyInProgress
from moldau.runtime import Runtime
from moldau.tasks import ended, to_its_end

SAMPLES: Final = 11
SAMPLE_MS: Final = 1000
"""The window over which the rate of all moves is measured, as in Kafka."""
LOOK_AGAIN_S: Final = 0.05
"""After the cleaner, a truncation or a flush was found at work on the log."""
NEARLY_S: Final = 0.05
"""A copy has nearly everything when it takes less than this to get what has come lately: appends wait for the rest."""
RETRY_S: Final = 1.0
SPARE_BYTES: Final = 64 << 20
"""A copy ends before its disk has less than this left: a full disk would take all partitions of the folder offline."""

logger = logging.getLogger(__name__)


class Move:
    """`copying` is None before the copy is open. `cleaned`: the offset up to which the log was compacted when the copy
    began; None if it was not, or nobody knows."""

    def __init__(self, replica: Replica, target: LogFolder):
        self.replica = replica
        self.target = target
        self.copying: LogCopy | None = None
        self.cleaned: int | None = None
        self.task: asyncio.Task[None] | None = None

    def progress(self) -> CopyInProgress:
        if self.copying is None:
            log = self.replica.log
            return CopyInProgress(0, log.log_end_offset - log.log_start_offset)
        return CopyInProgress(self.copying.copy.size, self.copying.lag)


class MoveEnded(Exception):
    """The move cannot go on, for this reason."""


class LogMoves:
    """`hosted` are the replicas of this broker, `following` the lock under which they come and go. `assign` records in
    the metadata in which log folder partitions are (topic -> partition -> directory id). Belongs to the loop."""

    def __init__(
        self,
        folders: LogFolders,
        hosted: Mapping[tuple[str | None, int], Replica],
        following: asyncio.Lock,
        settings: Callable[[], BrokerConfig],
        assign: Callable[[Mapping[str, Mapping[int, str]]], Awaitable[object]],
        runtime: Runtime,
    ):
        self._folders = folders
        self._hosted = hosted
        self._following = following
        self._settings = settings
        self._assign = assign
        self._runtime = runtime
        self._moves: dict[TopicPartition, Move] = {}
        self._slots: dict[LogFolder, asyncio.Lock] = {}
        self._quota = ReplicationQuota(SAMPLES, SAMPLE_MS)
        self._stopped = False
        self._cleaned: CleanedOffsets | None = None

    def ask(self, tp: TopicPartition, path: str, absence: Callable[[], ErrorCode]) -> ErrorCode:
        """Move a partition to the log folder at this path; the answer of Kafka. `absence`: why a partition has no
        replica here. The choice also holds for a replica that comes later."""
        online = self._folders.named.get(path)
        if not online:
            return ErrorCode.LOG_DIR_NOT_FOUND if online is None else ErrorCode.KAFKA_STORAGE_ERROR
        target, replica = self._folders.at(path), self._hosted.get(tp)
        if target is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if replica is None:
            error = absence()
            if error is not ErrorCode.KAFKA_STORAGE_ERROR:
                self._folders.preferred.prefer(tp, target.directory_id)
            return ErrorCode.REPLICA_NOT_AVAILABLE if error is ErrorCode.NOT_LEADER_OR_FOLLOWER else error
        now, move = self._folders.folder_of(tp), self._moves.get(tp)
        if target is now and move is None:
            return ErrorCode.NONE
        if move is not None and move.target is target:
            return ErrorCode.NONE
        if not self._folders.whole and target is not now:  # as in Kafka: a copy may be in the one that is offline
            return ErrorCode.KAFKA_STORAGE_ERROR
        if target is not now and (why := self._too_full(target)):
            logger.error("%s does not move to %s: %s", tp, path, why)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._begin(replica, target)
        return ErrorCode.NONE

    def resume(self, cleaned: CleanedOffsets | None = None) -> None:
        """Go on with the moves of which the start has found copies. `cleaned`: the cleaner's offsets, which go along
        with a log from now on."""
        self._cleaned = cleaned
        for folder in self._folders.serving:
            for tp in list(folder.futures.found):
                replica = self._hosted.get(tp)
                if replica is not None:
                    self._begin(replica, folder)
                elif self._folders.whole:  # it is hosted elsewhere by now
                    folder.futures.discard(tp, self._runtime.clock.now_ms())

    def copies(self) -> dict[str, dict[TopicPartition, CopyInProgress]]:
        """What is being moved, by the path of the log folder that it moves to."""
        found: dict[str, dict[TopicPartition, CopyInProgress]] = {}
        for tp, move in self._moves.items():
            if self._folders.folder_of(tp) is not move.target:
                found.setdefault(str(move.target.path), {})[tp] = move.progress()
        return found

    async def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions leave this broker: returns when nothing works on their copies any more."""
        await ended(*(move.task for tp in partitions if (move := self._moves.pop(tp, None)) is not None))

    async def stop(self) -> None:
        """Returns when nothing is copied any more; the next start goes on."""
        self._stopped = True
        await self.drop(list(self._moves))

    def _begin(self, replica: Replica, target: LogFolder) -> None:
        if self._stopped:
            return
        before = self._moves.get(replica.tp)
        move = self._moves[replica.tp] = Move(replica, target)
        move.task = asyncio.ensure_future(self._run(move, before))

    async def _run(self, move: Move, before: Move | None) -> None:
        tp, target = move.replica.tp, move.target
        try:
            if before is not None:  # also if this one is ended meanwhile: who ends it waits for both
                await to_its_end(ended(before.task))
            others = [folder for folder in self._folders.serving if folder is not target and tp in folder.futures]
            for folder in others:
                await self._discard(folder, tp)
            async with self._slots.setdefault(target, asyncio.Lock()):
                if not self._is_over(move):
                    await self._carry_out(move)
        except (MoveEnded, KafkaError) as why:
            logger.error("%s does not move to %s: %s", tp, target.path, why)
            await self._discard(target, tp)
        except Exception:
            logger.exception("%s does not move to %s", tp, target.path)
        finally:
            if self._moves.get(tp) is move:
                del self._moves[tp]

    def _is_over(self, move: Move) -> bool:
        """Whether the partition has left, or is where it is to be."""
        tp = move.replica.tp
        return self._hosted.get(tp) is not move.replica or self._folders.folder_of(tp) in (None, move.target)

    async def _discard(self, folder: LogFolder, tp: TopicPartition) -> None:
        try:
            await self._runtime.run(partial(folder.futures.discard, tp, self._runtime.clock.now_ms()))
        except KafkaError as error:
            logger.error("the copy of %s in %s cannot be removed: %s", tp, folder.path, error)

    async def _carry_out(self, move: Move) -> None:
        replica, target = move.replica, move.target
        source = self._folders.folder_of(replica.tp)
        loop, copied = asyncio.get_running_loop(), 0
        begun_s = loop.time()
        logger.info("%s is copied from %s to %s", replica.tp, source and source.path, target.path)
        while not self._is_over(move):
            copying, round_s = await self._opened(move), NEARLY_S
            while round_s >= NEARLY_S:  # each round copies what has come during the one before
                round_begun_s, end = loop.time(), replica.log.log_end_offset
                copied += await self._copied_up_to(end, copying, target)
                round_s = loop.time() - round_begun_s
            # Flushed now, so that appends, which wait for the swap, wait for a flush of what has come since.
            await to_its_end(self._runtime.run(copying.copy.flush))
            copied += await self._copied_up_to(replica.log.log_end_offset, copying, target)
            if await self._swap(move, copying):
                break
            await asyncio.sleep(LOOK_AGAIN_S)
        if replica.log.folder.parent == target.path:
            took = f"{counted(copied, 'byte')} in {loop.time() - begun_s:.1f} s"
            logger.info("%s moved from %s to %s: %s", replica.tp, source and source.path, target.path, took)
            await self._take_cleaned_along(move)
            await self._remember(replica.tp, target)

    async def _copied_up_to(self, end: int, copying: LogCopy, target: LogFolder) -> int:
        """Copy the log up to this offset; returns the bytes. Raises as `_step`."""
        copied = 0
        while copying.copy.log_end_offset < end and (size := await self._step(copying, target)):
            copied += size
        return copied

    async def _opened(self, move: Move) -> LogCopy:
        replica, futures = move.replica, move.target.futures
        copy = futures.logs.get(replica.tp)
        if copy is not None and move.copying is not None and move.copying.copy is copy:
            return move.copying
        if self._cleaned is not None and replica.tp not in futures:  # what is compacted later is not in the whole copy
            move.cleaned = self._cleaned.of(replica.log)
        begins_at = await first_base(replica.log, self._runtime)
        opening = partial(futures.open, replica.tp, replica.topic_id, replica.config, int(begins_at))
        copy = await to_its_end(self._runtime.run(opening))
        move.copying = LogCopy(replica.log, copy, self._runtime)
        return move.copying

    async def _step(self, copying: LogCopy, target: LogFolder) -> int:
        """Copy some more, as fast as `replica.alter.log.dirs.io.max.bytes.per.second` allows; 0 if nothing is left.
        Raises `KafkaError`, `MoveEnded`."""
        rate = self._settings().replica_alter_log_dirs_io_max_bytes_per_second
        step_bytes = STEP_BYTES if rate is None else max(min(STEP_BYTES, rate), 1)
        while self._is_throttled(rate):
            await asyncio.sleep(LOOK_AGAIN_S)
            rate = self._settings().replica_alter_log_dirs_io_max_bytes_per_second
        if why := self._too_full(target):
            raise MoveEnded(why)
        size = await to_its_end(copying.step(step_bytes))
        self._quota.record(size, _now_ms())
        return size

    def _too_full(self, target: LogFolder) -> str:
        """Why nothing more can be copied there; "" if it can."""
        try:
            _, usable = self._runtime.disk.space(target.path)
        except OSError:  # it cannot be asked: the copy will find out
            return ""
        return f"its disk has only {counted(usable, 'byte')} left" if usable < SPARE_BYTES else ""

    def _is_throttled(self, rate: int | None) -> bool:
        self._quota.limit = rate
        return self._quota.is_exceeded(_now_ms())

    async def _swap(self, move: Move, copying: LogCopy) -> bool:
        """Put the copy in the place of the log; False if something else is at work on the log. Appends wait meanwhile.
        Raises `KafkaError` if a disk fails."""
        replica = move.replica
        async with self._following:
            if self._is_over(move):
                return True
            log = replica.log
            if replica.under_way or log.cleaning:
                return False
            log.cleaning = True
            replica.hold()
            try:
                await to_its_end(self._swapped(move, copying))
            finally:
                log.cleaning = False
                replica.release()
        return True

    async def _swapped(self, move: Move, copying: LogCopy) -> None:
        """The steps of `future_logs`."""
        replica, target, run, tp = move.replica, move.target, self._runtime.run, move.replica.tp
        source, log = self._folders.folder_of(tp), replica.log
        assert source is not None, "it was not over when the swap began"
        while await copying.step():
            pass
        with log.serving.guard():
            copying.copy.take_state_of(log)
        arrived = await run(partial(target.futures.complete, tp, source.directory_id))
        new = await run(partial(target.futures.take_name, tp, replica.topic_id, arrived, replica.config))
        new.take_over(log)
        source.logs.pop(tp, None)
        target.logs[tp] = replica.log = new
        log.abandon()
        await self._retire(source, target, log)
        with contextlib.suppress(KafkaError):  # the log folder is offline, and that has been logged
            await run(target.checkpoint)
            await run(partial(target.futures.forget_arrival, tp))

    async def _retire(self, source: LogFolder, target: LogFolder, log: Log) -> None:
        """The copy in the old log folder is gone, or nothing is served: a later start could not know which one is
        newer. Raises `KafkaError`."""
        while True:
            try:
                return await self._runtime.run(partial(source.retire, [log], self._runtime.clock.now_ms()))
            except KafkaError:
                if source.failed is not None:
                    target.logs.pop(log.tp).abandon()
                    raise
            await asyncio.sleep(RETRY_S)  # no file descriptor was left

    async def _take_cleaned_along(self, move: Move) -> None:
        """Compaction goes on where it was, or from the log's start if the disk fails now."""
        if self._cleaned is not None:
            try:
                await self._cleaned.moved(move.replica.log, move.cleaned)
            except OSError as error:
                move.replica.log.serving.fail(error)

    async def _remember(self, tp: TopicPartition, target: LogFolder) -> None:
        """Tell the metadata where the partition is. The next start finds it out too."""
        try:
            await self._assign({tp.topic: {tp.partition: target.directory_id}})
        except MoldauError as error:
            logger.warning("the metadata does not record yet that %s is in %s: %s", tp, target.path, error)


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)
