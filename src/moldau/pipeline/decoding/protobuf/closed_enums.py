"""Numbers that a closed enum (proto2) does not name: Protobuf keeps them apart as unknown fields, and the field lacks
them. Pure."""

from typing import Any, Final

from google.protobuf.unknown_fields import UnknownFieldSet

ITEMS: Final = "[]"


def has_closed(descriptor: Any) -> bool:
    """Whether a field of the message, or of one inside of it, has a closed enum."""
    seen, waiting = set(), [descriptor]
    while waiting:
        one = waiting.pop()
        if one.full_name in seen:
            continue
        seen.add(one.full_name)
        if any(field.enum_type is not None and field.enum_type.is_closed for field in one.fields):
            return True
        waiting += [field.message_type for field in one.fields if field.message_type is not None]
    return False


def unnamed(message: Any, path: str = "") -> str:
    """The path of the first field that lacks a number because its enum does not name it; empty if there is none."""
    fields = message.DESCRIPTOR.fields_by_number
    for unknown in UnknownFieldSet(message):
        if unknown.field_number in fields:
            return f"{path}{fields[unknown.field_number].name}"
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        name = f"{path}{field.name}"
        entry = field.message_type if field.message_type.GetOptions().map_entry else None
        if entry is not None and entry.fields_by_name["value"].message_type is None:
            continue
        below = value.values() if entry is not None else value if field.is_repeated else [value]
        for one in below:
            found = unnamed(one, f"{name}{ITEMS if field.is_repeated else ''}.")
            if found:
                return found
    return ""
