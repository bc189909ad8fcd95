"""Schemas as a registry has them, as values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.errors import SchemaInvalid

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
TEXT_CHARACTERS_MAX = 1_000_000


@dataclass(frozen=True)
class Reference:
    """A schema that another one uses under `name`: a full Avro name, or what `$ref` says."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """The text of a schema, its type (`AVRO`, `JSON`, `PROTOBUF`) and what it refers to."""

    text: str
    kind: str = AVRO
    references: tuple[Reference, ...] = ()

    @property
    def tree(self) -> Any:
        """The schema's JSON. Raises `SchemaInvalid`."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise SchemaInvalid(f"the schema is not JSON: {error}") from None


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema, where it is registered: under its subject and version, and its id in the whole registry."""

    subject: str
    version: int
    id: int
    schema: Schema


GivenSchema = Schema | str | Mapping[str, Any] | Sequence[Any]
"""A `Schema`, its text, or its JSON as dicts and lists (Protobuf has none)."""


def as_schema(given: GivenSchema, kind: str) -> Schema:
    """The schema that a caller has given. Raises `SchemaInvalid` and `TypeError`."""
    if isinstance(given, Schema):
        if given.kind != kind:
            raise SchemaInvalid(f"the schema is of type {given.kind}, not {kind}")
        made = given
    elif isinstance(given, str):
        made = Schema(given, kind)
    elif isinstance(given, Mapping | list | tuple) and kind != PROTOBUF:
        made = Schema(json.dumps(given), kind)
    else:
        raise TypeError(f"a schema is text, a dict or a Schema, not {type(given).__name__}")
    if kind == AVRO and made.text.strip() and made.text.strip()[0] not in '{["':
        made = Schema(json.dumps(made.text.strip()), kind, made.references)
    if kind != PROTOBUF:
        _ = made.tree
    return made
