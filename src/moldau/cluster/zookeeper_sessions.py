"""A broker's sessions in ZooKeeper, each closing the one before: the id and the password of a session are in the data
folder, so that the next process that holds the folder ends what a killed one has left, and need not wait for it.
"""

import json
import logging
import os
from pathlib import Path

from moldau.cluster.zookeeper import ZooKeeperSession
from moldau.cluster.zookeeper_access import Credentials, ZooKeeperAccess
from moldau.log.identity import SESSION
from moldau.runtime import Runtime

_MODE = 0o600

logger = logging.getLogger(__name__)


class ZooKeeperSessions:
    """`folder` is held by this process when the first session is opened."""

    def __init__(self, access: ZooKeeperAccess, folder: Path, runtime: Runtime):
        self._access = access
        self._path = folder / SESSION
        self._runtime = runtime

    async def open(self) -> ZooKeeperSession:
        """As `ZooKeeperSession.open`."""
        left = await self._runtime.run(self._left)
        if left is not None:
            await ZooKeeperSession.end(self._access, left, self._runtime)
        session = await ZooKeeperSession.open(self._access, self._runtime)
        await self._runtime.run(lambda: self._keep(session.credentials))
        return session

    def _left(self) -> Credentials | None:
        try:
            found = json.loads(self._path.read_bytes())
            return Credentials(int(found["session"]), bytes.fromhex(found["password"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s cannot be read, and the session in it ends by itself: %s", self._path, error)
            return None

    def _keep(self, credentials: Credentials) -> None:
        text = json.dumps({"session": credentials.session_id, "password": credentials.password.hex()})
        new = self._path.with_suffix(".tmp")
        try:
            new.unlink(missing_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "w") as file:
                file.write(text)
            new.replace(self._path)
        except OSError as error:
            logger.warning(
                "%s cannot be written; if this process is killed, its session ends by itself: %s", self._path, error
            )
