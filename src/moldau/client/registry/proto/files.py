"""The files that a Protobuf schema is made of, from its text and the texts that it imports.

A text is a `.proto` file, or a `FileDescriptorProto` in base64, as some of Confluent's serializers send it.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from moldau.client.registry.proto.linking import LinkedFile
from moldau.client.registry.proto.parsing import parse_proto
from moldau.client.registry.proto.printing import printed
from moldau.errors import SchemaInvalid

_BASE64 = re.compile(r"\s*[A-Za-z0-9+/_-]+={0,2}\s*")


def linked_file(text: str, references: Mapping[str, str]) -> LinkedFile:
    """The schema; `references` are texts by the paths that they are imported by. Raises `SchemaInvalid`."""
    others = {path: descriptor_of(other) for path, other in references.items()}
    for path, other in others.items():
        other.name = path
    for other in others.values():
        LinkedFile(other, others)
    return LinkedFile(descriptor_of(text), others)


def descriptor_of(text: str) -> Any:
    """The `FileDescriptorProto` of a text. Raises `SchemaInvalid`."""
    if not _BASE64.fullmatch(text):
        return parse_proto(text)
    try:
        data = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
    except (binascii.Error, DecodeError, ValueError):
        raise SchemaInvalid("it is neither a .proto text nor a FileDescriptorProto in base64") from None
    if file.syntax not in ("", "proto2", "proto3"):
        raise SchemaInvalid("editions are not supported; proto2 and proto3 are")
    file.ClearField("source_code_info")
    if file.syntax == "proto2":
        file.ClearField("syntax")
    return file


def text_of(file: Any) -> str:
    """The `.proto` text of the file of a generated class (its `DESCRIPTOR.file`). Raises `SchemaInvalid`."""
    linked = LinkedFile(_copied(file), {path: _copied(other) for path, other in _imported(file, {}).items()})
    return printed(linked.file, linked.shortened)


def _copied(file: Any) -> Any:
    copy = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(copy)
    if copy.syntax not in ("", "proto2", "proto3"):
        raise SchemaInvalid(f"{file.name} uses editions; proto2 and proto3 are supported")
    return copy


def _imported(file: Any, found: dict[str, Any]) -> dict[str, Any]:
    for other in file.dependencies:
        if other.name not in found:
            found[other.name] = other
            _imported(other, found)
    return found
