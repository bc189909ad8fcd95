"""What a handler knows of a request besides its message: which API and version, and who asks."""

from typing import NamedTuple


class Context(NamedTuple):
    """`client_host` is the peer's address as text."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    client_host: str
