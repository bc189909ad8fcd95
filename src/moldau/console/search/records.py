"""Records as the console shows them: columns that are decoded and masked, and hits taken out of them. Pure.

Everything that is shown, searched or exported has passed `readable`: first decoded, then masked.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from moldau.console.search.masking import TopicMask
from moldau.records.arrow import HEADERS

PREVIEW_BYTES = 2_000
HEX_BYTES_MAX = 64
US_PER_MS = 1_000
Decode = Callable[[str, bytes], bytes | None]
"""`decode("key" or "value", data)`: JSON of data that a schema registry's serializer wrote, else None."""


class ShownRecord(NamedTuple):
    """A record that is shown; `timestamp_ms` is -1 without one."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    size_bytes: int


class ReadableColumns(NamedTuple):
    """The columns of a batch after decoding and masking."""

    key: pa.Array
    value: pa.Array
    headers: pa.Array


def readable(batch: pa.RecordBatch, mask: TopicMask, decode: Decode | None) -> ReadableColumns:
    """The columns as they may be shown."""
    key, value, headers = batch.column("key"), batch.column("value"), batch.column("headers")
    if mask.key or (decode is not None and _is_framed(key)):
        key = pa.array([mask.masked_key(_decoded("key", one, decode)) for one in key.to_pylist()], pa.binary())
    if mask.hides_values or (decode is not None and _is_framed(value)):
        shown = [mask.masked_value(_decoded("value", one, decode)) for one in value.to_pylist()]
        value = pa.array(shown, pa.binary())
    if mask.headers:
        rows = headers.to_pylist()
        for pair in (pair for row in rows for pair in row or ()):
            pair["value"] = mask.masked_header(pair["key"], pair["value"])
        headers = pa.array(rows, HEADERS)
    return ReadableColumns(key, value, headers)


def _is_framed(column: pa.Array) -> bool:
    return bool(pc.any(pc.starts_with(column, "\0")).as_py())


def _decoded(part: str, data: bytes | None, decode: Decode | None) -> bytes | None:
    if data is None or decode is None or not data.startswith(b"\0"):
        return data
    text = decode(part, data)
    return data if text is None else text


def found(
    batch: pa.RecordBatch, columns: ReadableColumns, hits: pa.Array | None, preview: int | None = PREVIEW_BYTES
) -> Iterator[ShownRecord]:
    """The hits of a batch, in its order; keys and values are cut after `preview` bytes."""
    rows = None if hits is None else hits
    parts = [batch.column("partition"), batch.column("offset"), batch.column("timestamp").cast(pa.int64()), *columns]
    if rows is not None:
        parts = [part.filter(rows) for part in parts]
    for partition, offset, timestamp_us, key, value, headers in zip(*(part.to_pylist() for part in parts), strict=True):
        pairs = [(pair["key"], pair["value"]) for pair in headers or ()]
        size = len(key or b"") + len(value or b"") + sum(len(name) + len(one or b"") for name, one in pairs)
        timestamp_ms = -1 if timestamp_us is None or timestamp_us < 0 else timestamp_us // US_PER_MS
        shown = [(name, _cut(one, preview)) for name, one in pairs]
        yield ShownRecord(partition, offset, timestamp_ms, _cut(key, preview), _cut(value, preview), shown, size)


def _cut(data: bytes | None, size: int | None) -> bytes | None:
    return data if data is None or size is None else data[:size]


def shown_bytes(data: bytes | None) -> tuple[str, str]:
    """A text for the bytes, and its kind: `null`, `text` or `binary`. Bytes that are not text are hexadecimal."""
    if data is None:
        return "null", "null"
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        if wrong.start > len(data) - 4 and wrong.reason == "unexpected end of data":  # cut within a character
            return data[: wrong.start].decode(), "text"
        return data[:HEX_BYTES_MAX].hex(" ") + (" …" if len(data) > HEX_BYTES_MAX else ""), "binary"
    if any(ord(c) < 32 and c not in "\t\n\r" for c in text[:200]):
        return data[:HEX_BYTES_MAX].hex(" ") + (" …" if len(data) > HEX_BYTES_MAX else ""), "binary"
    return text, "text"


def named_content(name: str, content: bytes | None) -> tuple[str, Any]:
    """A byte string for JSON: its text under its name, or base64 under `name_base64` if it is not UTF-8."""
    try:
        return name, None if content is None else content.decode()
    except UnicodeDecodeError:
        return f"{name}_base64", base64.b64encode(content or b"").decode()
