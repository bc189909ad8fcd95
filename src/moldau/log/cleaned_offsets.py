"""How far each log was cleaned: `cleaner-offset-checkpoint` of the folder that the log is in.

The file is read when its folder is first asked about, and written anew with every change. An offset is a log's own: one
that was written for an earlier topic of the same name says nothing about the next, so what belongs to no log goes.
What a file that does not hold had to say is not known: those logs are cleaned from their start.
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
    """Of all log folders."""

    def __init__(self, disk: Disk):
        self._disk = disk
        self._of: dict[Path, dict[TopicPartition, tuple[uuid.UUID | None, int]]] = {}
        self._writing = asyncio.Lock()

    async def _known(self, folder: Path, runtime: Runtime) -> dict[TopicPartition, tuple[uuid.UUID | None, int]]:
        if folder not in self._of:
            read = await runtime.run(partial(self._read, folder))
            self._of.setdefault(folder, {tp: (None, offset) for tp, offset in read.items()})
        return self._of[folder]

    def _read(self, folder: Path) -> dict[TopicPartition, int]:
        try:
            return checkpoints.read_offsets(self._disk, folder / checkpoints.CLEANER_OFFSETS)
        except CorruptCheckpoint as error:
            logger.warning("%s; compacted logs are cleaned from their start", error)
            return {}

    async def of(self, log: Log, runtime: Runtime) -> int | None:
        """Up to where a log was cleaned; None if it never was."""
        known = await self._known(log.folder.parent, runtime)
        found = known.get(log.tp)
        if found is None:
            return None
        if found[0] is None:
            known[log.tp] = log.topic_id, found[1]
        elif found[0] != log.topic_id:
            return None
        return found[1]

    async def put(self, log: Log, offset: int, runtime: Runtime) -> None:
        """A log was cleaned up to there. Raises `OSError`."""
        folder = log.folder.parent
        (await self._known(folder, runtime))[log.tp] = log.topic_id, offset
        await self._write(folder, runtime)

    async def forget_others(self, logs: Iterable[Log], runtime: Runtime) -> None:
        """Keep what belongs to one of these logs: they are all there are."""
        ids = {(log.folder.parent, log.tp): log.topic_id for log in logs}
        for folder, known in self._of.items():
            gone = [tp for tp, (topic_id, _) in known.items() if ids.get((folder, tp)) not in (topic_id, None)]
            gone = [tp for tp in known if (folder, tp) not in ids or tp in gone]
            for tp in gone:
                del known[tp]
            if gone:
                await self._write(folder, runtime)

    async def _write(self, folder: Path, runtime: Runtime) -> None:
        async with self._writing:
            offsets = {tp: offset for tp, (_, offset) in self._of[folder].items()}
            path = folder / checkpoints.CLEANER_OFFSETS
            await runtime.run(partial(checkpoints.write_offsets, self._disk, path, offsets))
