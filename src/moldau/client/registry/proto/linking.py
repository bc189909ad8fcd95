"""Finds what the type names of a descriptor mean, in the file and its imports. Google's library checks the whole."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool

from moldau.client.registry.proto.parsing import Field
from moldau.client.registry.proto.well_known import well_known
from moldau.errors import SchemaInvalid

FILE_NAME = "schema.proto"
RESERVED_NUMBERS = range(19_000, 20_000)


class NamedType(NamedTuple):
    """A message or enum, where it is defined, and its full name without the package."""

    descriptor: Any
    is_enum: bool
    file: Any
    local_name: str


class LinkedFile:
    """A descriptor whose type names are full ones. `imports` are the files that it needs, each after those that
    it needs itself. Raises `SchemaInvalid`."""

    def __init__(self, file: Any, references: Mapping[str, Any]):
        self.file = file
        file.name = file.name or FILE_NAME
        self.imports = list(_imports(file, references, {}))
        self.types: dict[str, NamedType] = {}
        for one in [*self.imports, file]:
            self.types |= {_joined(one.package, name): made for name, made in _defined(one)}
        self._link(file.extension, file.package)
        for message in file.message_type:
            self._link_message(message, _joined(file.package, message.name))
        for service in file.service:
            for method in service.method:
                method.input_type = self._found(method.input_type, file.package)
                method.output_type = self._found(method.output_type, file.package)

    def shortened(self, full: str, scope: str) -> str:
        """How a full type name (`.a.b.C`) is written in a scope."""
        package = f".{self.file.package}." if self.file.package else "."
        short = full.removeprefix(package) if full.startswith(package) else full[1:]
        return short if self._resolved(short, scope) == full else full

    def check(self) -> None:
        """Raise `SchemaInvalid` for what a compiler does not accept, such as a number that two fields have."""
        for message in self.file.message_type:
            _check_numbers(message)
        self.pool()

    def pool(self) -> Any:
        """Google's pool with the file and its imports, for message classes. Raises `SchemaInvalid` for what Google's
        library does not accept."""
        pool = descriptor_pool.DescriptorPool()
        try:
            for one in [*self.imports, self.file]:
                pool.Add(without_kept_options(one))
                pool.FindFileByName(one.name)
        except Exception as wrong:
            said = " ".join(str(wrong).split()).removeprefix("Couldn't build proto file into descriptor pool: ")
            raise SchemaInvalid(said[:300]) from None
        return pool

    def _link_message(self, message: Any, scope: str) -> None:
        self._link(message.field, scope)
        self._link(message.extension, scope)
        for inner in message.nested_type:
            self._link_message(inner, f"{scope}.{inner.name}")

    def _link(self, fields: Any, scope: str) -> None:
        for field in fields:
            if field.HasField("extendee"):
                field.extendee = self._found(field.extendee, scope)
            if field.type_name:
                field.type_name = self._found(field.type_name, scope)
                named = self.types[field.type_name[1:]]
                field.type = Field.TYPE_ENUM if named.is_enum else Field.TYPE_MESSAGE

    def _found(self, name: str, scope: str) -> str:
        found = self._resolved(name, scope)
        if not found:
            raise SchemaInvalid(f"the type {name[:200]} is not defined, in it or in what it imports")
        return found

    def _resolved(self, name: str, scope: str) -> str:
        """The full name, looked for from the innermost scope outwards; empty if there is none."""
        if name.startswith("."):
            return name if name[1:] in self.types else ""
        while True:
            if _joined(scope, name) in self.types:
                return f".{_joined(scope, name)}"
            if not scope:
                return ""
            scope = scope.rpartition(".")[0]


def _imports(file: Any, references: Mapping[str, Any], seen: dict[str, None]) -> Iterator[Any]:
    for path in file.dependency:
        if path in seen:
            continue
        seen[path] = None
        other = references.get(path)
        if other is None:
            other = well_known(path)
        if other is None:
            raise SchemaInvalid(f"it imports {path[:200]!r}, and has no reference of this name")
        if other.name != path:
            other = descriptor_pb2.FileDescriptorProto.FromString(other.SerializeToString())
            other.name = path
        yield from _imports(other, references, seen)
        yield other


def _defined(owner: Any, scope: str = "", file: Any = None) -> Iterator[tuple[str, NamedType]]:
    file = owner if file is None else file
    for message in owner.message_type if owner is file else owner.nested_type:
        name = _joined(scope, message.name)
        yield name, NamedType(message, False, file, name)
        yield from _defined(message, name, file)
    for enum in owner.enum_type:
        name = _joined(scope, enum.name)
        yield name, NamedType(enum, True, file, name)


def _joined(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _check_numbers(message: Any) -> None:
    """What Google's library in Python lets pass, and its compilers do not."""
    for field in message.field:
        if field.number in RESERVED_NUMBERS or any(
            one.start <= field.number < one.end for one in message.reserved_range
        ):
            raise SchemaInvalid(f"{message.name}.{field.name} has the number {field.number}, which is reserved")
        if field.name in message.reserved_name:
            raise SchemaInvalid(f"{message.name}.{field.name} has a name that is reserved")
    for inner in message.nested_type:
        _check_numbers(inner)


def without_kept_options(file: Any) -> Any:
    """A copy without the options that only their authors' tools know."""
    copy = descriptor_pb2.FileDescriptorProto.FromString(file.SerializeToString())
    _strip(copy)
    return copy


def _strip(message: Any) -> None:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if field.is_repeated else [value]:
            if field.name == "options" and one.uninterpreted_option:
                del one.uninterpreted_option[:]
            _strip(one)
