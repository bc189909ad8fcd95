"""A broker's sessions in ZooKeeper, each closing the one before: the id and the password of a session are in the data
folder, so that the next process that holds the folder ends what a killed one has left, and need not wait for it. The
mark of the folder's lock is beside them: the lock of a copy says nothing about the process that serves the original.

The first session is waited for, up to `zookeeper.connection.timeout.ms`, with a line now and then.
"""

import json
import logging
from pathlib import Path

from moldau.log.checkpoints import CorruptCheckpoint, read_whole, replace_private_file
from moldau.log.folders.identity import LOCK, SESSION
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import Credentials, ZooKeeperAccess
from moldau.notices import Notices
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)
notices = Notices(logger)


class ZooKeeperSessions:
    """`folder` is held by this process when a session is opened or ended."""

    def __init__(self, access: ZooKeeperAccess, folder: Path, runtime: Runtime):
        self._access = access
        self._path, self._lock = folder / SESSION, folder / LOCK
        self._runtime = runtime
        self._is_first = True

    async def open(self) -> ZooKeeperSession:
        """As `ZooKeeperSession.open`. The last session is ended when there is a new one: ZooKeeper can be reached then,
        and the time-out is waited for once."""
        access = self._access
        if self._is_first:
            session = await ZooKeeperSession.open(access, self._runtime, self._waiting)
        else:
            session = await ZooKeeperSession.open(access, self._runtime)
        self._is_first = False
        try:
            await self.end_last()
            await self._runtime.run(lambda: self._keep(session.credentials))
        except BaseException:
            await session.close()
            raise
        return session

    def _waiting(self, reason: str) -> None:
        notices.warning(
            self._access.connect,
            "waiting for ZooKeeper at %s%s. The start ends if it has not answered after %g s "
            "(zookeeper.connection.timeout.ms)",
            self._access.connect,
            f": {reason}" if reason else "",
            self._access.connection_limit_s,
        )

    async def end_last(self) -> None:
        """End the session that the folder knows, if there is one. Its process is dead: this one holds the folder."""
        left = await self._runtime.run(self._left)
        if left is not None:
            await ZooKeeperSession.end(self._access, left, self._runtime)

    def _left(self) -> Credentials | None:
        try:
            data = read_whole(self._runtime.disk, self._path)
            if data is None:
                return None
            left = json.loads(data)
            if left["lock"] != self._runtime.disk.mark(self._lock):
                why = "it came with a copy of its folder, and the process that serves the original may live"
                logger.warning("%s is not used, so the session it names is left to expire: %s", self._path, why)
                return None
            return Credentials(int(left["session"]), bytes.fromhex(left["password"]))
        except (OSError, CorruptCheckpoint) as error:
            why = str(error)
        except (ValueError, RecursionError, KeyError, TypeError):
            why = "it is damaged, or an earlier version of Moldau has written it"
        logger.warning("%s cannot be read, so the session it names is left to expire: %s", self._path, why)
        return None

    def _keep(self, credentials: Credentials) -> None:
        note = {"session": credentials.session_id, "password": credentials.password.hex()}
        try:
            note["lock"] = self._runtime.disk.mark(self._lock)
            replace_private_file(self._runtime.disk, self._path, json.dumps(note).encode(), flush=False)
        except OSError as error:
            logger.warning(
                "%s cannot be written; if this process is killed, its session ends only by its timeout: %s",
                self._path,
                error,
            )
