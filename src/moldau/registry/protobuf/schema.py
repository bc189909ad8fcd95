"""`ProtobufDefinition`: a parsed Protobuf schema, as the registry handles schemas of any kind.

What is stored is always a `.proto` text, without comments.
"""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.client.registry.proto.files import linked_file
from moldau.client.registry.proto.linking import without_kept_options
from moldau.client.registry.proto.printing import printed
from moldau.client.registry.schemas import PROTOBUF
from moldau.errors import SchemaInvalid
from moldau.registry.protobuf.changes import breaking_changes, sentence
from moldau.registry.refusals import invalid_schema

if TYPE_CHECKING:
    from moldau.registry.levels import ReadableSchema


class ProtobufDefinition:
    """`references` are texts by the paths that they are imported by. Raises `Refused`."""

    kind = PROTOBUF

    def __init__(self, text: str, references: Mapping[str, str], is_new: bool):
        try:
            self._linked = linked_file(text, references)
            if is_new:
                self._linked.check()
        except SchemaInvalid as wrong:
            raise invalid_schema(str(wrong)) from None
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
