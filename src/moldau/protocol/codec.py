"""Frames <-> messages: the request and response headers around the bodies that `schema` reads and writes.

A frame here is the bytes after the four-byte size. Sources: "Request and Response Headers" of the protocol guide,
KIP-482; the response header of ApiVersions is v0 in every version (KIP-511).
"""

import re
import struct
from typing import Any, NamedTuple

from moldau.errors import ConfigError, ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.apis import API_VERSIONS, SUPPORTED, Api
from moldau.protocol.primitives import Around, Buffer, skip_tagged_fields

WIDE_BYTES = 16 << 10
"""A larger request may hold enough elements to take more than a few milliseconds to read or to answer; a
request up to this size cannot hold enough of them to be worth counting."""

FIXED_HEADER = struct.Struct(">hhih")
"""The start of a request header: API key, version, correlation id, length of the client id."""
CLIENT_ID_SHOWN_MAX = 100
"""The most bytes of a client id that the log repeats."""
_SIZE_AND_CORRELATION = struct.Struct(">ii")
_LIMITS = re.compile(r"requires (-?\d+) <= number <= (-?\d+)")
"""In an error of `struct`."""


class RequestHeader(NamedTuple):
    """A request's header; `body` is the position in the frame where the message starts."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: int


def read_header(frame: Buffer) -> RequestHeader:
    """The header of a request frame. Raises `ProtocolViolation` if it is cut short or its API is not supported."""
    if len(frame) < 10:
        raise ProtocolViolation("a request shorter than its header")
    key, version, correlation_id, size = FIXED_HEADER.unpack_from(frame)
    api = SUPPORTED.get(key)
    if api is None:
        raise ProtocolViolation(f"unknown API key {key}")
    at = 10 + max(size, 0)
    if at > len(frame):
        raise ProtocolViolation("a client id longer than its request")
    try:
        client_id = None if size < 0 else str(frame[10:at], "utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation("a client id that is not UTF-8") from None
    if version >= api.flexible and (version <= api.high or api is not API_VERSIONS):
        at = skip_tagged_fields(frame, at)
    return RequestHeader(key, version, correlation_id, client_id, at)


def request_name(head: Buffer) -> str:
    """A request's name for the log, from the start of its frame. The frame may be cut short and its API unknown."""
    if len(head) < FIXED_HEADER.size:
        return "a request"
    key, version, _, size = FIXED_HEADER.unpack_from(head)
    api = SUPPORTED.get(key)
    shown = min(max(size, 0), CLIENT_ID_SHOWN_MAX)
    client_id = str(head[FIXED_HEADER.size : FIXED_HEADER.size + shown], "utf-8", "replace")
    return f"{api.name if api else f'API {key}'} version {version} of client {client_id!r}"


def read_request(api: Api, version: int, frame: Buffer, at: int) -> Any:
    """The message of a request whose header ended at `at`. Raises `ProtocolViolation`."""
    budget = schema.ElementBudget(schema.ELEMENTS_MAX) if len(frame) - at > WIDE_BYTES else None
    return schema.read(api.request, version, version >= api.flexible, frame, at, budget)[0]


def write_reply(api: Api, version: int, correlation_id: int, response: Any) -> bytes:
    """A whole reply, with its size in front."""
    flexible = version >= api.flexible
    out = bytearray(8)
    if flexible and api is not API_VERSIONS:
        out.append(0)
    schema.writer(api.response, version, flexible)(out, response)
    _SIZE_AND_CORRELATION.pack_into(out, 0, len(out) - 4, correlation_id)
    return bytes(out)


def write_request(api: Api, version: int, correlation_id: int, client_id: str, request: Any) -> bytes:
    """A whole request, with its size in front: what a client sends."""
    (frame,) = write_request_around(api, version, correlation_id, client_id, request, ())
    return bytes(frame)


def write_request_around(
    api: Api,
    version: int,
    correlation_id: int,
    client_id: str,
    request: Any,
    around: Around,
) -> list[Buffer]:
    """A whole request in pieces, with its size in front. `around` are the detached records in it, in its order, and
    their bytes, which become pieces and are not copied. Raises `ConfigError` for a number or a text that a program was
    given and that the protocol cannot carry."""
    flexible = version >= api.flexible
    out = bytearray(4)
    try:
        name = client_id.encode()
        out += FIXED_HEADER.pack(api.key, version, correlation_id, len(name))
        out += name
        if flexible:
            out.append(0)
        schema.writer(api.request, version, flexible)(out, request)
    except (struct.error, OverflowError) as error:
        limits = _LIMITS.search(str(error))
        allowed = f": it must be {limits[1]} to {limits[2]}" if limits else ""
        raise ConfigError(f"a number in {api.name} is too large or too small{allowed}") from None
    except UnicodeEncodeError:
        raise ConfigError(f"a text in {api.name} has characters that are not Unicode") from None
    struct.pack_into(">i", out, 0, len(out) - 4 + sum(place.length for place, _ in around))
    pieces: list[Buffer] = []
    start, view = 0, memoryview(out)
    for place, data in around:
        pieces += (view[start : place.at], data)
        start = place.at
    return [*pieces, view[start:]]


def read_reply(api: Api, version: int, frame: Buffer) -> Any:
    """The message of a reply frame (its correlation id is the first four bytes). Raises `ProtocolViolation`."""
    flexible = version >= api.flexible
    at = skip_tagged_fields(frame, 4) if flexible and api is not API_VERSIONS else 4
    return schema.read(api.response, version, flexible, frame, at)[0]
