"""Shared by the handwritten readers and packers of Produce and Fetch: topics, and counts that may be wrong."""

import struct

from moldau.errors import ProtocolViolation
from moldau.protocol.primitives import write_uvarint
from moldau.protocol.schema import ELEMENTS_MAX

_PACK_INT32 = struct.Struct(">i").pack
WIDE = 500
"""A request of more topics and partitions is wide: it is read, and its reply packed, in the executor."""
NAME_LENGTH_MAX = 249
"""The longest topic name (see `cluster.controlling.controller`). A client may send a longer one: it is read, the topic
is not found, and nothing keeps the name."""
FOLLOWER = b"\1\1\1\x0d"
"""How the last 17 bytes of a follower's Fetch begin: no rack, and the replica state as the only tagged field."""


def misfit(length: int, remaining: int) -> ProtocolViolation:
    """The error of a request that declares more bytes, or elements of at least one byte, than remain."""
    return ProtocolViolation(f"{length} bytes or elements where {remaining} bytes remain")


class Wide(Exception):
    """A request has more elements than its reader wants to read at once."""


def too_many(elements: int) -> Exception:
    """The error of a request with more elements than its reader accepts: `Wide`, or `ProtocolViolation` if objects for
    them would fill the memory."""
    if elements > ELEMENTS_MAX:
        return ProtocolViolation("the request has more elements than any client sends")
    return Wide()


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
