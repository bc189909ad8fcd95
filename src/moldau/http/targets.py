"""Paths, queries and bodies of requests. Paths are split before they are decoded: a name may contain `/`, as %2F."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from moldau.errors import MoldauError

FIELDS_MAX = 100
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class UnusableTarget(MoldauError):
    """The path or the query of a request cannot be read; the text is the sentence for the client."""


def path_parts(raw: bytes) -> tuple[str, ...]:
    """The pieces of a path, decoded one by one. Raises `UnusableTarget`."""
    try:
        return tuple(unquote_to_bytes(part).decode() for part in raw.strip(b"/").split(b"/") if part)
    except UnicodeDecodeError:
        raise UnusableTarget("The path is not UTF-8") from None


def named_values(raw: bytes, fields_max: int = FIELDS_MAX) -> dict[str, list[str]]:
    """The values of each name in a query or a form. Raises `UnusableTarget`."""
    found: dict[str, list[str]] = {}
    try:
        for name, value in parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=fields_max):
            found.setdefault(name, []).append(value)
    except ValueError:
        raise UnusableTarget(f"The query has more than {fields_max} fields") from None
    return found


async def body_of(receive: Receive, bytes_max: int) -> bytes | None:
    """The body, at most one byte more than allowed; None if the client went away."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part = message.get("body", b"")
        if size <= bytes_max:
            parts.append(part[: bytes_max + 1 - size])
            size += len(part)
        if not message.get("more_body"):
            return b"".join(parts)
