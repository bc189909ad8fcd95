"""Copies of the embedded metadata: beside the file itself, and in every other log folder.

    metadata.sqlite              the metadata, in one log folder (see `embedded`)
    metadata.sqlite.copy         a copy in the same folder: a start uses it if the file is missing or damaged
    metadata.sqlite.spare        the same in the other log folders: for a file and a copy that are both damaged, and for
                                 `moldau log repair` if their folder is lost
    metadata.sqlite.damaged      the damaged file, after a copy has replaced it

The copy is made shortly after a change, spares within a minute, both when the broker stops. A copy is checked before it
replaces the previous one, so that damage never replaces a sound copy.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import last_producer_id, read_image
from moldau.errors import StorageError
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.folders.advice import remedy
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import LogFolders
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.metadata_store.store import NodeOperation
from moldau.notices import Notices
from moldau.runtime import Disk, Runtime
from moldau.tasks import ended

COPY: Final = FILE_NAME + ".copy"
SPARE: Final = FILE_NAME + ".spare"
DAMAGED: Final = FILE_NAME + ".damaged"
DELAY_S: Final = 0.2
"""The delay from a change to its copy: changes that come together are copied together."""
SHARE_OF_TIME: Final = 20
"""After a copy the task rests this many times as long as the copy took."""
SPARES_EVERY_S: Final = 60.0

logger = logging.getLogger(__name__)
notices = Notices(logger)


class Copy(NamedTuple):
    """A sound copy, its time, and the cluster in it."""

    path: Path
    made_ms: int
    image: Image
    producer_id: int
    """The last producer id that may have been assigned when the copy was made."""


def newest_copy(disk: Disk, paths: Iterable[Path]) -> Copy | None:
    """The newest sound one of these copies; None if none is sound."""
    sound = [copy for copy in (read_copy(disk, path) for path in paths) if copy is not None]
    return max(sound, key=lambda copy: copy.made_ms, default=None)


def read_copy(disk: Disk, path: Path) -> Copy | None:
    """A copy; None if it is missing, damaged or without a cluster."""
    try:
        data = checkpoints.read_whole(disk, path)
        if not data:
            return None
        made_ms = disk.modified_ms(path)
        image, producer_id = contents(data, path)
    except (StorageError, CorruptCheckpoint, OSError) as error:
        logger.warning("the copy %s cannot be used: %s", path, error)
        return None
    return None if image is None else Copy(path, made_ms, image, producer_id)


def contents(data: bytes, path: Path) -> tuple[Image | None, int]:
    """The cluster in a file of metadata, and the last producer id that may have been assigned. Raises
    `StorageError`."""
    store = EmbeddedStore.in_memory(data, path)
    try:
        return store.read(read_image()), store.read(last_producer_id())
    finally:
        store.close()


def put_in_place(disk: Disk, folder: Path, data: bytes) -> None:
    """Replace the metadata in a folder; an existing file is kept as the damaged one. Can be repeated after a crash at
    any step. Raises `OSError`."""
    path = folder / FILE_NAME
    if disk.exists(path):
        old = _content(disk, path)
        if old:
            checkpoints.replace_private_file(disk, folder / DAMAGED, old)
    for suffix in ("-wal", "-shm"):  # SQLite would take what is in an old write-ahead log for changes of the new file
        disk.remove(folder / (FILE_NAME + suffix))
    checkpoints.replace_private_file(disk, path, data)


def _content(disk: Disk, path: Path) -> bytes | None:
    try:
        return checkpoints.read_whole(disk, path)
    except (OSError, CorruptCheckpoint) as error:
        logger.warning("%s cannot be kept: %s", path, error)
        return None


class Copies:
    """Keeps the copies of the open store in the folder that is `needed`."""

    def __init__(self, store: EmbeddedStore, folders: LogFolders, runtime: Runtime):
        self._store = store
        [self._home] = [folder for folder in folders.folders if folder.path == folders.needed]
        self._folders = folders
        self._runtime = runtime
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._spares_are_old = True
        self._writing = threading.Lock()

    def start(self) -> None:
        loop = asyncio.get_running_loop()

        def changed(_: Sequence[NodeOperation]) -> None:  # in another thread
            loop.call_soon_threadsafe(self._changed.set)

        self._store.listen(changed)
        self._changed.set()
        self._tasks = [asyncio.ensure_future(self._keep_copy()), asyncio.ensure_future(self._keep_spares())]

    async def stop(self) -> None:
        """Stop the tasks, and bring all copies up to date."""
        await ended(*self._tasks)
        await self._runtime.run(lambda: self.write(self._folders.folders))

    async def _keep_copy(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            await asyncio.sleep(DELAY_S)
            self._changed.clear()
            self._spares_are_old = True
            began = loop.time()
            await self._runtime.run(lambda: self.write([self._home]))
            await asyncio.sleep(SHARE_OF_TIME * (loop.time() - began))

    async def _keep_spares(self) -> None:
        while True:
            await asyncio.sleep(SPARES_EVERY_S)
            if self._spares_are_old:
                self._spares_are_old = False
                await self._runtime.run(
                    lambda: self.write([folder for folder in self._folders.folders if folder is not self._home])
                )

    def write(self, folders: Sequence[LogFolder]) -> None:
        """Write the copies in these log folders, unless they are offline. Blocks. Failures are logged."""
        with self._writing:
            try:
                data = self._store.as_file()
                contents(data, self._home.path / FILE_NAME)
            except StorageError as error:
                line = (
                    "the metadata cannot be copied, and the last copy is kept: %s. Stop the broker, and start it again"
                )
                notices.error(str(self._home.path), line, error)
                return
            for folder in folders:
                folder.check_place()
                if folder.failed is not None:
                    continue
                path = folder.path / (COPY if folder is self._home else SPARE)
                try:
                    checkpoints.replace_private_file(self._runtime.disk, path, data)
                except OSError as error:
                    line = "the metadata cannot be copied to %s: %s. %s"
                    notices.error(str(path), line, path, error, remedy(error))
