"""The demo's schema registry: in a thread of the demo, with its schemas in a topic of the origin."""

import contextlib
from collections.abc import Iterator, Sequence

from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.demo import schemas
from moldau.http.in_thread import ServerThread
from moldau.registry.server import RegistryServer, RegistrySettings


@contextlib.contextmanager
def running_registry(bootstrap: str) -> Iterator[str]:
    """A registry on a free port while the block runs; yields its address. Its topic is there when it serves."""
    running = ServerThread(RegistryServer(bootstrap, RegistrySettings("127.0.0.1", 0)), "schema registry")
    running.start()
    try:
        yield running.addresses[0]
    finally:
        running.stop()


def register(registry: SchemaRegistry, topics: Sequence[str]) -> dict[str, int]:
    """Register the schema of each topic's values. Returns the ids."""
    return {topic: registry.register(schemas.subject(topic), schemas.schema(topic)) for topic in topics}
