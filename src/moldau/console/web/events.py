"""Server-sent events as text. Pure."""

import json
from typing import Any

MEDIA_TYPE = "text/event-stream; charset=utf-8"
ALIVE = b": alive\n\n"
"""A comment: it tells a proxy, and us, whether the browser is still there."""


def event(name: str, data: bytes | dict[str, Any], place: str = "") -> bytes:
    """One event; with a `place`, a browser whose stream broke sends it when it connects again."""
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    lines = b"".join(b"data: " + line + b"\n" for line in text.splitlines())
    return (f"id: {place}\n".encode() if place else b"") + f"event: {name}\n".encode() + lines + b"\n"
