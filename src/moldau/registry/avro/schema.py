"""`AvroDefinition`: a parsed Avro schema, as the registry handles schemas of any kind."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.client.registry.schemas import AVRO
from moldau.registry.avro.nodes import AvroNode, read_avro
from moldau.registry.avro.resolution import reading_problems
from moldau.registry.avro.texts import canonical_text, normalized_text

if TYPE_CHECKING:
    from moldau.registry.levels import ReadableSchema


class AvroDefinition:
    """`references` are the texts that it refers to, each after those that it needs itself. Raises `Refused`."""

    kind = AVRO

    def __init__(self, text: str, references: Mapping[str, str], is_new: bool):
        known: dict[str, AvroNode] = {}
        for other in references.values():
            read_avro(other, known, is_new=False)
        self._referenced = set(known)
        self._node = read_avro(text, known, is_new)
        self.text = canonical_text(self._node, self._referenced)

    def normalized(self) -> str:
        return normalized_text(self._node, self._referenced)

    def formatted(self, how: str) -> str:
        """`resolved` has what is referred to in its place; any other format is the text as it is stored."""
        return canonical_text(self._node, set()) if how == "resolved" else self.text

    def unreadable(self, writer: "ReadableSchema", own: str, other: str) -> list[str]:
        assert isinstance(writer, AvroDefinition)
        return reading_problems(self._node, writer._node, own, other)
