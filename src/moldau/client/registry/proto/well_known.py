"""Files that every Protobuf schema may import without a reference."""

import importlib
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2

_OF_GOOGLE = (
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type",
    "wrappers",
)  # fmt: skip
_TYPES = "google/type/"
_OF_TYPES = (
    "calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval", "latlng",
    "localized_text", "money", "month", "phone_number", "postal_address", "quaternion", "timeofday",
)  # fmt: skip
_OF_CONFLUENT = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;'
    " message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
}
"""Confluent's serializers import them: options that are kept as they are written, and decimal numbers."""


@cache
def well_known(path: str) -> Any:
    """The descriptor of a file of Google or Confluent; None for any other."""
    from moldau.client.registry.proto.parsing import parse_proto

    name = path.removeprefix("google/protobuf/").removesuffix(".proto")
    if path == f"google/protobuf/{name}.proto" and name in _OF_GOOGLE:
        module = importlib.import_module(f"google.protobuf.{name}_pb2")
        return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    name = path.removeprefix(_TYPES).removesuffix(".proto")
    if path == f"{_TYPES}{name}.proto" and name in _OF_TYPES:
        module = importlib.import_module(f"google.type.{name}_pb2")
        return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    if path in _OF_CONFLUENT:
        file = parse_proto(_OF_CONFLUENT[path])
        file.name = path
        return file
    return None


def is_known_to_all(path: str) -> bool:
    """Whether every registry knows the file. Some know Google's common types (`google/type`) only by reference."""
    return not path.startswith(_TYPES) and well_known(path) is not None
