"""A session in the store that a `zookeeper.connect` names, for what is not a broker: commands and clients."""

from importlib.util import find_spec

from moldau.errors import ConfigError, StorageError
from moldau.metadata_store.shared_file_session import SharedFileSession, file_of
from moldau.metadata_store.store import MetadataStore
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess, split_connect
from moldau.names import how_to_install
from moldau.runtime import Runtime


def check_connect(connect: str) -> None:
    """Raise `ConfigError` unless this is a `zookeeper.connect`, and what it needs is installed."""
    if file_of(connect) is None:
        split_connect(connect)
        if find_spec("kazoo") is None:
            raise ConfigError(f"a connection to ZooKeeper needs kazoo: {how_to_install('cluster')}")


async def session_in(connect: str, timeout_s: float, runtime: Runtime, limit_s: float | None = None) -> MetadataStore:
    """A new session with this time-out in a ZooKeeper, or in a `file:PATH` that brokers share. Gives up after `limit_s`
    (by default the time-out). Raises `ConfigError`, `StorageError`."""
    check_connect(connect)
    file = file_of(connect)
    if file is not None:
        if not file.exists():
            raise StorageError(f"{file} does not exist")
        return await SharedFileSession.open(file, timeout_s, runtime)
    from moldau.metadata_store.zookeeper import ZooKeeperSession

    return await ZooKeeperSession.open(ZooKeeperAccess(connect, timeout_s, limit_s), runtime)
