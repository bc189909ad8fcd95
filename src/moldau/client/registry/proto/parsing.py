"""A `.proto` text as a `FileDescriptorProto` of Google's library, with type names as they are written (`linking` finds
what they mean). proto2 and proto3; editions and groups are refused.

The one parser in a wheel (protoxy) has none for Python 3.13 and later and needs an old protobuf, so this is ours.
"""

from typing import Any

from google.protobuf import descriptor_pb2

from moldau.client.registry.proto.options import read_options
from moldau.client.registry.proto.reader import WordReader
from moldau.errors import SchemaInvalid

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    name: getattr(Field, f"TYPE_{name.upper()}")
    for name in ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
                 "sfixed32", "sfixed64", "bool", "string", "bytes")
}  # fmt: skip
LABELS = {
    "optional": Field.LABEL_OPTIONAL, "required": Field.LABEL_REQUIRED, "repeated": Field.LABEL_REPEATED,
}  # fmt: skip
MAP_KEYS = frozenset(SCALARS) - {"double", "float", "bytes"}
NUMBER_MAX, ENUM_MAX = (1 << 29) - 1, (1 << 31) - 1
DEPTH_MAX = 30
DEFAULT_SYNTAX = "proto2"


def parse_proto(text: str) -> Any:
    """The file's descriptor. Raises `SchemaInvalid`."""
    return _FileParser(WordReader(text)).file()


class _FileParser:
    def __init__(self, reader: WordReader):
        self._reader = reader
        self._file = descriptor_pb2.FileDescriptorProto()
        self._syntax = DEFAULT_SYNTAX

    def file(self) -> Any:
        reader, file = self._reader, self._file
        if reader.took("syntax"):
            reader.expect("=")
            self._syntax = reader.text().decode("utf-8", "replace")
            if self._syntax not in ("proto2", "proto3"):
                raise SchemaInvalid(f"syntax {self._syntax[:40]!r} is not proto2 or proto3")
            reader.expect(";")
            if self._syntax == "proto3":
                file.syntax = self._syntax
        while not reader.is_at_end:
            self._statement(file)
        return file

    def _statement(self, file: Any) -> None:
        reader = self._reader
        match reader.take().text:
            case ";":
                pass
            case "package":
                if file.package:
                    raise reader.wrong("a second package")
                file.package = reader.dotted()
                reader.expect(";")
            case "import":
                kind = reader.took("public") or reader.took("weak")
                path = reader.text().decode("utf-8", "replace")
                if kind:
                    numbers = file.public_dependency if kind == "public" else file.weak_dependency
                    numbers.append(len(file.dependency))
                if path in file.dependency:
                    raise reader.wrong(f"a second import of {path}")
                file.dependency.append(path)
                reader.expect(";")
            case "option":
                read_options(reader, file.options, in_brackets=False)
            case "message":
                self._message(file.message_type.add(), 0)
            case "enum":
                self._enum(file.enum_type.add())
            case "extend":
                self._extend(file.extension, file, 0)
            case "service":
                self._service(file.service.add())
            case "edition":
                raise SchemaInvalid("editions are not supported; proto2 and proto3 are")
            case other:
                raise reader.wrong(f"{other!r}, where a declaration begins")

    def _message(self, message: Any, depth: int) -> None:
        reader = self._reader
        if depth > DEPTH_MAX:
            raise SchemaInvalid(f"it nests more than {DEPTH_MAX} messages")
        message.name = reader.name()
        reader.expect("{")
        optional = []
        while not reader.took("}"):
            field = self._member(message, depth)
            if field is not None and field.proto3_optional:
                optional.append(field)
        # What proto3 calls optional is, in a descriptor, a oneof of one field, behind the real ones.
        for field in optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add().name = f"_{field.name}"

    def _member(self, message: Any, depth: int) -> Any:
        """One statement of a message; the field, if it is one."""
        reader = self._reader
        following = reader.following
        is_declaration = following.kind == "name"
        match reader.peek.text:
            case ";":
                reader.take()
            case "message" if is_declaration:
                reader.take()
                self._message(message.nested_type.add(), depth + 1)
            case "enum" if is_declaration:
                reader.take()
                self._enum(message.enum_type.add())
            case "extend" if following.kind == "name" or following.text == ".":
                reader.take()
                self._extend(message.extension, message, depth)
            case "oneof" if is_declaration:
                reader.take()
                self._oneof(message)
            case "option" if is_declaration or following.text == "(":
                reader.take()
                read_options(reader, message.options, in_brackets=False)
            case "extensions" if following.kind == "number":
                reader.take()
                self._ranges(message.extension_range, NUMBER_MAX, in_options=True)
            case "reserved" if following.kind in ("number", "text", "sign"):
                reader.take()
                self._reserved(message, NUMBER_MAX, 1)
            case _:
                return self._field(message, message.field.add())
        return None

    def _field(self, message: Any, field: Any, is_in_oneof: bool = False) -> Any:
        """A field, after which the reader is behind its `;`."""
        reader = self._reader
        label = reader.peek.text
        if label in LABELS and reader.following.text != "=":
            reader.take()
            if is_in_oneof or (label == "required" and self._syntax == "proto3"):
                raise reader.wrong(f"{label}, which may not be here")
            field.label = LABELS[label]
            if label == "optional" and self._syntax == "proto3":
                field.proto3_optional = True
        elif reader.peek.text == "map" and reader.following.text == "<":
            return self._map(message, field)
        else:
            if self._syntax == "proto2" and not is_in_oneof:
                raise reader.wrong("a field without optional, required or repeated")
            field.label = Field.LABEL_OPTIONAL
        if reader.peek.text == "group" and reader.following.kind == "name":
            raise SchemaInvalid("groups are not supported; use a message")
        self._type(field)
        return self._named(field)

    def _type(self, field: Any) -> None:
        name = self._reader.dotted(may_be_absolute=True)
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name

    def _named(self, field: Any) -> Any:
        reader = self._reader
        field.name = reader.name()
        reader.expect("=")
        field.number = reader.number(1, NUMBER_MAX)
        if reader.took("["):
            read_options(reader, field, in_brackets=True)
        reader.expect(";")
        return field

    def _map(self, message: Any, field: Any) -> Any:
        reader = self._reader
        reader.take()
        reader.expect("<")
        entry = message.nested_type.add()
        key, value = entry.field.add(), entry.field.add()
        key_type = reader.name()
        if key_type not in MAP_KEYS:
            raise reader.wrong(f"the key type {key_type} of a map")
        reader.expect(",")
        key.name, key.number, key.label, key.type = "key", 1, Field.LABEL_OPTIONAL, SCALARS[key_type]
        value.name, value.number, value.label = "value", 2, Field.LABEL_OPTIONAL
        self._type(value)
        reader.expect(">")
        entry.options.map_entry = True
        field.label = Field.LABEL_REPEATED
        self._named(field)
        entry.name = entry_name(field.name)
        field.type, field.type_name = Field.TYPE_MESSAGE, entry.name
        return field

    def _oneof(self, message: Any) -> None:
        reader = self._reader
        number, oneof = len(message.oneof_decl), message.oneof_decl.add()
        oneof.name = reader.name()
        reader.expect("{")
        while not reader.took("}"):
            if reader.took(";"):
                continue
            if reader.peek.text == "option" and reader.following.text != "=":
                reader.take()
                read_options(reader, oneof.options, in_brackets=False)
                continue
            field = self._field(message, message.field.add(), is_in_oneof=True)
            if field.label == Field.LABEL_REPEATED:
                raise reader.wrong("a map, which may not be in a oneof")
            field.oneof_index = number

    def _enum(self, enum: Any) -> None:
        reader = self._reader
        enum.name = reader.name()
        reader.expect("{")
        while not reader.took("}"):
            if reader.took(";"):
                continue
            following = reader.following
            if reader.peek.text == "option" and following.text != "=":
                reader.take()
                read_options(reader, enum.options, in_brackets=False)
            elif reader.peek.text == "reserved" and following.text != "=":
                reader.take()
                self._reserved(enum, ENUM_MAX, 0)
            else:
                value = enum.value.add()
                value.name = reader.name()
                reader.expect("=")
                value.number = reader.number(-ENUM_MAX - 1, ENUM_MAX)
                if reader.took("["):
                    read_options(reader, value.options, in_brackets=True)
                reader.expect(";")

    def _reserved(self, owner: Any, highest: int, behind: int) -> None:
        reader = self._reader
        if reader.peek.kind == "text":
            owner.reserved_name.append(reader.text().decode("utf-8", "replace"))
            while reader.took(","):
                owner.reserved_name.append(reader.text().decode("utf-8", "replace"))
            reader.expect(";")
        else:
            self._ranges(owner.reserved_range, highest, behind=behind)

    def _ranges(self, ranges: Any, highest: int, behind: int = 1, in_options: bool = False) -> None:
        """`2, 9 to 11, 40 to max`; `behind` is 1 where a descriptor's end is one behind the last number."""
        reader = self._reader
        least = 1 if behind else -highest - 1
        while True:
            made = ranges.add()
            made.start = end = reader.number(least, highest)
            if reader.took("to"):
                end = highest if reader.took("max") else reader.number(made.start, highest)
            made.end = end + behind
            if not reader.took(","):
                break
        if in_options and reader.took("["):
            read_options(reader, ranges[-1].options, in_brackets=True)
        reader.expect(";")

    def _extend(self, extensions: Any, owner: Any, depth: int) -> None:
        reader = self._reader
        extendee = reader.dotted(may_be_absolute=True)
        reader.expect("{")
        while not reader.took("}"):
            if reader.took(";"):
                continue
            field = extensions.add()
            field.extendee = extendee
            self._field(owner, field)

    def _service(self, service: Any) -> None:
        reader = self._reader
        service.name = reader.name()
        reader.expect("{")
        while not reader.took("}"):
            if reader.took(";"):
                continue
            if reader.took("option"):
                read_options(reader, service.options, in_brackets=False)
                continue
            reader.expect("rpc")
            method = service.method.add()
            method.name = reader.name()
            method.input_type, client = self._message_type()
            reader.expect("returns")
            method.output_type, server = self._message_type()
            if client:
                method.client_streaming = True
            if server:
                method.server_streaming = True
            self._method_body(method)

    def _method_body(self, method: Any) -> None:
        reader = self._reader
        if not reader.took("{"):
            reader.expect(";")
            return
        while not reader.took("}"):
            if not reader.took(";"):
                reader.expect("option")
                read_options(reader, method.options, in_brackets=False)

    def _message_type(self) -> tuple[str, bool]:
        reader = self._reader
        reader.expect("(")
        streams = reader.peek.text == "stream" and reader.following.text != ")"
        if streams:
            reader.take()
        name = reader.dotted(may_be_absolute=True)
        reader.expect(")")
        return name, streams


def entry_name(field: str) -> str:
    """The name of the message that stands for an entry of a map."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"
