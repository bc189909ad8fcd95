"""Which decoder a topic gets: what `--decode`, `--schema`, `--schema-registry` and `--event-time` say, and for keys
`--decode-key` and `--key-schema`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, JSON, Schema, as_schema
from moldau.errors import ConfigError, SchemaNotFound
from moldau.pipeline.decoding import ddl, debezium, json_schema_columns
from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.decoding.json_inference import inferred
from moldau.pipeline.decoding.json_values import MORE, JsonValues
from moldau.pipeline.decoding.text_values import TextValues
from moldau.pipeline.decoding.topic_decoder import KEPT_NAMES, TopicDecoder, Values, table_names

KINDS = ("none", "text", "json", "avro")
DEBEZIUM = "debezium"


@dataclass(frozen=True)
class Decoding:
    """How values, or keys, are decoded. `schema` is the text of a JSON Schema, of Spark's DDL or of an Avro schema;
    with `envelope` values are Debezium's envelopes, whose rows become the columns, and keys may have its `payload`."""

    kind: str = "none"
    schema: str = ""
    registry: SchemaRegistry | None = None
    event_time: str = ""
    of: Literal["value", "key"] = "value"
    envelope: str = ""

    @property
    def option(self) -> str:
        return "--decode" if self.of == "value" else "--decode-key"

    @property
    def schema_option(self) -> str:
        return "--schema" if self.of == "value" else "--key-schema"

    @property
    def inferred(self) -> bool:
        """Whether columns come from the values themselves."""
        return self.kind == "json" and not self.schema and self.registry is None

    def check(self) -> None:
        """Raise `ConfigError` for options that do not go together."""
        if self.kind not in KINDS:
            raise ConfigError(f"{self.option} {self.kind!r} is none of {', '.join(KINDS)}")
        if self.kind in ("none", "text") and (self.schema or self.registry):
            raise ConfigError(f"{self.schema_option} and --schema-registry do not go with {self.option} {self.kind}")
        if self.kind == "none" and self.event_time:
            raise ConfigError("--event-time names a field of decoded values: it needs --decode json, avro or text")
        if self.envelope not in ("", DEBEZIUM):
            raise ConfigError(f"--envelope {self.envelope!r} is not {DEBEZIUM}")
        if self.envelope and self.of == "value" and self.kind not in ("json", "avro"):
            raise ConfigError(f"--envelope {self.envelope} needs --decode json or avro: an envelope has fields")
        if self.kind == "avro" and self.registry is None:
            raise ConfigError(
                f"{self.option} avro needs --schema-registry: {self.of}s begin with the id of their schema there"
            )


def decoder_of(
    topic: str, decoding: Decoding, sample: Callable[[], Iterable[bytes]], known: pa.Schema | None = None
) -> TopicDecoder | None:
    """The decoder of a topic's values, None for `none`. `sample` reads some of them, where columns are inferred from
    them; `known` are the columns of its table. Raises `ConfigError` and `RegistryError`."""
    values = values_of(topic, decoding, sample, known)
    return None if values is None else TopicDecoder(values, decoding.event_time, known)


def values_of(
    topic: str, decoding: Decoding, sample: Callable[[], Iterable[bytes]], known: pa.Schema | None = None
) -> Values | None:
    """As `decoder_of`: what decodes the values, or the keys, of a topic."""
    decoding.check()
    if decoding.kind == "none":
        return None
    if decoding.kind == "text":
        return TextValues()
    if decoding.kind == "avro":
        assert decoding.registry is not None
        schema = as_schema(decoding.schema, AVRO) if decoding.schema else _latest(decoding, topic, AVRO)
        avro = AvroValues(decoding.registry, schema, any_type=decoding.of == "key")
        return debezium.EnvelopeValues(avro) if decoding.envelope and decoding.of == "value" else avro
    framed = decoding.registry is not None
    if decoding.schema:
        return _json(decoding, _given(decoding.schema), framed)
    if decoding.registry is not None:
        columns = json_schema_columns.columns_of(_latest(decoding, topic, JSON).tree)
        is_envelope = decoding.envelope and decoding.of == "value"
        return _json(decoding, debezium.row_of(columns) if is_envelope else columns, True)
    return _inferred(topic, decoding, sample, known)


def _inferred(topic: str, decoding: Decoding, sample: Callable[[], Iterable[bytes]], known: pa.Schema | None) -> Values:
    """Decodes JSON without a schema."""
    some, what = list(sample()), "a JSON object"
    rows: Iterable[bytes] = some
    if decoding.envelope:
        rows = debezium.rows_in(some) if decoding.of == "value" else debezium.keys_in(some)
        known = known and pa.schema([field for field in known if field.name not in debezium.META.names])
        what = "an envelope of Debezium with a row" if decoding.of == "value" else what
    found = evolved(known, inferred(rows), decoding.event_time)
    if not found:
        raise ConfigError(f"the columns of {topic} cannot be inferred: none of its first {decoding.of}s is {what}")
    return _json(decoding, found, False, some)


def _json(decoding: Decoding, columns: pa.Schema, framed: bool, sample: Iterable[bytes] | None = None) -> Values:
    """Decodes JSON into these columns, which were inferred if there is a `sample`."""
    if not decoding.envelope:
        return JsonValues(columns, keeps_rest=sample is not None, framed=framed)
    if decoding.of == "key":
        return debezium.PayloadKeys(columns, framed, sample)
    return debezium.json_envelopes(columns, framed, sample)


def evolved(known: pa.Schema | None, found: pa.Schema, event_time: str) -> pa.Schema:
    """The fields for a table that has columns: those first, with their types, then what is new in the sample. Structs
    get new fields, too."""
    by_column = {table_names([field.name])[0]: field for field in found}
    fields = []
    for column in known or ():
        if column.name.lower() in KEPT_NAMES or column.name == MORE:
            continue
        field = by_column.pop(column.name, None)
        if field is None:
            fields += [] if pa.types.is_binary(column.type) else [column]
        else:
            fields.append(field if field.name == event_time else field.with_type(_grown(column.type, field.type)))
    return pa.schema([*fields, *by_column.values()])


def _grown(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    """The type of a table's column, with what is new inside of structs."""
    if pa.types.is_list(known) and pa.types.is_list(found):
        return pa.list_(_grown(known.value_type, found.value_type))
    if not (pa.types.is_struct(known) and pa.types.is_struct(found)):
        return known
    there = [
        (one.name, one.type if found.get_field_index(one.name) < 0 else _grown(one.type, found.field(one.name).type))
        for one in known
    ]
    return pa.struct([*there, *((one.name, one.type) for one in found if known.get_field_index(one.name) < 0)])


def _given(text: str) -> pa.Schema:
    if text.lstrip().startswith("{"):
        return json_schema_columns.columns_of(Schema(text, JSON).tree)
    return ddl.columns_of(text)


def _latest(decoding: Decoding, topic: str, kind: str) -> Schema:
    assert decoding.registry is not None
    subject = f"{topic}-{decoding.of}"
    try:
        return as_schema(decoding.registry.version(subject).schema, kind)
    except SchemaNotFound as error:
        raise ConfigError(
            f"the schema registry has no subject {subject}, whose latest version says the columns of {topic}: give"
            f" {decoding.schema_option} ({error})"
        ) from None
