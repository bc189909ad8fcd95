"""What the console is told: where it listens, which cluster it shows, and what it may do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.http.serving import TlsFiles

DEFAULT_PORT = 8090


@dataclass(frozen=True)
class ConsoleSettings:
    """`client` has the settings of its clients by Kafka's names, with the brokers; port 0 is a free one."""

    client: Mapping[str, Any] = field(repr=False)
    host: str = "localhost"
    port: int = DEFAULT_PORT
    names: tuple[str, ...] = ()
    """Further names that browsers may reach it by; those of the machine and addresses need not be named."""
    read_only: bool = False
    tls: TlsFiles = TlsFiles()
    masks: tuple[str, ...] = ()
    """What is hidden of records, as `MaskRules` reads it."""
    registry: SchemaRegistry | None = None
    """Decodes and encodes records, and has its page."""
    metrics: tuple[str, ...] = ()
    """The addresses of brokers' metrics, from which times of requests are plotted."""
