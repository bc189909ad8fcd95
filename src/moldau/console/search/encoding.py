"""`RegistryEncoder`: JSON that a user has typed, as a serializer of a schema registry writes it.

It reads schemas and registers none. A schema is named by its subject, whose latest version is taken, or by `#` and its
id. Behind the id of a Protobuf schema may be the full name of one of its messages; otherwise it is the first one.
"""

import io
import json
from typing import Any

from moldau.client.registry.avro import parsed_avro
from moldau.client.registry.avro_schema import need_fastavro
from moldau.client.registry.framing import framed
from moldau.client.registry.json_schema import checker, need_jsonschema
from moldau.client.registry.protobuf import message_types, need_protobuf
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, JSON, PROTOBUF, Schema
from moldau.console.search.avro_values import JsonToAvro
from moldau.errors import ConfigError, DoesNotFit

BY_ID = "#"
ID_MAX = 2**31 - 1


class RegistryEncoder:
    """Blocks for requests to the registry. Any thread may use it."""

    def __init__(self, registry: SchemaRegistry):
        self._registry = registry

    def __call__(self, named: str, text: str) -> bytes:
        """The bytes of a value, with the id of its schema. Raises `ConfigError`, `DoesNotFit`, `RegistryError`."""
        schema_id, schema, message = self._schema(named.strip())
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError) as wrong:
            raise DoesNotFit(f"what a schema encodes is typed as JSON, and this is not JSON: {wrong}") from None
        if schema.kind == PROTOBUF:
            return framed(schema_id, self._as_protobuf(schema, message, tree))
        encode = {AVRO: self._as_avro, JSON: self._as_json}.get(schema.kind)
        if encode is None:
            raise ConfigError(f"the schema is of type {schema.kind}, which the console cannot encode")
        return framed(schema_id, encode(schema, tree))

    def _schema(self, named: str) -> tuple[int, Schema, str]:
        """The id and the schema, and the name of a message, "" for the first one."""
        if not named.startswith(BY_ID):
            latest = self._registry.version(named)
            return latest.id, latest.schema, ""
        digits, _, message = named.removeprefix(BY_ID).strip().partition(" ")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and int(digits) <= ID_MAX):
            raise ConfigError(f"{named[:40]!r} is not the id of a schema, such as #7")
        return int(digits), self._registry.schema(int(digits)), message.strip()

    def _as_avro(self, schema: Schema, tree: Any) -> bytes:
        need_fastavro("a value of an Avro schema")
        from fastavro import schemaless_writer

        parsed = parsed_avro(self._registry, schema)
        value = JsonToAvro(parsed.tree).of(tree)
        if parsed.plain_bytes:
            return bytes(value)
        out = io.BytesIO()
        try:
            schemaless_writer(out, parsed.codec, value)
        except Exception as error:  # fastavro raises whatever its Python does
            why = " ".join(str(error).split())[:300] or type(error).__name__
            raise DoesNotFit(f"the value does not fit {parsed.full_name or 'the Avro schema'}: {why}") from None
        return out.getvalue()

    def _as_json(self, schema: Schema, tree: Any) -> bytes:
        need_jsonschema("a value of a JSON Schema")
        checker(self._registry, schema)(tree)
        try:
            text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except ValueError:
            raise DoesNotFit("JSON has no NaN and no infinity") from None
        return text.encode("utf-8", "replace")

    def _as_protobuf(self, schema: Schema, message: str, tree: Any) -> bytes:
        need_protobuf("a value of a Protobuf schema")
        from google.protobuf.json_format import ParseDict, ParseError

        from moldau.client.registry.proto.messages import FIRST, packed_indexes

        types = message_types(self._registry, schema)
        name = message or types.name_at(FIRST)
        head = packed_indexes(types.indexes_of(name))
        try:
            made = ParseDict(tree, types.class_of(name)())
        except (ParseError, TypeError, ValueError, AttributeError, RecursionError) as error:
            why = " ".join(str(error).split())[:300]
            raise DoesNotFit(f"the value does not fit {name}: {why or type(error).__name__}") from None
        return head + bytes(made.SerializeToString())
