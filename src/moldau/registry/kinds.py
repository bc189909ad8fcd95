"""Schemas of any kind from their texts: one table of kinds, and a bounded memory of what was parsed."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Protocol

from moldau.client.registry.schemas import AVRO, JSON, PROTOBUF, Schema
from moldau.names import how_to_install
from moldau.registry.levels import ReadableSchema
from moldau.registry.refusals import invalid_schema

PARSED_MAX, PARSED_CHARACTERS_MAX = 256, 4_000_000
"""Schemas that are remembered, and what their texts may have together: a parsed one takes some thirty times as much."""


class Definition(ReadableSchema, Protocol):
    """A parsed schema; `text` is the one way to write it, as it is stored."""

    def normalized(self) -> str: ...

    def formatted(self, how: str) -> str: ...


Make = Callable[[str, Mapping[str, str], bool], Definition]
"""From a text, the texts that it refers to by name, and whether it is new. Raises `Refused`."""


def _avro(text: str, references: Mapping[str, str], is_new: bool) -> Definition:
    from moldau.registry.avro.schema import AvroDefinition

    return AvroDefinition(text, references, is_new)


def _json(text: str, references: Mapping[str, str], is_new: bool) -> Definition:
    from moldau.registry.json_schema.schema import JsonDefinition

    return JsonDefinition(text, references, is_new)


def _protobuf(text: str, references: Mapping[str, str], is_new: bool) -> Definition:
    try:
        from moldau.registry.protobuf.schema import ProtobufDefinition
    except ImportError:
        raise invalid_schema(f"Protobuf schemas need protobuf: {how_to_install('registry')}") from None
    return ProtobufDefinition(text, references, is_new)


KINDS: dict[str, Make] = {AVRO: _avro, JSON: _json, PROTOBUF: _protobuf}
"""Each imports what it needs when it is first used."""


class Definitions:
    """Parses schemas, and remembers those that were asked for last."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[tuple[Schema, tuple[tuple[str, str], ...]], Definition] = OrderedDict()
        self._characters = 0

    def parse(self, schema: Schema, references: Mapping[str, str], is_new: bool = False) -> Definition:
        """The schema, with the texts that it refers to. Raises `Refused`."""
        key = schema, tuple(references.items())
        known = self._parsed.get(key)
        if known is None or is_new:
            make = KINDS.get(schema.kind)
            if make is None:
                raise invalid_schema(f"schemaType {schema.kind[:40]!r} is not {', '.join(KINDS)}")
            try:
                known = make(schema.text, references, is_new)
            except RecursionError:
                raise invalid_schema("it nests too deeply") from None
            self._characters += 0 if key in self._parsed else _characters(*key)
            self._parsed[key] = known
        self._parsed.move_to_end(key)
        while len(self._parsed) > PARSED_MAX or (self._characters > PARSED_CHARACTERS_MAX and len(self._parsed) > 1):
            self._characters -= _characters(*self._parsed.popitem(last=False)[0])
        return known


def _characters(schema: Schema, references: tuple[tuple[str, str], ...]) -> int:
    return len(schema.text) + sum(len(text) for _, text in references)
