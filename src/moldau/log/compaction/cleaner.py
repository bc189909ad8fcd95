"""The broker's cleaner: it chooses the dirtiest log and cleans it, again and again while the broker runs.

A cleaning reads and writes in the executor, a step at a time, so that the loop serves requests meanwhile; the log
itself is changed on the loop. After each cleaning the cleaned offset is stored (`cleaner-offset-checkpoint` in the
log's folder): an interrupted cleaning begins again, and nothing is lost. A log that cannot be cleaned because it is
damaged is reported once and left alone until the broker restarts. A log whose topic is deleted meanwhile is dropped
silently. `stop` returns when no step runs any more.

Retention skips a log while it is cleaned (`Log.cleaning`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from moldau.config import BrokerConfig
from moldau.errors import KafkaError, StorageError
from moldau.log.checkpoints import CLEANER_OFFSETS
from moldau.log.compaction import swapping
from moldau.log.compaction.cleaned_offsets import CleanedOffsets
from moldau.log.compaction.cleaning import IO_BYTES_MIN, CleaningPlan, groups, new_writer, note_keys, rewrite
from moldau.log.compaction.compactor import Compactor, LastOfProducer, Uncleanable
from moldau.log.compaction.dirtiness import Dirt, dirt_of, first_dirty, is_overdue
from moldau.log.compaction.offset_map import OffsetMap
from moldau.log.flushing import NOT_FALLEN
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.names import TopicPartition, counted
from moldau.runtime import Runtime, out_of_descriptors
from moldau.turns import in_turns

T = TypeVar("T")
BREATH: Final = 100
"""Logs that are examined before the loop gets a turn."""
MEGABYTE: Final = 1_000_000
DESCRIPTOR_WAIT_S: Final = 1.0
PAUSE_SECONDS_MIN: Final = 0.001
"""A shorter pause is put off and added to the next one."""
PAUSE_SECONDS_MAX: Final = 86_400.0
"""Longer pauses are cut into pieces: settings may exceed what an event loop accepts as a delay."""

logger = logging.getLogger(__name__)


class Candidate(NamedTuple):
    """A log and its last stable offset: below it every transaction has ended."""

    log: Log
    stable_offset: int


class CleaningResult(NamedTuple):
    """The result of a cleaning."""

    up_to: int
    keys: int
    bytes_before: int
    bytes_after: int
    bytes_moved: int
    """Bytes read for the keys, read again for rewriting, and written."""
    seconds: float

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes_moved / MEGABYTE / max(self.seconds, 1e-9)


class CleanerTotals:
    """What all cleanings since the start did; `bytes_removed` is what the logs are smaller by."""

    def __init__(self) -> None:
        self.cleanings = self.bytes_removed = self.bytes_moved = 0
        self.seconds = 0.0

    def add(self, cleaned: CleaningResult) -> None:
        self.cleanings += 1
        self.bytes_removed += cleaned.bytes_before - cleaned.bytes_after
        self.bytes_moved += cleaned.bytes_moved
        self.seconds += cleaned.seconds


class Stopped(Exception):
    """The cleaner must stop, or the log was deleted or is no longer compacted: the cleaning ends here."""


class Cleaner:
    """`candidates` returns all logs that exist, `settings` the broker's current settings. Belongs to the loop."""

    def __init__(
        self, candidates: Callable[[], Iterable[Candidate]], settings: Callable[[], BrokerConfig], runtime: Runtime
    ):
        self._candidates = candidates
        self._settings = settings
        self._runtime = runtime
        self.offsets = CleanedOffsets(runtime)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stopping = asyncio.Event()
        self._uncleanable: dict[TopicPartition, Log] = {}
        self._busy_until = 0.0
        self.totals = CleanerTotals()

    @property
    def uncleanable(self) -> int:
        """The number of logs that cannot be cleaned because they are damaged."""
        return len(self._uncleanable)

    def start(self) -> None:
        if self._settings().log_cleaner_enable:
            self._tasks[0] = asyncio.ensure_future(self._repeat(0))

    async def stop(self) -> None:
        """Returns when no cleaning runs any more. An interrupted cleaning leaves its files as a crash would; the next
        start removes them."""
        self._stopping.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, number: int) -> None:
        """One worker of `log.cleaner.threads`; the first one starts and stops the others when the setting changes."""
        while not self._stopping.is_set():
            settings = self._settings()
            for missing in range(1, settings.log_cleaner_threads) if number == 0 else ():
                if missing not in self._tasks:
                    self._tasks[missing] = asyncio.ensure_future(self._repeat(missing))
            if number and number >= settings.log_cleaner_threads:
                del self._tasks[number]
                return
            if settings.log_cleaner_threads == 0 or not await self._try():
                await self._pause(max(settings.log_cleaner_backoff_ms, 1) / 1000)

    async def _try(self) -> bool:
        try:
            return await self.clean_dirtiest()
        except Stopped:
            return False
        except Exception:
            logger.exception("the cleaner failed; it tries again")
            return False

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), min(seconds, PAUSE_SECONDS_MAX))
        except TimeoutError:
            pass

    async def clean_dirtiest(self) -> bool:
        """Clean the log that needs it most; False if no log needs it."""
        dirtiest = await self._choose()
        if dirtiest is None:
            return False
        log, dirt = dirtiest
        if log.cleaning or log.offline or log.flushing.fallen_to != NOT_FALLEN:  # it was truncated since the look
            return True
        log.cleaning = True
        try:
            cleaned = await self._clean(log, dirt)
            await self.offsets.put(log, cleaned.up_to)
        except Stopped:
            return not log.offline
        except KafkaError:
            return False
        except OSError as error:
            log.serving.fail(error)
            return not out_of_descriptors(error)
        except StorageError as error:
            logger.error("%s is not compacted: %s", log.tp, error)
            return False
        except Exception as error:
            self._uncleanable[log.tp] = log
            tell = logger.error if isinstance(error, Uncleanable) else logger.exception
            tell("%s cannot be compacted, and is left as it is: %s", log.tp, error)
        else:
            self._report(log, cleaned)
        finally:
            log.cleaning = False
        return True

    def _report(self, log: Log, cleaned: CleaningResult) -> None:
        self.totals.add(cleaned)
        logger.info(
            "%s was compacted up to offset %d: %d of %s are left, %s seen, %.1f MB/s",
            log.tp, cleaned.up_to, cleaned.bytes_after, counted(cleaned.bytes_before, "byte"),
            counted(cleaned.keys, "key"), cleaned.megabytes_per_second,
        )  # fmt: skip

    async def _choose(self) -> tuple[Log, Dirt] | None:
        if not self.offsets.begun:
            await self.offsets.begin([log for log, _ in self._candidates()])
        best: tuple[Log, Dirt] | None = None
        serving: list[Log] = []
        for turn, (log, stable_offset) in enumerate(self._candidates()):
            if turn % BREATH == BREATH - 1:
                await self._rest()
            if log.offline:
                continue
            serving.append(log)
            if not log.config.compacts or log.cleaning or self._uncleanable.get(log.tp) is log:
                continue
            try:
                dirt = await self._look(log, stable_offset)
            except OSError as error:
                log.serving.fail(error)
                continue
            except KafkaError:
                continue
            if dirt.suffices(log.config) and (best is None or dirt.ratio > best[1].ratio):
                best = log, dirt
        await self._forget_others(serving)
        return best

    async def _forget_others(self, logs: list[Log]) -> None:
        """Forget deleted logs: a new log of the same name must not inherit their state."""
        if self._uncleanable:
            self._uncleanable = {log.tp: log for log in logs if self._uncleanable.get(log.tp) is log}
        try:
            await self.offsets.forget_others(logs)
        except OSError as error:
            logger.error("%s cannot be written: %s", CLEANER_OFFSETS, error)

    async def _rest(self) -> None:
        await asyncio.sleep(0)
        if self._stopping.is_set():
            raise Stopped

    async def _look(self, log: Log, stable_offset: int) -> Dirt:
        """How dirty a log is. Rolls its active segment if `max.compaction.lag.ms` asks for that."""
        now_ms = self._runtime.clock.now_ms()
        config = log.config
        if is_overdue(log.active_segment, config, now_ms):
            log.roll(now_ms)
        known, fallen_to = self.offsets.of(log), log.flushing.take_fall()
        # What was cleaned had been flushed. A truncation may have cut that, and other records be there now.
        valid = None if known is None else min(known, fallen_to)
        start = first_dirty(valid, log.log_start_offset, log.log_end_offset)
        if known is not None and known != start:
            if start != valid and not (config.deletes and known < start):
                logger.warning(
                    "the checkpoint of %s at offset %d does not fit the log: compaction begins again at %d",
                    log.tp,
                    known,
                    start,
                )
            await self.offsets.put(log, start)
        return dirt_of(log.segments, config, start, stable_offset, now_ms)

    async def _clean(self, log: Log, dirt: Dirt) -> CleaningResult:
        loop = asyncio.get_running_loop()
        begun, settings, run = loop.time(), self._settings(), self._runtime.run
        if log.recovery_point < log.log_end_offset:
            # Flush the dirty part first: a power loss must not take the later record of a key after the cleaning has
            # removed the earlier one, nor the marker of an aborted transaction whose records are gone.
            await run(log.flush)
        plan = await self._plan(log, dirt, settings)
        offsets = await run(
            partial(
                OffsetMap,
                settings.log_cleaner_dedupe_buffer_size // max(settings.log_cleaner_threads, 1),
                settings.log_cleaner_io_buffer_load_factor,
                dirt.end_offset - dirt.first_dirty_offset,
                self._runtime.random.uuid().int,
            )
        )
        moved = await self._steps(log, note_keys(plan, offsets))
        up_to = offsets.latest_offset + 1
        compactor = Compactor(offsets, plan.producers, plan.now_ms, log.config.delete_retention_ms)
        before = after = 0
        for group in groups(plan, up_to):
            new, bytes_moved = await self._rewrite(log, plan, group, compactor)
            moved += bytes_moved
            before += sum(segment.size for segment in group)
            after += new.size
        return CleaningResult(up_to, len(offsets), before, after, moved, loop.time() - begun)

    async def _plan(self, log: Log, dirt: Dirt, settings: BrokerConfig) -> CleaningPlan:
        """Prepare a cleaning. Wrong indexes are rebuilt here, on the loop, where no other thread reads them."""
        producers = {
            producer_id: LastOfProducer(producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
            async for producer_id, producer in in_turns(log.producers)
        }
        segments = log.segments
        first = segments[0]
        for turn, segment in enumerate(segments):
            if segment.base_offset < dirt.end_offset:
                segment.look()
            if segment.base_offset <= dirt.first_dirty_offset:
                first = segment
            if turn % BREATH == BREATH - 1:
                await self._rest()
        batch = first.find(dirt.first_dirty_offset)
        position = first.size if batch is None else batch.position
        io_bytes = max(settings.log_cleaner_io_buffer_size // max(settings.log_cleaner_threads, 1) // 2, IO_BYTES_MIN)
        return CleaningPlan(
            log.folder, log.config, log.files, segments, dirt.first_dirty_offset, position, dirt.end_offset, producers,
            self._runtime.clock.now_ms(), io_bytes,
        )  # fmt: skip

    async def _rewrite(
        self, log: Log, plan: CleaningPlan, group: Sequence[Segment], compactor: Compactor
    ) -> tuple[Segment, int]:
        """Rewrite a group of segments as one and swap it in. Once the `.swap` files exist, nothing stops the swap."""
        run, disk = self._runtime.run, self._runtime.disk
        writer = await run(partial(new_writer, plan, group))
        new = writer.segment
        try:
            moved = await self._steps(log, rewrite(plan, group, compactor, writer))
        except (Stopped, Uncleanable, OSError) as error:
            is_disk = isinstance(error, OSError) and not out_of_descriptors(error)
            if not (log.offline or is_disk):
                await run(new.remove)
            raise
        await run(partial(swapping.commit, new, disk))
        await self._sync(log)
        log.replace_segments(group, new)
        log.remove_later(await run(partial(swapping.finish, group, new, disk)), self._runtime.clock.now_ms())
        await self._sync(log)
        return new, moved

    async def _sync(self, log: Log) -> None:
        """Flush the names in a log's folder. If no file descriptor is left, wait for one: a swap must be completed."""
        while True:
            try:
                return await self._runtime.run(partial(self._runtime.disk.sync_folder, log.folder))
            except OSError as error:
                if not out_of_descriptors(error) or self._stopping.is_set():
                    raise
                log.serving.fail(error)
            await self._pause(DESCRIPTOR_WAIT_S)

    async def _steps(self, log: Log, steps: Iterator[int]) -> int:
        """Run all steps; returns the sum of their bytes."""
        moved = 0
        while (step := await self._runtime.run(partial(next, steps, None))) is not None:
            moved += step
            if self._stopping.is_set() or log.offline or not log.config.compacts:
                raise Stopped
            await self._throttle(step)
        return moved

    async def _throttle(self, moved: int) -> None:
        """Wait until `log.cleaner.io.max.bytes.per.second` allows this many bytes more."""
        now, limit = asyncio.get_running_loop().time(), max(self._settings().log_cleaner_io_max_bytes_per_second, 1.0)
        self._busy_until = max(self._busy_until, now) + moved / limit
        if self._busy_until - now < PAUSE_SECONDS_MIN:
            await self._rest()
            return
        await self._pause(self._busy_until - now)
        if self._stopping.is_set():
            raise Stopped
