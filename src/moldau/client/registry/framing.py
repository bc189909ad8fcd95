"""Confluent's wire format: the magic byte 0, the schema id in 4 bytes (big endian), then the encoded value."""

import struct
from typing import Any, NamedTuple

from moldau.errors import NotFramed

MAGIC = 0
FRAME_BYTES = 5
_FRAME = struct.Struct(">BI")


class Decoded(NamedTuple):
    """A value, and the id of the schema that it was written with."""

    value: Any
    schema_id: int


def framed(schema_id: int, content: bytes) -> bytes:
    """The content behind its frame."""
    return _FRAME.pack(MAGIC, schema_id) + content


def schema_id_of(data: bytes) -> int:
    """The schema id in the frame; the content begins at `FRAME_BYTES`. Raises `NotFramed`."""
    if len(data) < FRAME_BYTES:
        raise NotFramed(f"the {len(data)} bytes are no schema id with a value: those have at least {FRAME_BYTES} bytes")
    magic, schema_id = _FRAME.unpack_from(data)
    if magic != MAGIC:
        raise NotFramed(
            f"the first byte is {magic}, not 0: the record was not written with a schema registry's serializer"
        )
    return int(schema_id)
