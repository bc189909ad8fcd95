"""The message types of a Protobuf schema, and the message indexes that Confluent's wire format names one by.

Behind the schema id are the count of indexes and the indexes, as zigzag varints: the place of the message among those
of its file, then of the nested one among those of its parent. The single index 0 is written as the one byte 0. Entries
of maps are not counted, as Java's serializer does not count them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from moldau.client.registry.proto.files import linked_file
from moldau.client.registry.schemas import Schema
from moldau.errors import DoesNotFit, SchemaInvalid

DEPTH_MAX = 32
INDEX_MAX = 1 << 31
FIRST = (0,)
Indexes = tuple[int, ...]


class MessageTypes:
    """The message types of a schema; `references` are the schemas that it imports, by their paths. Raises
    `SchemaInvalid`."""

    def __init__(self, schema: Schema, references: Mapping[str, Schema]):
        try:
            linked = linked_file(schema.text, {path: other.text for path, other in references.items()})
            self._pool = linked.pool()
        except SchemaInvalid as wrong:
            raise SchemaInvalid(f"the Protobuf schema is wrong: {wrong}") from None
        self._names = dict(_named(linked.file.message_type, linked.file.package, ()))
        self._indexes = {name: indexes for indexes, name in self._names.items()}
        if not self._names:
            raise SchemaInvalid("the Protobuf schema has no message")

    def name_at(self, indexes: Indexes) -> str:
        """The full name of the message at these indexes. Raises `DoesNotFit`."""
        name = self._names.get(indexes)
        if name is None:
            raise DoesNotFit(f"the schema has no message at the indexes {', '.join(map(str, indexes))}")
        return name

    def indexes_of(self, name: str) -> Indexes:
        """The indexes of the message with this full name. Raises `SchemaInvalid`."""
        if name not in self._indexes:
            known = ", ".join([*self._indexes][:10])
            raise SchemaInvalid(f"the Protobuf schema has no message {name}; it has {known}")
        return self._indexes[name]

    def class_of(self, name: str) -> Any:
        """The class of the message with this full name."""
        return GetMessageClass(self._pool.FindMessageTypeByName(name))


def _named(messages: Any, scope: str, above: Indexes) -> Iterator[tuple[Indexes, str]]:
    written = [message for message in messages if not message.options.map_entry]
    for at, message in enumerate(written):
        name = f"{scope}.{message.name}" if scope else message.name
        yield (*above, at), name
        yield from _named(message.nested_type, name, (*above, at))


def packed_indexes(indexes: Indexes) -> bytes:
    """The indexes as they are written behind the schema id."""
    if indexes == FIRST:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(indexes), *indexes))


def indexes_in(data: bytes, at: int) -> tuple[Indexes, int]:
    """The indexes at this place, and where the message begins. Raises `DoesNotFit`."""
    if data[at : at + 1] == b"\0":
        return FIRST, at + 1
    count, at = _number(data, at)
    if not 0 < count <= DEPTH_MAX:
        raise DoesNotFit(f"the value begins with {count} message indexes; 1 to {DEPTH_MAX} are possible")
    indexes = []
    for _ in range(count):
        number, at = _number(data, at)
        indexes.append(number)
    return tuple(indexes), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and the place behind it. Raises `DoesNotFit`."""
    number = shift = 0
    while shift < 35:
        if at >= len(data):
            raise DoesNotFit("the value ends in its message indexes")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            number = (number >> 1) ^ -(number & 1)
            if not 0 <= number < INDEX_MAX:
                break
            return number, at
        shift += 7
    raise DoesNotFit("the value begins with a number that is not a message index")


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])
