"""Options of a `.proto` text: those that Protobuf itself has are set, others are kept as they are written."""

from typing import Any

from google.protobuf import descriptor_pb2

from moldau.client.registry.proto.reader import WordReader
from moldau.client.registry.proto.tokens import quoted

Name = descriptor_pb2.UninterpretedOption.NamePart
BRACES_MAX = 20


def read_options(reader: WordReader, owner: Any, in_brackets: bool) -> None:
    """Read `name = value;`, or a list of them up to `]`, into a message of options; for a field into the field itself.
    Raises `SchemaInvalid`."""
    while True:
        _option(reader, owner)
        if not in_brackets:
            reader.expect(";")
            return
        if not reader.took(","):
            reader.expect("]")
            return


def _option(reader: WordReader, owner: Any) -> None:
    parts = [_part(reader)]
    while reader.took("."):
        parts.append(_part(reader))
    reader.expect("=")
    kind, value = _value(reader)
    is_field = isinstance(owner, descriptor_pb2.FieldDescriptorProto)
    name, is_extension = parts[0]
    is_plain = len(parts) == 1 and not is_extension
    if is_field and is_plain and name in ("default", "json_name"):
        setattr(owner, "default_value" if name == "default" else name, _as_text(kind, value))
        return
    options = owner.options if is_field else owner
    if not (is_plain and _set(options, name, kind, value)):
        _keep(options, parts, kind, value)


def _part(reader: WordReader) -> tuple[str, bool]:
    """A piece of an option's name, and whether it is an extension, in brackets."""
    if not reader.took("("):
        return reader.name(), False
    name = reader.dotted(may_be_absolute=True)
    reader.expect(")")
    return name, True


def _value(reader: WordReader) -> tuple[str, Any]:
    if reader.peek.text == "{" and reader.peek.kind == "sign":
        return "aggregate", _aggregate(reader)
    if reader.peek.kind == "text":
        return "text", reader.text()
    sign = reader.took("-") or reader.took("+")
    token = reader.take()
    if token.kind == "sign":
        raise reader.wrong(f"{token.text!r}, where a value is due")
    return token.kind, (sign if sign == "-" else "") + token.text


def _aggregate(reader: WordReader) -> str:
    """The words between braces, with one space between them."""
    reader.expect("{")
    depth, words = 1, list[str]()
    while True:
        token = reader.take()
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "sign" else 0
        if depth > BRACES_MAX:
            raise reader.wrong(f"more than {BRACES_MAX} braces in each other")
        if not depth:
            return " ".join(words)
        words.append(token.text)


def _as_text(kind: str, value: Any) -> str:
    return value.decode("utf-8", "replace") if kind == "text" else str(value)


def _set(options: Any, name: str, kind: str, value: Any) -> bool:
    """Set an option that Protobuf has. Returns False for any other, or a value of another type."""
    field = options.DESCRIPTOR.fields_by_name.get(name)
    if field is None or field.message_type is not None or name == "map_entry":
        return False
    try:
        if field.enum_type is not None:
            setattr(options, name, field.enum_type.values_by_name[value].number)
        elif field.type == field.TYPE_BOOL:
            setattr(options, name, {"true": True, "false": False}[value])
        elif field.type == field.TYPE_STRING:
            setattr(options, name, value.decode())
        else:
            return False
    except (KeyError, TypeError, AttributeError, ValueError):
        return False
    return True


def _keep(options: Any, parts: list[tuple[str, bool]], kind: str, value: Any) -> None:
    kept = options.uninterpreted_option.add()
    for name, is_extension in parts:
        kept.name.append(Name(name_part=name, is_extension=is_extension))
    if kind == "text":
        kept.string_value = value
    elif kind == "aggregate":
        kept.aggregate_value = value
    else:
        kept.identifier_value = value  # a number too: it is printed as it was written


def printed_options(options: Any) -> list[str]:
    """`name = value` of each option, sorted."""
    found = []
    for field, value in options.ListFields():
        if field.name in ("uninterpreted_option", "map_entry") or field.is_extension or field.message_type is not None:
            continue
        for one in value if field.is_repeated else [value]:
            found.append(f"{field.name} = {_printed(field, one)}")
    for kept in options.uninterpreted_option:
        name = ".".join(f"({part.name_part})" if part.is_extension else part.name_part for part in kept.name)
        found.append(f"{name} = {_printed_kept(kept)}")
    return sorted(found)


def _printed(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else str(value)
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value.encode()) if isinstance(value, str) else str(value)


def _printed_kept(kept: Any) -> str:
    if kept.HasField("string_value"):
        return quoted(kept.string_value)
    if kept.HasField("aggregate_value"):
        return f"{{ {kept.aggregate_value} }}"
    for name in ("positive_int_value", "negative_int_value", "double_value"):
        if kept.HasField(name):
            return str(getattr(kept, name))
    return str(kept.identifier_value)
