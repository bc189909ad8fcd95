"""A broker's periodic jobs: delete old segments, write checkpoints, flush, forget inactive producers, remove files.

Each job has its own interval in milliseconds. Jobs run one at a time, so no two touch a log at once; blocking work runs
in the executor. A job that fails is logged and tried again after its interval. A failed disk takes its folder offline,
and the job continues with the other folders.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.errors import KafkaError
from moldau.log.folders.folders import LogFolders
from moldau.log.segment import Segment
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from moldau.tasks import ended
from moldau.turns import in_turns

logger = logging.getLogger(__name__)

BREATH = 100
"""Partitions that are examined before the loop gets a turn."""
FLUSH_CHECK_MS = REMOVE_CHECK_MS = MAKE_CHECK_MS = PLACE_CHECK_MS = 1000
SLEEP_MS_MAX = 2**31
"""The longest delay, for jobs that are disabled: event loops accept no longer one."""


class Job(NamedTuple):
    name: str
    first_ms: int
    every_ms: int
    work: Callable[[], Awaitable[None]]


class Upkeep:
    def __init__(
        self, metadata: MetadataCache, replicas: Replicas, folders: LogFolders, config: BrokerConfig, runtime: Runtime
    ):
        self._metadata = metadata
        self._replicas = replicas
        self._folders = folders
        self._runtime = runtime
        self._tasks: list[asyncio.Task[None]] = []
        self._one_at_a_time = asyncio.Lock()
        first_ms = config.log_initial_task_delay_ms
        points_ms = config.log_flush_offset_checkpoint_interval_ms
        starts_ms = config.log_flush_start_offset_checkpoint_interval_ms
        watermark_ms = config.replica_high_watermark_checkpoint_interval_ms
        asked = "log.flush.scheduler.interval.ms" in config.given
        flush_ms = config.log_flush_scheduler_interval_ms if asked else FLUSH_CHECK_MS
        expiry_ms = config.producer_id_expiration_check_interval_ms
        self._written: dict[object, int] = {}
        self.jobs = [
            Job("retention", first_ms, config.log_retention_check_interval_ms, self._retain),
            Job("recovery point checkpoint", first_ms, points_ms, self._checkpoint_recovery_points),
            Job("log start checkpoint", first_ms, starts_ms, self._checkpoint_log_starts),
            Job("high watermark checkpoint", watermark_ms, watermark_ms, self._checkpoint_watermarks),
            Job("flush of closed segments", FLUSH_CHECK_MS, FLUSH_CHECK_MS, self._flush_closed),
            Job("flush", flush_ms, flush_ms, self._flush),
            Job("removal of deleted files", REMOVE_CHECK_MS, REMOVE_CHECK_MS, self._remove),
            Job("check of the log folders", PLACE_CHECK_MS, PLACE_CHECK_MS, self._check_places),
            Job("making of missing partitions", MAKE_CHECK_MS, MAKE_CHECK_MS, self._replicas.make_missing),
            Job("expiry of producers", expiry_ms, expiry_ms, self._expire_producers),
        ]

    def start(self) -> None:
        for job in self.jobs:
            self._tasks.append(asyncio.ensure_future(self._repeat(job)))

    async def stop(self) -> None:
        """Returns when no job runs any more."""
        async with self._one_at_a_time:
            await ended(*self._tasks)
        self._tasks.clear()

    async def _repeat(self, job: Job) -> None:
        wait_ms = job.first_ms
        while True:
            await asyncio.sleep(min(wait_ms, SLEEP_MS_MAX) / 1000)
            wait_ms = max(job.every_ms, 1)
            try:
                async with self._one_at_a_time:
                    await job.work()
            except KafkaError as error:
                logger.error("%s: %s", job.name, error)
            except Exception:
                logger.exception("%s failed, and is tried again", job.name)

    async def _retain(self) -> None:
        """Deleting from a log rolls and renames files, so the loop gets a turn after each log that loses something."""
        now_ms = self._runtime.clock.now_ms()
        for turn, replica in enumerate(self._replicas):
            gone: Sequence[Segment] = ()
            if replica.config.deletes or replica.log.log_start_offset > 0:
                with contextlib.suppress(KafkaError):  # its folder is offline, and that has been logged
                    gone = replica.log.retain(now_ms, replica.high_watermark)
            if gone or turn % BREATH == BREATH - 1:
                await asyncio.sleep(0)

    async def _checkpoint_recovery_points(self) -> None:
        await self._runtime.run(self._folders.checkpoint_recovery_points)

    async def _checkpoint_log_starts(self) -> None:
        await self._runtime.run(self._folders.checkpoint_log_starts)

    async def _checkpoint_watermarks(self) -> None:
        watermarks = self._replicas.high_watermarks()
        if watermarks != self._written:
            await self._runtime.run(lambda: self._folders.checkpoint_high_watermarks(watermarks))
            self._written = dict(watermarks)

    async def _flush(self) -> None:
        for turn, replica in enumerate(self._replicas):
            if replica.log.flush_overdue():
                with contextlib.suppress(KafkaError):  # deleted meanwhile, or its disk failed, which is logged
                    await self._runtime.run(replica.log.flush)
            elif turn % BREATH == BREATH - 1:
                await asyncio.sleep(0)

    async def _flush_closed(self) -> None:
        """Flush closed segments, as Kafka does when it rolls one: recovery after a crash then begins after them."""
        for turn, replica in enumerate(self._replicas):
            if replica.log.has_closed_unflushed:
                with contextlib.suppress(KafkaError):
                    await self._runtime.run(replica.log.flush_closed)
            elif turn % BREATH == BREATH - 1:
                await asyncio.sleep(0)

    async def _check_places(self) -> None:
        await self._runtime.run(self._folders.check_places)

    async def _remove(self) -> None:
        """Once the folders of deleted topics are renamed, the metadata need not remember those topics."""
        await self._replicas.forget_deleted()
        await self._runtime.run(lambda: self._folders.remove_due(self._runtime.clock.now_ms()))

    async def _expire_producers(self) -> None:
        now_ms = self._runtime.clock.now_ms()
        for turn, replica in enumerate(self._replicas):
            expiring = replica.log.producers.expire(now_ms, self._metadata.config.producer_id_expiration_ms)
            async for _ in in_turns(expiring):
                pass
            replica.log.producers.settle(replica.high_watermark)
            if turn % BREATH == BREATH - 1:
                await asyncio.sleep(0)
