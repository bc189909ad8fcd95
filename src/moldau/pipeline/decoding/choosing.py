"""Which decoder a topic gets: what `--decode`, `--schema`, `--schema-registry` and `--event-time` say, and for keys
`--decode-key` and `--key-schema`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import pyarrow as pa

from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, JSON, PROTOBUF, Schema, as_schema
from moldau.errors import ConfigError, SchemaNotFound
from moldau.names import counted
from moldau.pipeline.decoding import ddl, debezium, json_schema_columns
from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.json_inference import TYPE_SHARE, Inferred, inferred
from moldau.pipeline.decoding.json_values import JsonValues
from moldau.pipeline.decoding.text_values import TextValues
from moldau.pipeline.decoding.topic_decoder import TopicDecoder, Values

KINDS = ("none", "text", "json", "avro", "protobuf")
FRAMED = ("avro", "protobuf")
"""Kinds whose values always begin with the id of their schema."""
DEBEZIUM = "debezium"


@dataclass(frozen=True)
class Decoding:
    """How values, or keys, are decoded. `schema` is the text of a JSON Schema, of Spark's DDL, of an Avro schema or of
    a `.proto` file, whose first message is decoded unless `message` names another; with `envelope` values are
    Debezium's envelopes, whose rows become the columns, and keys may have its `payload`.
    Where columns are inferred, a type needs this share of a field's sampled values, `type_share`."""

    kind: str = "none"
    schema: str = ""
    registry: SchemaRegistry | None = None
    event_time: str = ""
    type_share: float = TYPE_SHARE
    of: Literal["value", "key"] = "value"
    envelope: str = ""
    message: str = ""

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
            raise ConfigError(
                "--event-time names a field of decoded values: it needs --decode json, avro, protobuf or text"
            )
        if self.envelope not in ("", DEBEZIUM):
            raise ConfigError(f"--envelope {self.envelope!r} is not {DEBEZIUM}")
        if self.envelope and self.of == "value" and self.kind not in ("json", "avro"):
            raise ConfigError(f"--envelope {self.envelope} needs --decode json or avro: an envelope has fields")
        if self.kind in FRAMED and self.registry is None:
            raise ConfigError(
                f"{self.option} {self.kind} needs --schema-registry: {self.of}s begin with the id of their schema there"
            )
        if not 0.5 < self.type_share <= 1:
            raise ConfigError(f"--type-share {self.type_share} is not above 0.5 and at most 1")
        if self.type_share != TYPE_SHARE and not self.inferred:
            raise ConfigError("--type-share is for columns that are inferred: --decode json without a schema")


def decoder_of(
    topic: str, decoding: Decoding, sample: Callable[[], Iterable[Sampled]], known: pa.Schema | None = None
) -> TopicDecoder | None:
    """The decoder of a topic's values, None for `none`. `sample` reads some of them, where columns are inferred from
    them; `known` are the columns of its table. Raises `ConfigError` and `RegistryError`."""
    chosen = values_of(topic, decoding, sample, known)
    return None if chosen is None else TopicDecoder(chosen.values, decoding.event_time, known, chosen.notes)


class DecoderChoice(NamedTuple):
    """What decodes values or keys, and sentences about how its columns were chosen."""

    values: Values
    notes: tuple[str, ...] = ()


def values_of(
    topic: str, decoding: Decoding, sample: Callable[[], Iterable[Sampled]], known: pa.Schema | None = None
) -> DecoderChoice | None:
    """As `decoder_of`: what decodes the values, or the keys, of a topic."""
    decoding.check()
    if decoding.kind == "none":
        return None
    if decoding.kind == "text":
        return DecoderChoice(TextValues())
    if decoding.kind == "avro":
        assert decoding.registry is not None
        schema = as_schema(decoding.schema, AVRO) if decoding.schema else _latest(decoding, topic, AVRO)
        avro = AvroValues(decoding.registry, schema, any_type=decoding.of == "key")
        return DecoderChoice(debezium.EnvelopeValues(avro) if decoding.envelope and decoding.of == "value" else avro)
    if decoding.kind == "protobuf":
        from moldau.pipeline.decoding.protobuf.values import ProtobufValues

        assert decoding.registry is not None
        schema = as_schema(decoding.schema, PROTOBUF) if decoding.schema else _latest(decoding, topic, PROTOBUF)
        return DecoderChoice(ProtobufValues(decoding.registry, schema, decoding.message))
    framed = decoding.registry is not None
    if decoding.schema:
        return DecoderChoice(_json(decoding, _given(decoding.schema), framed))
    if decoding.registry is not None:
        columns = json_schema_columns.columns_of(_latest(decoding, topic, JSON).tree)
        is_envelope = decoding.envelope and decoding.of == "value"
        return DecoderChoice(_json(decoding, debezium.row_of(columns) if is_envelope else columns, True))
    return _inferred(topic, decoding, sample, known)


def _inferred(
    topic: str, decoding: Decoding, sample: Callable[[], Iterable[Sampled]], known: pa.Schema | None
) -> DecoderChoice:
    """Decodes JSON without a schema."""
    some, what = list(sample()), "JSON object"
    rows: Iterable[Sampled] = some
    if decoding.envelope:
        rows = debezium.rows_in(some) if decoding.of == "value" else debezium.keys_in(some)
        known = known and pa.schema([field for field in known if field.name not in debezium.META.names])
        what = "envelope of Debezium with a row" if decoding.of == "value" else what
    inference = inferred(rows, known, decoding.event_time, decoding.type_share)
    if not inference.columns:
        raise ConfigError(f"the columns of {topic} cannot be inferred: {_why(inference, decoding, what)}")
    kind = topic if decoding.of == "value" else f"{topic}, keys"
    notes = tuple(f"{kind}: {sentence}" for sentence in inference.notes)
    columns = inference.columns
    if decoding.envelope:  # fields of a row with these names stay in `_more`
        columns = pa.schema([field for field in columns if field.name not in debezium.META.names])
    return DecoderChoice(_json(decoding, columns, False, some), notes)


def _json(decoding: Decoding, columns: pa.Schema, framed: bool, sample: Iterable[Sampled] | None = None) -> Values:
    """Decodes JSON into these columns, which were inferred if there is a `sample`."""
    if not decoding.envelope:
        return JsonValues(columns, keeps_rest=sample is not None, framed=framed)
    if decoding.of == "key":
        return debezium.PayloadKeys(columns, framed, sample)
    return debezium.json_envelopes(columns, framed, sample)


def _why(inference: Inferred, decoding: Decoding, what: str) -> str:
    """Why a sample has no columns."""
    if not inference.objects:
        return f"none of its first {decoding.of}s is {'an' if what[0] == 'e' else 'a'} {what}"
    if decoding.event_time and not inference.passing:
        return f"none of its first {counted(inference.objects, what)} has a time in the field {decoding.event_time}"
    return f"its first {what}s have no field with a value"


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
