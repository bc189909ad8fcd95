"""The one way to write a descriptor as `.proto` text: two spaces, no comments, names as short as they can be."""

from collections.abc import Callable, Iterator
from typing import Any

from moldau.client.registry.proto.options import printed_options
from moldau.client.registry.proto.parsing import ENUM_MAX, LABELS, NUMBER_MAX, SCALARS, Field
from moldau.client.registry.proto.tokens import quoted

_TYPES = {number: name for name, number in SCALARS.items()}
_LABELS = {number: name for name, number in LABELS.items()}
Shorten = Callable[[str, str], str]
"""From a full type name (`.a.b.C`) and the scope it is used in (`a.b`) to how it is written."""


def printed(file: Any, shorten: Shorten) -> str:
    """The text of a linked descriptor."""
    return "\n".join([*_head(file), *_Printer(file.syntax or "proto2", shorten).types(file, file.package, "")]) + "\n"


def _head(file: Any) -> Iterator[str]:
    yield f"syntax = {quoted((file.syntax or 'proto2').encode())};"
    if file.package:
        yield f"package {file.package};"
    if file.dependency:
        yield ""
    for number, path in enumerate(file.dependency):
        kind = "public " if number in file.public_dependency else "weak " if number in file.weak_dependency else ""
        yield f"import {kind}{quoted(path.encode())};"
    options = printed_options(file.options)
    if options:
        yield ""
    yield from (f"option {option};" for option in options)


class _Printer:
    def __init__(self, syntax: str, shorten: Shorten):
        self._syntax = syntax
        self._shorten = shorten

    def types(self, owner: Any, scope: str, indent: str) -> Iterator[str]:
        """Messages, enums, extensions and services of a file or message."""
        is_file = not indent
        for message in owner.message_type if is_file else owner.nested_type:
            if not message.options.map_entry:
                yield from self._spaced(is_file, self._message(message, _inside(scope, message.name), indent))
        for enum in owner.enum_type:
            yield from self._spaced(is_file, self._enum(enum, indent))
        for field in owner.extension:
            line = self._field(field, owner, scope)
            extend = f"{indent}extend {self._shorten(field.extendee, scope)} {{"
            yield from self._spaced(is_file, iter([extend, f"{indent}  {line}", f"{indent}}}"]))
        for service in owner.service if is_file else ():
            yield from self._spaced(is_file, self._service(service, scope))

    @staticmethod
    def _spaced(is_file: bool, lines: Iterator[str]) -> Iterator[str]:
        if is_file:
            yield ""
        yield from lines

    def _message(self, message: Any, scope: str, indent: str) -> Iterator[str]:
        inner = f"{indent}  "
        yield f"{indent}message {message.name} {{"
        yield from (f"{inner}option {option};" for option in printed_options(message.options))
        yield from _reserved(message, inner, NUMBER_MAX, 1)
        for one in message.extension_range:
            yield f"{inner}extensions {_range(one, NUMBER_MAX, 1)}{_in_brackets(printed_options(one.options))};"
        seen = set[int]()
        for field in message.field:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield f"{inner}{self._field(field, message, scope)}"
            elif field.oneof_index not in seen:
                seen.add(field.oneof_index)
                yield from self._oneof(message, field.oneof_index, scope, inner)
        yield from self.types(message, scope, inner)
        yield f"{indent}}}"

    def _oneof(self, message: Any, number: int, scope: str, indent: str) -> Iterator[str]:
        oneof = message.oneof_decl[number]
        yield f"{indent}oneof {oneof.name} {{"
        yield from (f"{indent}  option {option};" for option in printed_options(oneof.options))
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index == number:
                yield f"{indent}  {self._field(field, message, scope)}"
        yield f"{indent}}}"

    def _field(self, field: Any, owner: Any, scope: str) -> str:
        options = printed_options(field.options)
        if field.HasField("default_value"):
            is_text = field.type in (Field.TYPE_STRING, Field.TYPE_BYTES)
            options.insert(0, f"default = {quoted(field.default_value.encode()) if is_text else field.default_value}")
        if field.HasField("json_name") and field.json_name != json_name(field.name):
            options.append(f"json_name = {quoted(field.json_name.encode())}")
        entry = _entry_of(field, owner)
        if entry is not None:
            key, value = entry.field
            kind = f"map<{_TYPES[key.type]}, {self._type(value, scope)}>"
        else:
            kind = f"{self._label(field)}{self._type(field, scope)}"
        return f"{kind} {field.name} = {field.number}{_in_brackets(options)};"

    def _label(self, field: Any) -> str:
        if field.label == Field.LABEL_OPTIONAL and not field.proto3_optional:
            is_written = self._syntax == "proto2" and not field.HasField("oneof_index")
            return "optional " if is_written else ""
        return f"{_LABELS[field.label]} "

    def _type(self, field: Any, scope: str) -> str:
        return self._shorten(field.type_name, scope) if field.type_name else _TYPES[field.type]

    def _enum(self, enum: Any, indent: str) -> Iterator[str]:
        yield f"{indent}enum {enum.name} {{"
        yield from (f"{indent}  option {option};" for option in printed_options(enum.options))
        yield from _reserved(enum, f"{indent}  ", ENUM_MAX, 0)
        for value in enum.value:
            yield f"{indent}  {value.name} = {value.number}{_in_brackets(printed_options(value.options))};"
        yield f"{indent}}}"

    def _service(self, service: Any, scope: str) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from (f"  option {option};" for option in printed_options(service.options))
        for method in service.method:
            given = f"{'stream ' if method.client_streaming else ''}{self._shorten(method.input_type, scope)}"
            returned = f"{'stream ' if method.server_streaming else ''}{self._shorten(method.output_type, scope)}"
            options = printed_options(method.options)
            line = f"  rpc {method.name} ({given}) returns ({returned})"
            yield f"{line} {{" if options else f"{line};"
            yield from (f"    option {option};" for option in options)
            if options:
                yield "  }"
        yield "}"


def _in_brackets(options: list[str]) -> str:
    return f" [{', '.join(options)}]" if options else ""


def _inside(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _entry_of(field: Any, owner: Any) -> Any:
    """The message of a map's entries, if the field is a map."""
    if field.label != Field.LABEL_REPEATED or not field.type_name or not hasattr(owner, "nested_type"):
        return None
    name = field.type_name.rpartition(".")[2]
    return next((one for one in owner.nested_type if one.name == name and one.options.map_entry), None)


def _reserved(owner: Any, indent: str, highest: int, behind: int) -> Iterator[str]:
    if owner.reserved_range:
        yield f"{indent}reserved {', '.join(_range(one, highest, behind) for one in owner.reserved_range)};"
    if owner.reserved_name:
        yield f"{indent}reserved {', '.join(quoted(name.encode()) for name in owner.reserved_name)};"


def _range(one: Any, highest: int, behind: int) -> str:
    last = one.end - behind
    return str(one.start) if last == one.start else f"{one.start} to {'max' if last >= highest else last}"


def json_name(name: str) -> str:
    """The name that a field has in JSON unless it says another."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
