"""The offset up to which each log was cleaned: `cleaner-offset-checkpoint` in the log's folder.

The files are read once, when the cleaner starts, and only for the logs that exist then: an offset must not apply to a
later topic of the same name. From then on the offsets in memory count, and a file is rewritten with every change. If a
file is damaged, its logs are cleaned from their start.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.runtime import Disk, Runtime

logger = logging.getLogger(__name__)


class CleanedOffsets:
    """The cleaned offsets of all log folders."""

    def __init__(self, runtime: Runtime):
        self.begun = False
        self._runtime = runtime
        self._of: dict[Path, dict[TopicPartition, tuple[uuid.UUID | None, int]]] = {}
        self._writing = asyncio.Lock()

    async def begin(self, logs: Iterable[Log]) -> None:
        """Read the offsets of these logs; entries of other logs are dropped by the next change."""
        found = {(log.folder.parent, log.tp): log.topic_id for log in logs if not log.offline}
        for folder in dict.fromkeys(folder for folder, _ in found):
            read = await self._runtime.run(partial(_read, self._runtime.disk, folder))
            self._of[folder] = {tp: (found[folder, tp], offset) for tp, offset in read.items() if (folder, tp) in found}
        self.begun = True

    def of(self, log: Log) -> int | None:
        """The offset up to which a log was cleaned; None if it never was."""
        topic_id, offset = self._of.get(log.folder.parent, {}).get(log.tp, (None, None))
        return offset if topic_id == log.topic_id else None

    async def put(self, log: Log, offset: int) -> None:
        """Store that a log was cleaned up to an offset. Raises `OSError`."""
        self._of.setdefault(log.folder.parent, {})[log.tp] = log.topic_id, offset
        await self._write(log.folder.parent)

    async def forget_others(self, logs: Iterable[Log]) -> None:
        """Keep only the entries of these logs, which are all logs that exist. Raises `OSError`."""
        there = {(log.folder.parent, log.tp): log.topic_id for log in logs}
        for folder in dict.fromkeys(folder for folder, _ in there):
            known = self._of.get(folder, {})
            gone = [tp for tp, (topic_id, _) in known.items() if there.get((folder, tp)) != topic_id]
            for tp in gone:
                del known[tp]
            if gone:
                await self._write(folder)

    async def _write(self, folder: Path) -> None:
        async with self._writing:
            offsets = {tp: offset for tp, (_, offset) in self._of[folder].items()}
            path = folder / checkpoints.CLEANER_OFFSETS
            await self._runtime.run(partial(checkpoints.write_offsets, self._runtime.disk, path, offsets))


def _read(disk: Disk, folder: Path) -> dict[TopicPartition, int]:
    try:
        return checkpoints.read_offsets(disk, folder / checkpoints.CLEANER_OFFSETS)
    except (CorruptCheckpoint, OSError) as error:
        logger.warning("%s; compacted logs are cleaned from their start", error)
        return {}
