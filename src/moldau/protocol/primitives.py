"""The primitive types of the protocol: how each is read from a buffer and appended to one.

A reader takes `(buffer, position)` and returns `(value, position after it)`; a writer takes `(out, value)` and appends.
Source: "Protocol Primitive Types" of Kafka's protocol guide. A value that does not fit into the remaining bytes raises
`ProtocolViolation` (or `struct.error`, which `schema.read` turns into one) before anything is allocated.
"""

import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from moldau.errors import ProtocolViolation

Buffer: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[Buffer, int], tuple[Any, int]]
Write: TypeAlias = Callable[[bytearray, Any], None]

ZERO_UUID = uuid.UUID(int=0)
TAGGED_FIELDS_MAX = 10_000
"""The most tagged fields in one place of a message or header, as in Kafka 4.4 (CVE-2026-111115)."""


def fixed(code: str) -> tuple[Read, Write]:
    """Reader and writer of a big-endian number of fixed width, by its `struct` code."""
    packer = struct.Struct(">" + code)
    unpack_from, pack, size = packer.unpack_from, packer.pack, packer.size

    def read(buffer: Buffer, at: int) -> tuple[Any, int]:
        return unpack_from(buffer, at)[0], at + size

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return read, write


read_int16, write_int16 = fixed("h")
read_int32, write_int32 = fixed("i")


def read_uvarint(buffer: Buffer, at: int) -> tuple[int, int]:
    """An unsigned base-128 number of at most five bytes and 32 bits."""
    value = shift = 0
    for position in range(at, at + 5):
        if position >= len(buffer):
            raise ProtocolViolation("a varint ends after the message")
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position + 1
        shift += 7
    raise ProtocolViolation("a varint is longer than five bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_uuid(buffer: Buffer, at: int) -> tuple[uuid.UUID, int]:
    end = at + 16
    if end > len(buffer):
        raise ProtocolViolation("a uuid ends after the message")
    return uuid.UUID(bytes=bytes(buffer[at:end])), end


def write_uuid(out: bytearray, value: uuid.UUID) -> None:
    out += value.bytes


def read_bool(buffer: Buffer, at: int) -> tuple[bool, int]:
    if at >= len(buffer):
        raise ProtocolViolation("a boolean ends after the message")
    return buffer[at] != 0, at + 1


def write_bool(out: bytearray, value: bool) -> None:
    out.append(1 if value else 0)


def length_reader(flexible: bool, narrow: bool) -> Callable[[Buffer, int], tuple[int, int]]:
    """Reads a length or count, -1 for null: uvarint of length + 1 when flexible, else int16 (`narrow`) or int32."""
    if not flexible:
        return read_int16 if narrow else read_int32

    def read(buffer: Buffer, at: int) -> tuple[int, int]:
        value, at = read_uvarint(buffer, at)
        return value - 1, at

    return read


def length_writer(flexible: bool, narrow: bool) -> Callable[[bytearray, int], None]:
    """Writes a length or count as `length_reader` reads it."""
    if not flexible:
        return write_int16 if narrow else write_int32

    def write(out: bytearray, length: int) -> None:
        write_uvarint(out, length + 1)

    return write


class Detached:
    """Records that are not copied into a message: a slice of a file in a reply, a batch in a request. A writer writes
    their length in bytes, and sets `at` to the position in its output where they belong."""

    __slots__ = ("at", "length")

    def __init__(self, length: int):
        self.length = length
        self.at = 0


Around = Sequence[tuple[Detached, Buffer]]
"""The detached records of a message, in order, and their bytes."""


def sized(kind: str, flexible: bool, nullable: bool) -> tuple[Read, Write]:
    """Reader and writer of a `string` (to str), `bytes` (to bytes) or `records` (to a memoryview: no copy)."""
    narrow = kind == "string"
    read_length, write_length = length_reader(flexible, narrow), length_writer(flexible, narrow)

    def read(buffer: Buffer, at: int) -> tuple[Any, int]:
        length, at = read_length(buffer, at)
        if length < 0:
            if nullable:  # Kafka treats every negative length as null
                return None, at
            raise ProtocolViolation(f"{kind} of length {length}")
        end = at + length
        if end > len(buffer):
            raise ProtocolViolation(f"{kind} of {length} bytes where {len(buffer) - at} remain")
        if kind == "records":
            return memoryview(buffer)[at:end], end
        if kind == "bytes":
            return bytes(buffer[at:end]), end
        try:
            return str(buffer[at:end], "utf-8"), end
        except UnicodeDecodeError:
            raise ProtocolViolation("a string that is not UTF-8") from None

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            if not nullable:
                raise ValueError(f"null in a {kind} that cannot be null")
            write_length(out, -1)
            return
        if type(value) is Detached:
            write_length(out, value.length)
            value.at = len(out)
            return
        data = value.encode() if kind == "string" else value
        if narrow and not flexible and len(data) > 32767:
            raise ProtocolViolation(f"a string of {len(data)} bytes where 32767 can be written")
        write_length(out, len(data))
        out += data

    return read, write


def check_tagged_fields(count: int) -> None:
    """Raises `ProtocolViolation` for more tagged fields than any peer sends."""
    if count > TAGGED_FIELDS_MAX:
        raise ProtocolViolation(f"{count} tagged fields; at most {TAGGED_FIELDS_MAX} are allowed")


def skip_tagged_fields(buffer: Buffer, at: int) -> int:
    """The position after a section of unknown tagged fields (KIP-482)."""
    count, at = read_uvarint(buffer, at)
    if not count:
        return at
    check_tagged_fields(count)
    for _ in range(count):
        _, at = read_uvarint(buffer, at)
        size, at = read_uvarint(buffer, at)
        at += size
        if at > len(buffer):
            raise ProtocolViolation("a tagged field ends after the message")
    return at


FIXED: dict[str, tuple[Read, Write]] = {
    "int8": fixed("b"),
    "int16": (read_int16, write_int16),
    "uint16": fixed("H"),
    "int32": (read_int32, write_int32),
    "uint32": fixed("I"),
    "int64": fixed("q"),
    "float64": fixed("d"),
    "bool": (read_bool, write_bool),
    "uuid": (read_uuid, write_uuid),
}
SIZES = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "bool": 1, "uuid": 16}


def primitive(kind: str, flexible: bool, nullable: bool) -> tuple[Read, Write]:
    """Reader and writer of the primitive type of that name."""
    return FIXED.get(kind) or sized(kind, flexible, nullable)
