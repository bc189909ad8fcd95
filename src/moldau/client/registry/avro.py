"""Avro keys and values, as confluent-kafka's and Java's serializers write them; the codec is fastavro."""

import io
import re
from collections.abc import Callable
from typing import Any

from moldau.client.registry.avro_schema import ParsedSchema, check, need_fastavro, parse
from moldau.client.registry.framing import FRAME_BYTES, schema_id_of
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, GivenSchema, Schema, as_schema
from moldau.client.registry.serializing import Encode, RegistrySerializer
from moldau.errors import DoesNotFit

_NO_TYPE = re.compile(r" \(type <class '([^']+)'>\) do not match \[.*\]")


class AvroSerializer(RegistrySerializer):
    """Makes Avro of dicts, numbers and text, for `value_serializer` and `key_serializer`; None stays None.

        Producer("localhost:9092", value_serializer=AvroSerializer(SchemaRegistry("http://localhost:8081"), schema))

    `to_dict` is called with each value first. Settings have Confluent's names and defaults, as arguments or in the
    mapping `settings`: `auto.register.schemas` (true), `use.latest.version` (false; the latest version at the first
    record), `normalize.schemas` (false), `subject.name.strategy` (`topic`, `record`, `topic-record`, or a function).
    Raises `SchemaInvalid`, and `ConfigError` without fastavro.
    """

    KIND = AVRO

    def _check_installed(self) -> None:
        need_fastavro("AvroSerializer")

    def _record_name(self, schema: Schema) -> str | None:
        return parsed_avro(self._registry, schema).full_name

    def _encoder(self, schema: Schema) -> Encode:
        from fastavro import schemaless_writer

        parsed = parsed_avro(self._registry, schema)
        codec, what = parsed.codec, parsed.full_name or "the Avro schema"

        def encode(value: Any) -> bytes:
            if parsed.plain_bytes:
                if not isinstance(value, bytes):
                    raise DoesNotFit(f"{type(value).__name__} is not bytes, which the Avro schema says")
                return value
            out = io.BytesIO()
            try:
                schemaless_writer(out, codec, value)
            except Exception as error:
                raise DoesNotFit(f"the value does not fit {what}: {_why(error)}") from error
            return out.getvalue()

        return encode


class AvroDeserializer:
    """Reads Avro that a registry's serializer has written, for `value_deserializer` and `key_deserializer`.

    Each record is read with the schema that it was written with, and resolved to `schema`, if that is given: fields
    are renamed, left out and filled with defaults, as Avro says. `from_dict` is called with each value at the end.
    Raises `NotFramed`, `DoesNotFit` and `RegistryError`; blocks for a request to the registry at each new schema id.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: GivenSchema | None = None,
        *,
        from_dict: Callable[[Any], Any] | None = None,
    ):
        need_fastavro("AvroDeserializer")
        self._registry = registry
        self._reader = None if schema is None else parsed_avro(registry, as_schema(schema, AVRO))
        self._from_dict = from_dict
        self._writers: dict[int, ParsedSchema] = {}

    def __call__(self, data: bytes | None) -> Any:
        """The value in these bytes."""
        if data is None:
            return None
        schema_id = schema_id_of(data)
        writer = self._writers.get(schema_id)
        if writer is None:
            schema = as_schema(self._registry.schema(schema_id), AVRO)
            writer = self._writers[schema_id] = parsed_avro(self._registry, schema)
        value = decoded(writer, self._reader, data, schema_id)
        return value if self._from_dict is None else self._from_dict(value)


def parsed_avro(registry: SchemaRegistry, schema: Schema, changed: Callable[[Any], Any] | None = None) -> ParsedSchema:
    """The schema with its references, as `parse` makes it. Raises `SchemaInvalid` and `RegistryError`."""
    others = {name: other.tree for name, other in registry.referenced(schema).items()}
    return parse(schema.tree, others, changed)


def decoded(writer: ParsedSchema, reader: ParsedSchema | None, data: bytes, schema_id: int) -> Any:
    """The value behind the frame. Raises `DoesNotFit`, also for bytes behind the value."""
    from fastavro import schemaless_reader

    if writer.plain_bytes:
        return data[FRAME_BYTES:]
    check(writer, data, FRAME_BYTES)
    source = io.BytesIO(data)
    source.seek(FRAME_BYTES)
    try:
        value = schemaless_reader(source, writer.codec, None if reader is None else reader.codec)
    except Exception as error:
        raise DoesNotFit(f"the bytes do not fit schema id {schema_id}: {_why(error)}") from error
    if source.tell() != len(data):
        behind = len(data) - source.tell()
        raise DoesNotFit(f"the bytes do not fit schema id {schema_id}: {behind} bytes are behind the value")
    return value


def _why(error: Exception) -> str:
    if isinstance(error, EOFError | IndexError):
        return "they end too early"
    # fastavro shows all types of a union, with notes of its own.
    said = _NO_TYPE.sub(r" (\1) fits no type of the union", " ".join(str(error).split()))
    return said[:300] or type(error).__name__
