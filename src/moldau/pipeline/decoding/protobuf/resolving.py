"""Whether messages of one schema can be read with another one, no value changed or lost. Pure.

Protobuf itself reads any field by its number: text as nothing where the reader has a number, and the lower half of a
number that is too wide. Such schemas are told apart here, so that their records are rejected instead.
"""

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor as Kind

WIDER: Final = {
    Kind.TYPE_INT32: {Kind.TYPE_INT64, Kind.TYPE_ENUM},
    Kind.TYPE_UINT32: {Kind.TYPE_INT64, Kind.TYPE_UINT64},
    Kind.TYPE_BOOL: {Kind.TYPE_INT32, Kind.TYPE_INT64, Kind.TYPE_UINT32, Kind.TYPE_UINT64},
    Kind.TYPE_ENUM: {Kind.TYPE_INT32, Kind.TYPE_INT64},
    Kind.TYPE_SINT32: {Kind.TYPE_SINT64},
    Kind.TYPE_STRING: {Kind.TYPE_BYTES},
    Kind.TYPE_BYTES: {Kind.TYPE_STRING},
}
"""The other types as which values of a type can be read; bytes that are not UTF-8 are found in each value."""
NAMES: Final = {
    number: name.removeprefix("TYPE_").lower() for name, number in vars(Kind).items() if name.startswith("TYPE_")
}


def difference(writer: Any, reader: Any) -> str:
    """The first field that the reader's message cannot have as the writer's has it, in words; empty if it can."""
    return _difference(writer, reader, "", set())


def _difference(writer: Any, reader: Any, path: str, seen: set[tuple[str, str]]) -> str:
    if (writer.full_name, reader.full_name) in seen:
        return ""
    seen.add((writer.full_name, reader.full_name))
    for field in writer.fields:
        other = reader.fields_by_number.get(field.number)
        if other is None:
            continue
        where = f"{path}{other.name}"
        if field.type != other.type and other.type not in WIDER.get(field.type, ()):
            return f"field {where} is {NAMES[field.type]} there and {NAMES[other.type]} in the columns"
        if field.is_repeated and not other.is_repeated:
            return f"field {where} is repeated there and not in the columns"
        if field.message_type is not None:
            if _is_map(other) and not _is_map(field):
                return f"field {where} is repeated there and a map in the columns"
            found = _difference(field.message_type, other.message_type, f"{where}.", seen)
            if found:
                return found
    return ""


def _is_map(field: Any) -> bool:
    return bool(field.message_type.GetOptions().map_entry)
