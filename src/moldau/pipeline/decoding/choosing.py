"""Which decoder a topic gets: what `--decode`, `--schema`, `--schema-registry` and `--event-time` say."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, JSON, Schema, as_schema
from moldau.errors import ConfigError, SchemaNotFound
from moldau.names import counted
from moldau.pipeline.decoding import ddl, json_schema_columns
from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.json_inference import TYPE_SHARE, Inferred, inferred
from moldau.pipeline.decoding.json_values import JsonValues
from moldau.pipeline.decoding.text_values import TextValues
from moldau.pipeline.decoding.topic_decoder import TopicDecoder

KINDS = ("none", "text", "json", "avro")


@dataclass(frozen=True)
class Decoding:
    """How values are decoded. `schema` is the text of a JSON Schema, of Spark's DDL or of an Avro schema. Where columns
    are inferred, a type needs this share of a field's sampled values, `type_share`."""

    kind: str = "none"
    schema: str = ""
    registry: SchemaRegistry | None = None
    event_time: str = ""
    type_share: float = TYPE_SHARE

    @property
    def inferred(self) -> bool:
        """Whether columns come from the values themselves."""
        return self.kind == "json" and not self.schema and self.registry is None

    def check(self) -> None:
        """Raise `ConfigError` for options that do not go together."""
        if self.kind not in KINDS:
            raise ConfigError(f"--decode {self.kind!r} is none of {', '.join(KINDS)}")
        if self.kind in ("none", "text") and (self.schema or self.registry):
            raise ConfigError(f"--schema and --schema-registry do not go with --decode {self.kind}")
        if self.kind == "none" and self.event_time:
            raise ConfigError("--event-time names a field of decoded values: it needs --decode json, avro or text")
        if self.kind == "avro" and self.registry is None:
            raise ConfigError("--decode avro needs --schema-registry: values begin with the id of their schema there")
        if not 0.5 < self.type_share <= 1:
            raise ConfigError(f"--type-share {self.type_share} is not above 0.5 and at most 1")
        if self.type_share != TYPE_SHARE and not self.inferred:
            raise ConfigError("--type-share is for columns that are inferred: --decode json without a schema")


def decoder_of(
    topic: str, decoding: Decoding, sample: Callable[[], Iterable[Sampled]], known: pa.Schema | None = None
) -> TopicDecoder | None:
    """The decoder of a topic, None for `none`. `sample` reads some of its values, where columns are inferred from them;
    `known` are the columns of its table. Raises `ConfigError` and `RegistryError`."""
    decoding.check()
    if decoding.kind == "none":
        return None
    if decoding.kind == "text":
        return TopicDecoder(TextValues(), decoding.event_time, known)
    if decoding.kind == "avro":
        assert decoding.registry is not None
        schema = as_schema(decoding.schema, AVRO) if decoding.schema else _latest(decoding.registry, topic, AVRO)
        return TopicDecoder(AvroValues(decoding.registry, schema), decoding.event_time, known)
    framed = decoding.registry is not None
    if decoding.schema:
        values: JsonValues = JsonValues(_given(decoding.schema), framed=framed)
    elif decoding.registry is not None:
        tree = _latest(decoding.registry, topic, JSON).tree
        values = JsonValues(json_schema_columns.columns_of(tree), framed=True)
    else:
        found = inferred(sample(), known, decoding.event_time, decoding.type_share)
        if not found.columns:
            raise ConfigError(f"the columns of {topic} cannot be inferred: {_why(found, decoding.event_time)}")
        notes = tuple(f"{topic}: {sentence}" for sentence in found.notes)
        return TopicDecoder(JsonValues(found.columns, keeps_rest=True), decoding.event_time, known, notes)
    return TopicDecoder(values, decoding.event_time, known)


def _why(found: Inferred, event_time: str) -> str:
    """Why a sample has no columns."""
    if not found.objects:
        return "none of its first values is a JSON object"
    if event_time and not found.passing:
        return f"none of its first {counted(found.objects, 'JSON object')} has a time in the field {event_time}"
    return "its first JSON objects have no field with a value"


def _given(text: str) -> pa.Schema:
    if text.lstrip().startswith("{"):
        return json_schema_columns.columns_of(Schema(text, JSON).tree)
    return ddl.columns_of(text)


def _latest(registry: SchemaRegistry, topic: str, kind: str) -> Schema:
    subject = f"{topic}-value"
    try:
        return as_schema(registry.version(subject).schema, kind)
    except SchemaNotFound as error:
        raise ConfigError(
            f"the schema registry has no subject {subject}, whose latest version says the columns of {topic}: give"
            f" --schema ({error})"
        ) from None
