"""`moldau.serializers`: what turns keys and values into the bytes of a record, and back."""

from moldau.client.producing.serializers import from_json, from_text, to_bytes, to_json, to_text
from moldau.client.registry.avro import AvroDeserializer, AvroSerializer
from moldau.client.registry.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
from moldau.client.registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import Reference, RegisteredSchema, Schema
from moldau.errors import (
    DoesNotFit,
    NotFramed,
    RegistryError,
    RegistryUnauthorized,
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaInvalid,
    SchemaNotFound,
)

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "DoesNotFit",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "NotFramed",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "Reference",
    "RegisteredSchema",
    "RegistryError",
    "RegistryUnauthorized",
    "RegistryUnavailable",
    "Schema",
    "SchemaIncompatible",
    "SchemaInvalid",
    "SchemaNotFound",
    "SchemaRegistry",
    "from_json",
    "from_text",
    "to_bytes",
    "to_json",
    "to_text",
]
