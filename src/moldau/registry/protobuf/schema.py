"""`ProtobufDefinition`: a parsed Protobuf schema, as the registry handles schemas of any kind.

A text is a `.proto` file, or a `FileDescriptorProto` in base64, as some of Confluent's serializers send it. What is
stored is always a `.proto` text, without comments.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from moldau.client.registry.schemas import PROTOBUF
from moldau.registry.protobuf.changes import breaking_changes, sentence
from moldau.registry.protobuf.linking import LinkedFile, without_kept_options
from moldau.registry.protobuf.parsing import parse_proto
from moldau.registry.protobuf.printing import printed
from moldau.registry.refusals import invalid_schema

if TYPE_CHECKING:
    from moldau.registry.levels import ReadableSchema

_BASE64 = re.compile(r"\s*[A-Za-z0-9+/_-]+={0,2}\s*")


class ProtobufDefinition:
    """`references` are texts by the paths that they are imported by. Raises `Refused`."""

    kind = PROTOBUF

    def __init__(self, text: str, references: Mapping[str, str], is_new: bool):
        others = {path: _descriptor(other) for path, other in references.items()}
        for path, other in others.items():
            other.name = path
        for other in others.values():
            LinkedFile(other, others)
        self._linked = LinkedFile(_descriptor(text), others)
        if is_new:
            self._linked.check()
        self.text = printed(self._linked.file, self._linked.shortened)

    def normalized(self) -> str:
        return self.text

    def formatted(self, how: str) -> str:
        """`serialized` is the descriptor in base64."""
        if how != "serialized":
            return self.text
        return base64.b64encode(without_kept_options(self._linked.file).SerializeToString(deterministic=True)).decode()

    def unreadable(self, writer: "ReadableSchema", own: str, other: str) -> list[str]:
        assert isinstance(writer, ProtobufDefinition)
        return [sentence(one, own, other) for one in breaking_changes(writer._linked, self._linked)]


def _descriptor(text: str) -> Any:
    if not _BASE64.fullmatch(text):
        return parse_proto(text)
    try:
        data = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
    except (binascii.Error, DecodeError, ValueError):
        raise invalid_schema("it is neither a .proto text nor a FileDescriptorProto in base64") from None
    if file.syntax not in ("", "proto2", "proto3"):
        raise invalid_schema("editions are not supported; proto2 and proto3 are")
    file.ClearField("source_code_info")
    if file.syntax == "proto2":
        file.ClearField("syntax")
    return file
