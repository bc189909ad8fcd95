"""Reads what any serializer of a schema registry has written, by the kind of the schema that each value names."""

from collections.abc import Callable
from typing import Any

from moldau.client.registry.avro import AvroDeserializer
from moldau.client.registry.framing import Decoded, schema_id_of
from moldau.client.registry.json_schema import JsonSchemaDeserializer
from moldau.client.registry.protobuf import ProtobufDeserializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, JSON, PROTOBUF
from moldau.errors import DoesNotFit, NotFramed, SchemaNotFound

UNKNOWN_IDS_MAX = 10_000
"""Ids without a schema that are not asked for again."""


def _fields_of(message: Any) -> dict[str, Any]:
    from google.protobuf import json_format

    try:
        fields: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (json_format.Error, TypeError, ValueError, RecursionError) as error:
        raise DoesNotFit(f"the message cannot be JSON: {error}") from error
    return fields


_KINDS: dict[str, Callable[[SchemaRegistry], Callable[[bytes], Any]]] = {
    AVRO: AvroDeserializer,
    JSON: JsonSchemaDeserializer,
    PROTOBUF: lambda registry: ProtobufDeserializer(registry, from_message=_fields_of),
}


class AnyKindDeserializer:
    """For `value_deserializer` and `key_deserializer`: a `Decoded` (of a Protobuf message a dict of its fields), or the
    bytes themselves where they are no value of a registry's serializer. `failed` is called with the reason for bytes
    that do not fit the schema which they name, or name none: a number of Java's serializers may begin with the byte 0,
    too. Raises `RegistryError`; blocks for a request to the registry at each new schema id."""

    def __init__(self, registry: SchemaRegistry, failed: Callable[[str], None]):
        self._registry = registry
        self._failed = failed
        self._by_kind: dict[str, Callable[[bytes], Any]] = {}
        self._unknown_ids: set[int] = set()

    def __call__(self, data: bytes | None) -> Decoded | bytes | None:
        if data is None:
            return None
        try:
            schema_id = schema_id_of(data)
        except NotFramed:
            return data
        if schema_id in self._unknown_ids:
            return data
        try:
            return Decoded(self._reader(self._registry.schema(schema_id).kind)(data), schema_id)
        except SchemaNotFound as error:
            if len(self._unknown_ids) < UNKNOWN_IDS_MAX:
                self._unknown_ids.add(schema_id)
            self._failed(str(error))
            return data
        except DoesNotFit as error:
            self._failed(str(error))
            return data

    def _reader(self, kind: str) -> Callable[[bytes], Any]:
        reader = self._by_kind.get(kind)
        if reader is None:
            if kind not in _KINDS:
                raise DoesNotFit(f"values of {kind} schemas are not decoded here")
            reader = self._by_kind[kind] = _KINDS[kind](self._registry)
        return reader
