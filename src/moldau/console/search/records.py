"""Records as the console shows them: columns that are decoded and masked, and hits taken out of them. Pure.

Everything that is shown, searched or exported has passed `readable`: first decoded, then masked.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from moldau.console.search.masking import HIDDEN, TopicMask
from moldau.records.arrow import HEADERS

PREVIEW_BYTES, PREVIEW_HEADERS = 2_000, 20
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
    """All of them, or the first ones in a preview; `header_count` counts all."""
    size_bytes: int
    """Of key, value and headers; `key_bytes` and `value_bytes` are those of the whole parts, in a preview too."""
    header_count: int = 0
    key_bytes: int = 0
    value_bytes: int = 0


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
        headers = _masked(headers, mask)
    return ReadableColumns(key, value, headers)


def _masked(headers: pa.Array, mask: TopicMask) -> pa.Array:
    """The headers with hidden values, without an object for each of them."""
    pairs = headers.flatten()
    names, values = pairs.field(0), pairs.field(1)
    hidden = [name for name in pc.unique(names).to_pylist() if mask.hides_header(name)]
    is_hidden = pc.and_(pc.is_in(names, value_set=pa.array(hidden, names.type)), pc.is_valid(values))
    values = pc.if_else(is_hidden, pa.scalar(HIDDEN.encode(), values.type), values)
    counts = pc.list_value_length(headers).fill_null(0)
    ends = pc.cumulative_sum(counts).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    made = pa.StructArray.from_arrays([names, values], fields=[*HEADERS.value_type])
    return pa.ListArray.from_arrays(offsets, made, type=HEADERS)


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
    """The hits of a batch, in its order. With a `preview`, keys and values are cut after so many bytes, and only the
    first headers are taken: a record may have a million."""
    parts = [batch.column("partition"), batch.column("offset"), batch.column("timestamp").cast(pa.int64()), *columns]
    if hits is not None:
        parts = [part.filter(hits) for part in parts]
    if not len(parts[0]):
        return
    headers, lengths = parts[-1], [pc.binary_length(part).fill_null(0).cast(pa.int64()) for part in parts[-3:-1]]
    sizes, counts = pc.add(pc.add(*lengths), _header_sizes(headers)), pc.list_value_length(headers).fill_null(0)
    if preview is not None:
        parts[-1] = pc.list_slice(headers, 0, PREVIEW_HEADERS)
        parts[-3:-1] = [pc.binary_slice(part, 0, preview) for part in parts[-3:-1]]
    for partition, offset, timestamp_us, key, value, pairs, size, count, *own in zip(
        *(part.to_pylist() for part in (*parts, sizes, counts, *lengths)), strict=True
    ):
        timestamp_ms = -1 if timestamp_us is None or timestamp_us < 0 else timestamp_us // US_PER_MS
        shown = [(pair["key"], _cut(pair["value"], preview)) for pair in pairs or ()]
        yield ShownRecord(partition, offset, timestamp_ms, key, value, shown, size, count, *own)


def _header_sizes(headers: pa.Array) -> pa.Array:
    """The bytes of each record's headers."""
    pairs, rows = headers.flatten(), pc.list_parent_indices(headers)
    lengths = [pc.binary_length(pairs.field(n)).fill_null(0).cast(pa.int64()) for n in (0, 1)]
    of_pairs = pa.table({"row": rows.cast(pa.int64()), "size": pc.add(*lengths)})
    of_pairs = of_pairs.group_by("row").aggregate([("size", "sum")])
    of_headers = [0] * len(headers)
    for row, size in zip(of_pairs["row"].to_pylist(), of_pairs["size_sum"].to_pylist(), strict=True):
        of_headers[row] = size
    return pa.array(of_headers, pa.int64())


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
