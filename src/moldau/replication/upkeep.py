"""What a broker does by the clock: delete old segments, write checkpoints, flush, forget silent producers, remove
files.

Each job runs every so many milliseconds, one after the other, so that no two touch a log at once; what blocks runs in
the executor. A job that fails is logged and tried again at its next turn, but a failed disk has taken its folder
offline by then.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from moldau.cluster.cluster import Cluster
from moldau.config import BrokerConfig
from moldau.errors import KafkaError
from moldau.log.folder import LogFolder
from moldau.replication.partitions import Partitions
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)

BREATH = 100
"""So many partitions are looked at before the loop gets a turn."""
FLUSH_CHECK_MS = 1000
REMOVE_CHECK_MS = 1000


class Job(NamedTuple):
    name: str
    first_ms: int
    every_ms: int
    work: Callable[[], Awaitable[None]]


class Upkeep:
    def __init__(
        self, cluster: Cluster, partitions: Partitions, folder: LogFolder, config: BrokerConfig, runtime: Runtime
    ):
        self._cluster = cluster
        self._partitions = partitions
        self._folder = folder
        self._runtime = runtime
        self._tasks: list[asyncio.Task[None]] = []
        self._one_at_a_time = asyncio.Lock()
        first_ms, checkpoint_ms = config.log_initial_task_delay_ms, config.log_flush_offset_checkpoint_interval_ms
        watermark_ms = config.replica_high_watermark_checkpoint_interval_ms
        expiry_ms = config.producer_id_expiration_check_interval_ms
        self._expiration_ms = config.producer_id_expiration_ms
        self._written: dict[object, int] = {}
        self.jobs = [
            Job("retention", first_ms, config.log_retention_check_interval_ms, self._retain),
            Job("recovery point checkpoint", first_ms, checkpoint_ms, self._checkpoint),
            Job("high watermark checkpoint", watermark_ms, watermark_ms, self._checkpoint_watermarks),
            Job("flush", FLUSH_CHECK_MS, FLUSH_CHECK_MS, self._flush),
            Job("removal of deleted files", REMOVE_CHECK_MS, REMOVE_CHECK_MS, self._remove),
            Job("expiry of producers", expiry_ms, expiry_ms, self._expire_producers),
        ]

    def start(self) -> None:
        for job in self.jobs:
            self._tasks.append(asyncio.ensure_future(self._repeat(job)))

    async def stop(self) -> None:
        """Returns when no job runs any more."""
        async with self._one_at_a_time:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, job: Job) -> None:
        wait_ms = job.first_ms
        while True:
            await asyncio.sleep(wait_ms / 1000)
            wait_ms = max(job.every_ms, 1)
            try:
                async with self._one_at_a_time:
                    await job.work()
            except KafkaError as error:
                logger.error("%s: %s", job.name, error)
            except Exception:
                logger.exception("%s failed", job.name)

    async def _retain(self) -> None:
        now_ms = self._runtime.clock.now_ms()
        for turn, hosted in enumerate(self._partitions):
            if hosted.config.deletes or hosted.log.log_start_offset > 0:
                hosted.log.retain(now_ms, hosted.high_watermark)
            if turn % BREATH == BREATH - 1:
                await asyncio.sleep(0)

    async def _checkpoint(self) -> None:
        await self._runtime.run(self._folder.checkpoint)

    async def _checkpoint_watermarks(self) -> None:
        watermarks = self._partitions.high_watermarks()
        if watermarks != self._written:
            await self._runtime.run(lambda: self._folder.checkpoint(watermarks))
            self._written = dict(watermarks)

    async def _flush(self) -> None:
        now_ms = self._runtime.clock.now_ms()
        for hosted in self._partitions:
            if hosted.log.flush_overdue(now_ms):
                with contextlib.suppress(KafkaError):  # its topic went meanwhile, or the disk, which has been said
                    await self._runtime.run(hosted.log.flush)

    async def _remove(self) -> None:
        """Deleted topics have left the served folders by now, so the cluster need not remember them."""
        if self._cluster.image.deleted:
            await self._cluster.forget_deleted(list(self._cluster.image.deleted))
        await self._runtime.run(lambda: self._folder.remove_due(self._runtime.clock.now_ms()))

    async def _expire_producers(self) -> None:
        now_ms = self._runtime.clock.now_ms()
        for turn, hosted in enumerate(self._partitions):
            hosted.log.producers.expire(now_ms, self._expiration_ms)
            if turn % BREATH == BREATH - 1:
                await asyncio.sleep(0)
