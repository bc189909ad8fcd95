"""Records as `decoding.decode` hands them out: the buffers of columns as Arrow lays them out."""

from __future__ import annotations

from typing import Any, NamedTuple

try:
    import cython
except ImportError:
    from moldau.records import untyped as cython

COMPILED: bool = cython.compiled


class Binary(NamedTuple):
    """A column of byte strings: int32 offsets, the bytes, and validity bits (None where nothing is null)."""

    offsets: Any
    data: Any
    validity: Any
    nulls: int


class Columns(NamedTuple):
    """Records as Arrow lays them out."""

    rows: int
    keys: Binary | None
    """None if keys were not wanted; the same for values."""
    values: Binary | None
    offsets: Any
    timestamps: Any
    timestamp_types: Any
    lists: Binary | None
    """The rows' headers as lists (`data` is empty), a row without any being null; None if no row has headers, or they
    were not wanted."""
    headers: int
    header_keys: Binary | None
    header_values: Binary | None
