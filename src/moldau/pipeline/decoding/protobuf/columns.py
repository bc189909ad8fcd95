"""The columns of Protobuf messages, and what makes an Arrow array of each field, a batch of messages at once.

A field that knows whether it was set (`optional`, a message, of a oneof, all of proto2) is null if it was not, or has
the default that its schema declares; any other has its type's zero. Recursive messages and those without fields become
text, which holds JSON, as do `google.protobuf.Struct`, `Value` and `ListValue`.
"""

import itertools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor as Kind
from google.protobuf.message_factory import GetMessageClass

from moldau.errors import ConfigError, MoldauError
from moldau.pipeline.decoding.event_times import TIMESTAMP, US_MAX, US_MIN

SCALARS: Final = {
    Kind.TYPE_DOUBLE: pa.float64(), Kind.TYPE_FLOAT: pa.float32(), Kind.TYPE_BOOL: pa.bool_(),
    Kind.TYPE_STRING: pa.string(), Kind.TYPE_BYTES: pa.binary(), Kind.TYPE_ENUM: pa.string(),
    **dict.fromkeys((Kind.TYPE_INT32, Kind.TYPE_SINT32, Kind.TYPE_SFIXED32), pa.int32()),
    **dict.fromkeys((Kind.TYPE_INT64, Kind.TYPE_SINT64, Kind.TYPE_SFIXED64), pa.int64()),
    **dict.fromkeys((Kind.TYPE_UINT32, Kind.TYPE_FIXED32), pa.int64()),
    **dict.fromkeys((Kind.TYPE_UINT64, Kind.TYPE_FIXED64), pa.decimal128(20, 0)),
}  # fmt: skip
OF_GOOGLE: Final = "google.protobuf."
STAMP: Final = f"{OF_GOOGLE}Timestamp"
JSON: Final = frozenset(f"{OF_GOOGLE}{name}" for name in ("Struct", "Value", "ListValue"))
WRAPPERS: Final = frozenset(
    f"{OF_GOOGLE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
COLUMNS_MAX: Final = 10_000
"""Messages that nest others twice each would make any number of columns."""
ToArray = Callable[[list[Any]], Any]


class UnfitMessage(MoldauError):
    """A message has a value that its column cannot have; `field` is its path."""

    def __init__(self, field: str, reason: str):
        super().__init__(reason)
        self.field = field


class ProtobufColumn(NamedTuple):
    """A field as a column; `made` takes messages, none of which is None."""

    name: str
    kind: pa.DataType
    made: ToArray


class _Converter(NamedTuple):
    """The type of single values, and what makes an array of them; None becomes null."""

    kind: pa.DataType
    made: ToArray


def columns_of(descriptor: Any) -> list[ProtobufColumn]:
    """The columns of a message's fields. Raises `ConfigError` if it has none, or too many."""
    columns = _Columns().of(descriptor, "", (descriptor.full_name,))
    if not columns:
        raise ConfigError(f"the message {descriptor.full_name} has no fields, so it has no columns")
    return columns


class _Columns:
    def __init__(self) -> None:
        self._count = 0

    def of(self, descriptor: Any, path: str, above: tuple[str, ...]) -> list[ProtobufColumn]:
        self._count += len(descriptor.fields)
        if self._count > COLUMNS_MAX:
            raise ConfigError(f"the message {above[0]} has more than {COLUMNS_MAX:,} fields, with those inside of it")
        return [self._column(field, f"{path}{field.name}", above) for field in descriptor.fields]

    def _column(self, field: Any, path: str, above: tuple[str, ...]) -> ProtobufColumn:
        get = attrgetter(field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            keys, items = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            return _map(field, get, self._converter(keys, path, above), self._converter(items, f"{path}[]", above))
        if field.is_repeated:
            return _list(field, get, self._converter(field, f"{path}[]", above))
        kind, made = self._converter(field, path, above)
        if not field.has_presence or (field.message_type is None and field.has_default_value):
            return ProtobufColumn(field.name, kind, lambda messages: made(list(map(get, messages))))
        name = field.name
        return ProtobufColumn(
            name, kind, lambda messages: made([get(one) if one.HasField(name) else None for one in messages])
        )

    def _converter(self, field: Any, path: str, above: tuple[str, ...]) -> _Converter:
        """What makes an array of a field's single values."""
        message = field.message_type
        if message is None:
            kind = SCALARS[field.type]
            if field.enum_type is not None:
                return _Converter(kind, _names(field.enum_type))
            return _Converter(kind, lambda values: pa.array(values, kind))
        name = message.full_name
        if name == STAMP:
            return _Converter(TIMESTAMP, lambda values: _times(values, path))
        if name in WRAPPERS:
            kind = SCALARS[message.fields_by_name["value"].type]
            return _Converter(
                kind, lambda values: pa.array([None if one is None else one.value for one in values], kind)
            )
        if name in JSON or name in above or not message.fields:
            return _Converter(pa.string(), lambda values: pa.array([_json(one, path) for one in values], pa.string()))
        return _struct(message, self.of(message, f"{path}.", (*above, name)))


def _names(enum: Any) -> ToArray:
    """A number that the enum does not name stays a number."""
    names = {number: value.name for number, value in enum.values_by_number.items()}
    return lambda values: pa.array([None if one is None else names.get(one) or str(one) for one in values], pa.string())


def _struct(message: Any, columns: Sequence[ProtobufColumn]) -> _Converter:
    fields = [pa.field(column.name, column.kind) for column in columns]
    empty = GetMessageClass(message)()

    def made(values: list[Any]) -> Any:
        missing = [one is None for one in values]
        there = [empty if one is None else one for one in values]
        arrays = [column.made(there) for column in columns]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(missing, pa.bool_()))

    return _Converter(pa.struct(fields), made)


def _list(field: Any, get: Callable[[Any], Any], items: _Converter) -> ProtobufColumn:
    def made(messages: list[Any]) -> Any:
        lists = list(map(get, messages))
        return pa.ListArray.from_arrays(_offsets(lists), items.made(list(itertools.chain.from_iterable(lists))))

    return ProtobufColumn(field.name, pa.list_(items.kind), made)


def _map(field: Any, get: Callable[[Any], Any], keys: _Converter, items: _Converter) -> ProtobufColumn:
    def made(messages: list[Any]) -> Any:
        maps = list(map(get, messages))
        pairs = [(key, one[key]) for one in maps for key in one]
        return pa.MapArray.from_arrays(
            _offsets(maps), keys.made([key for key, _ in pairs]), items.made([item for _, item in pairs])
        )

    return ProtobufColumn(field.name, pa.map_(keys.kind, items.kind), made)


def _offsets(sized: Sequence[Any]) -> Any:
    return pa.array(itertools.accumulate(map(len, sized), initial=0), pa.int32())


def _times(values: list[Any], path: str) -> Any:
    made = [one if one is None else one.seconds * 1_000_000 + one.nanos // 1_000 for one in values]
    for us in made:
        if us is not None and not US_MIN <= us <= US_MAX:
            raise UnfitMessage(path, f"field {path} is {us} us since 1970, which is no time of the years 1 to 9999")
    return pa.array(made, pa.int64()).cast(TIMESTAMP)


def _json(value: Any, path: str) -> str | None:
    if value is None:
        return None
    try:
        text = json_format.MessageToJson(value, preserving_proto_field_name=True, indent=None, ensure_ascii=False)
        return str(text)
    except (json_format.Error, TypeError, ValueError, RecursionError) as error:
        raise UnfitMessage(path, f"field {path} cannot be JSON: {' '.join(str(error).split())[:200]}") from None
