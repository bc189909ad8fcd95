"""A session in the store that a `zookeeper.connect` names, for what is not a broker: commands and clients.

They use TLS by the settings that brokers have, and the user in the JAAS file that `KAFKA_OPTS` names.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec

from moldau.config import broker_config
from moldau.errors import ConfigError, StorageError
from moldau.metadata_store.shared_file_session import SharedFileSession, file_of, shared_file
from moldau.metadata_store.store import MetadataStore
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess, access_of, split_connect
from moldau.names import how_to_install
from moldau.runtime import Runtime


def access_in(connect: str, settings: Mapping[str, str] | None = None) -> ZooKeeperAccess | None:
    """The way into a ZooKeeper, with these settings `zookeeper.*`; None into a file. Raises `ConfigError`, also if what
    it needs is not installed."""
    config, _ = broker_config({**(settings or {}), "zookeeper.connect": connect, "broker.id": "0"})
    if shared_file(config) is not None:
        return None
    split_connect(connect)
    if find_spec("kazoo") is None:
        raise ConfigError(f"a connection to ZooKeeper needs kazoo: {how_to_install('cluster')}")
    return access_of(config, os.environ)


async def session_in(
    connect: str,
    timeout_s: float,
    runtime: Runtime,
    limit_s: float | None = None,
    settings: Mapping[str, str] | None = None,
) -> MetadataStore:
    """A new session with this time-out in a ZooKeeper, or in a `file:PATH` that brokers share. Gives up after `limit_s`
    (by default the time-out). `settings` are those of the connection, `zookeeper.*`. Raises `ConfigError`,
    `StorageError`."""
    access = access_in(connect, settings)
    if access is None:
        file = file_of(connect)
        if file is None or not file.exists():
            raise StorageError(f"{file} does not exist")
        return await SharedFileSession.open(file, timeout_s, runtime)
    from moldau.metadata_store.zookeeper import ZooKeeperSession

    return await ZooKeeperSession.open(access._replace(timeout_s=timeout_s, connection_timeout_s=limit_s), runtime)
