"""The offset up to which each log was cleaned: `cleaner-offset-checkpoint` in the log's folder.

The files are read once, when the cleaner starts, and only for the logs that exist then: an offset must not apply to a
later topic of the same name. From then on the offsets in memory count, and a file is rewritten with every change. If a
file is damaged, its logs are cleaned from their start.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.runtime import Disk, Runtime
from moldau.turns import in_turns

Cleaned: TypeAlias = tuple[uuid.UUID | None, int]
"""The id of a log's topic, and the offset up to which the log was cleaned."""

logger = logging.getLogger(__name__)


class CleanedOffsets:
    """The cleaned offsets of all log folders."""

    def __init__(self, runtime: Runtime):
        self.begun = False
        self._runtime = runtime
        self._of: dict[Path, dict[TopicPartition, Cleaned]] = {}
        self._writing = asyncio.Lock()

    async def begin(self, logs: Iterable[Log]) -> None:
        """Read the offsets of these logs; entries of other logs are dropped by the next change."""
        topic_ids = {(log.folder.parent, log.tp): log.topic_id for log in logs if not log.offline}
        for folder in dict.fromkeys(folder for folder, _ in topic_ids):
            read = await self._runtime.run(partial(_read, self._runtime.disk, folder))
            self._of[folder] = {
                tp: (topic_ids[folder, tp], offset) for tp, offset in read.items() if (folder, tp) in topic_ids
            }
        self.begun = True

    def of(self, log: Log) -> int | None:
        """The offset up to which a log was cleaned; None if it never was."""
        topic_id, offset = self._of.get(log.folder.parent, {}).get(log.tp, (None, None))
        return offset if topic_id == log.topic_id else None

    async def put(self, log: Log, offset: int) -> None:
        """Store that a log was cleaned up to an offset. Raises `OSError`."""
        self._of.setdefault(log.folder.parent, {})[log.tp] = log.topic_id, offset
        await self._write(log.folder.parent)

    async def moved(self, log: Log, offset: int | None) -> None:
        """A log has come from another log folder, cleaned up to this offset; None if it must be cleaned from its start.
        What is known of the log here counts more. Raises `OSError`."""
        if self.begun and offset is not None and self.of(log) is None:
            await self.put(log, offset)

    async def forget_others(self, logs: Iterable[Log]) -> None:
        """Keep only the entries of these logs, which are all logs that exist in the folders that are online. Raises
        `OSError`."""
        there = {log.tp: log async for log in in_turns(logs)}
        for folder, known in list(self._of.items()):
            if _gone(known, folder, there) and await _is_online(folder, there.values()):
                for tp in _gone(known, folder, there):
                    del known[tp]
                await self._write(folder)

    async def _write(self, folder: Path) -> None:
        async with self._writing:
            offsets = {tp: offset for tp, (_, offset) in self._of[folder].items()}
            path = folder / checkpoints.CLEANER_OFFSETS
            await self._runtime.run(partial(checkpoints.write_offsets, self._runtime.disk, path, offsets))


def _gone(
    known: Mapping[TopicPartition, Cleaned], folder: Path, there: Mapping[TopicPartition, Log]
) -> list[TopicPartition]:
    """The known logs of this folder that are not in it any more."""

    def is_there(tp: TopicPartition, topic_id: uuid.UUID | None) -> bool:
        log = there.get(tp)
        return log is not None and log.topic_id == topic_id and log.folder.parent == folder

    return [tp for tp, (topic_id, _) in known.items() if not is_there(tp, topic_id)]


async def _is_online(folder: Path, logs: Iterable[Log]) -> bool:
    """Whether one of the logs is in the folder."""
    async for log in in_turns(logs):
        if log.folder.parent == folder:
            return True
    return False


def _read(disk: Disk, folder: Path) -> dict[TopicPartition, int]:
    try:
        return checkpoints.read_offsets(disk, folder / checkpoints.CLEANER_OFFSETS)
    except (CorruptCheckpoint, OSError) as error:
        logger.warning("%s; compacted logs are cleaned from their start", error)
        return {}
