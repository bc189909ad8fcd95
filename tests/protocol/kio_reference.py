"""The same message as ours and as kio's, field by field.

kio's classes are generated from Kafka's own message definitions: an independent reading of them. kio drops `_ms` from
names, reads times as `timedelta` and `datetime`, error codes as an enum and the zero uuid as None; here those become
the numbers and the zero uuid that are on the wire. Both sides list the fields of one version in the same order, the
order of Kafka's definitions, so fields are paired by position and their names only checked.
"""

import dataclasses
import datetime
import enum
import io
import types
import typing
import uuid
from functools import cache
from typing import Any

from kio.serial import entity_reader, entity_writer

from moldau.protocol.apis import API_VERSIONS, DELETE_GROUPS, TXN_OFFSET_COMMIT
from moldau.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from moldau.protocol.schema import Spec, specs

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)
OURS_BY_KIO_TYPE = {"error_code": "int16", "timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}
KIO_LACKS = ((API_VERSIONS, 5), (TXN_OFFSET_COMMIT, 6), (DELETE_GROUPS, 3))
"""Versions of Apache Kafka 4.4.0 (the message definitions in its kafka-clients-4.4.0.jar), newer than kio 0.6.5."""
RENAMED = {(TxnOffsetCommitRequest, "generation_id_or_member_epoch"): "generation_id"}
"""Fields that Kafka 4.4.0 calls otherwise in all versions than kio does: (message, our name) -> kio's."""


@dataclasses.dataclass(frozen=True)
class KioField:
    """What kio says about one field: the names are those of our `Spec`."""

    name: str
    kafka_type: str | None
    struct: type | None
    array: bool
    nullable: bool
    tag: int | None
    default: Any


@cache
def kio_fields(message: type) -> tuple[KioField, ...]:
    return tuple(_kio_field(f) for f in dataclasses.fields(message))


def _kio_field(f: dataclasses.Field[Any]) -> KioField:
    kafka_type = f.metadata.get("kafka_type")
    kind, nullable = _without_none(f.type)
    array = typing.get_origin(kind) is tuple
    if array:
        kind, inner_nullable = _without_none(typing.get_args(kind)[0])
        assert not inner_nullable or kafka_type == "uuid"
    struct = kind if dataclasses.is_dataclass(kind) else None
    return KioField(f.name, kafka_type, struct, array, nullable, f.metadata.get("tag"), f.default)


def _without_none(kind: Any) -> tuple[Any, bool]:
    if typing.get_origin(kind) not in (types.UnionType, typing.Union):
        return kind, False
    rest = [part for part in typing.get_args(kind) if part is not types.NoneType]
    return rest[0], True


@cache
def our_fields(message: type, version: int) -> tuple[tuple[str, Spec, Any], ...]:
    """Our fields of that version, with their defaults."""
    return tuple(each for each in specs(message) if each[1].since <= version <= each[1].until)


def number_on_the_wire(value: Any) -> Any:
    """A value of kio's as it is on the wire, which is how we keep it."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return value // MILLISECOND
    if isinstance(value, datetime.datetime):
        return round((value - EPOCH) / MILLISECOND)  # kio goes through a float, which can be a microsecond off
    return value


def plain(value: Any, kind: KioField | None = None) -> Any:
    """A message of kio's as nested lists of values in field order."""
    if dataclasses.is_dataclass(value):
        fields = kio_fields(type(value))
        return [plain(getattr(value, f.name), f) for f in fields]
    if isinstance(value, tuple):
        return [plain(item, kind) for item in value]
    if value is None and kind and kind.kafka_type == "uuid":
        return uuid.UUID(int=0)
    if value is None and kind and kind.kafka_type == "datetime_i64":
        return -1
    return number_on_the_wire(value)


def our_plain(value: Any, version: int) -> Any:
    """A message of ours as nested lists of the values that the version has."""
    if dataclasses.is_dataclass(value):
        return [our_plain(getattr(value, name), version) for name, _, _ in our_fields(type(value), version)]
    if isinstance(value, list):
        return [our_plain(item, version) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


def to_kio(message: Any, kio_class: type, version: int) -> Any:
    """A message of ours as kio's class of that version."""
    values = {}
    for (name, _, _), theirs in zip(our_fields(type(message), version), kio_fields(kio_class), strict=True):
        values[theirs.name] = _to_kio_value(getattr(message, name), theirs, version)
    return kio_class(**values)


def _to_kio_value(value: Any, theirs: KioField, version: int) -> Any:
    if isinstance(value, list):
        return tuple(_to_kio_value(item, theirs, version) for item in value)
    if value is None:
        return None
    if theirs.struct is not None:
        return to_kio(value, theirs.struct, version)
    match theirs.kafka_type:
        case "error_code":
            from kio.schema.errors import ErrorCode

            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return value * MILLISECOND
        case "datetime_i64":
            return None if value == -1 else EPOCH + value * MILLISECOND
        case "uuid":
            return None if value.int == 0 else value
    return value


def kio_bytes(message: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


def kio_read(kio_class: type, data: bytes) -> tuple[Any, int]:
    """What kio reads, and how many bytes of it."""
    return entity_reader(kio_class)(data, 0)
