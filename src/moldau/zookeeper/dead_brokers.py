"""Ends the session of a broker's process that has died, so that the other brokers replace it at once.

The id and the password of the session are in the broker's folder. They are used only while this process holds the
folder's lock, which a living broker never gives away: the session of a living process is never ended.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from moldau.cluster.zookeeper_sessions import ZooKeeperSessions
from moldau.config import broker_config
from moldau.errors import MoldauError
from moldau.log.folders.identity import LOCK
from moldau.metadata_store.zookeeper_access import access_of
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)


async def end_session(folder: Path, properties: Mapping[str, str]) -> None:
    """`properties` are the broker's. A session that cannot be ended times out by itself, with a line in the log."""
    runtime = Runtime()
    try:
        config, _ = broker_config(properties)
        unlock = runtime.disk.lock(folder / LOCK)
    except (MoldauError, OSError) as error:
        logger.warning("the session of the broker in %s is left to end by itself: %s", folder, error)
        return
    try:
        await ZooKeeperSessions(access_of(config, os.environ), folder, runtime).end_last()
    except MoldauError as error:
        logger.warning("the session of the broker in %s is left to end by itself: %s", folder, error)
    finally:
        unlock()
