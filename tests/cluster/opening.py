"""A cluster of one broker in a folder, for tests that need no sockets."""

from collections.abc import Mapping
from pathlib import Path

from moldau.cluster.cluster import Cluster
from moldau.cluster.state.image import Endpoint
from moldau.config import broker_config
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.runtime import Runtime

HERE = Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)
SETTINGS = {"node.id": "1", "offsets.topic.num.partitions": "3"}


def session_in(folder: Path) -> EmbeddedSession:
    """The only session of a store in this folder."""
    return EmbeddedSession(EmbeddedStore(folder), Runtime(), closes_store=True)


async def open_cluster(folder: Path, settings: Mapping[str, str] | None = None, *, clean: bool = True) -> Cluster:
    config, _ = broker_config({**SETTINGS, **(settings or {})})
    cluster = await Cluster.open(session_in(folder), config, Runtime(), clean=clean)
    await cluster.registration.register([HERE])
    return cluster
