"""What Produce and Fetch have in common where they are read and packed by hand: topics, and counts that may be lies."""

import struct

from moldau.errors import ProtocolViolation
from moldau.protocol.primitives import write_uvarint
from moldau.protocol.schema import ELEMENTS_MAX

_PACK_INT32 = struct.Struct(">i").pack
WIDE = 500
"""A request of more topics and partitions is wide: it is read, and its reply packed, in the executor."""


def fits(length: int, remaining: int) -> None:
    """Raises `ProtocolViolation` if so many bytes, or elements of at least one byte, cannot follow."""
    if not 0 <= length <= remaining:
        raise ProtocolViolation(f"{length} bytes or elements where {remaining} bytes remain")


class Wide(Exception):
    """A request has more elements than its reader wants to read at once."""


def few(elements: int, most: int) -> None:
    """Raises `Wide` for more than `most` elements, `ProtocolViolation` if objects for them would fill the memory."""
    if elements > most:
        if elements > ELEMENTS_MAX:
            raise ProtocolViolation("the request has more elements than any client sends")
        raise Wide


def append_topic(
    out: bytearray, flexible: bool, by_id: bool, name: str | None, topic_id: bytes | None, count: int
) -> None:
    """The name or id of a topic and the count of its partitions."""
    if by_id:
        out += topic_id or bytes(16)
    else:
        encoded = (name or "").encode()
        if flexible:
            write_uvarint(out, len(encoded) + 1)
        else:
            out += len(encoded).to_bytes(2, "big")
        out += encoded
    if flexible:
        write_uvarint(out, count + 1)
    else:
        out += _PACK_INT32(count)
