"""Protobuf records as columns: each value is read as the reader's message, after its writer's schema was compared.

A schema id that the registry does not know, a message of another name, or a schema that cannot be read without loss
rejects its records; a registry that does not answer fails the load.
"""

from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from moldau.client.registry.framing import FRAME_BYTES, schema_id_of
from moldau.client.registry.proto.messages import FIRST, Indexes, MessageTypes, indexes_in
from moldau.client.registry.protobuf import message_types
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import PROTOBUF, Schema, as_schema
from moldau.errors import ConfigError, DoesNotFit, NotFramed, SchemaInvalid, SchemaNotFound
from moldau.pipeline.decoding.avro_values import REFUSED_IDS_MAX, UNFIT
from moldau.pipeline.decoding.protobuf.closed_enums import has_closed, unnamed
from moldau.pipeline.decoding.protobuf.columns import UnfitMessage, columns_of
from moldau.pipeline.decoding.protobuf.resolving import difference
from moldau.pipeline.decoding.rejections import NOT_FRAMED, UNKNOWN_SCHEMA, WRONG_PROTOBUF, Rejection
from moldau.pipeline.decoding.topic_decoder import DecodedValues


class ProtobufValues:
    """Decodes framed Protobuf into the columns of the message of this full name in the reader's schema, by default its
    first one. Raises `ConfigError` and `RegistryError`."""

    def __init__(self, registry: SchemaRegistry, reader: Schema, message: str = ""):
        self._registry = registry
        self._schema = reader
        self._message = message
        types = message_types(registry, reader)
        self._name = message or types.name_at(FIRST)
        try:
            types.indexes_of(self._name)
        except SchemaInvalid as error:
            raise ConfigError(str(error)) from None
        self._class = types.class_of(self._name)
        self._columns = columns_of(self._class.DESCRIPTOR)
        self._has_closed = has_closed(self._class.DESCRIPTOR)
        self.schema = pa.schema([(column.name, column.kind) for column in self._columns])
        self._readable: set[tuple[int, Indexes]] = set()
        self._refused: dict[tuple[int, Indexes], Rejection] = {}
        self._types: dict[int, MessageTypes] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufValues, (self._registry, self._schema, self._message)

    def found(self, values: Any) -> DecodedValues:
        bad: dict[int, Rejection] = {}
        messages: dict[int, Any] = {}
        for at, value in enumerate(values.to_pylist()):
            one = self._read(value)
            if isinstance(one, Rejection):
                bad[at] = one
            else:
                messages[at] = one
        try:
            return DecodedValues(self._arrays(list(messages.values())), bad)
        except (UnfitMessage, *UNFIT):
            return self._singly(messages, bad)

    def _read(self, value: bytes) -> Any:
        """The message, or why it is none."""
        try:
            schema_id = schema_id_of(value)
            indexes, at = indexes_in(value, FRAME_BYTES)
        except NotFramed as error:
            return Rejection(NOT_FRAMED, str(error))
        except DoesNotFit as error:
            return Rejection(WRONG_PROTOBUF, str(error))
        if (schema_id, indexes) not in self._readable:
            refused = self._refused.get((schema_id, indexes)) or self._compared(schema_id, indexes)
            if refused is not None:
                return refused
        try:
            message = self._class.FromString(value[at:])
        except (DecodeError, ValueError) as error:
            why = " ".join(str(error).split())[:200]
            return Rejection(WRONG_PROTOBUF, f"the bytes do not fit {self._name} (schema id {schema_id}): {why}")
        path = unnamed(message) if self._has_closed else ""
        if not path:
            return message
        return Rejection(WRONG_PROTOBUF, f"field {path} has a number that its enum does not name", path)

    def _compared(self, schema_id: int, indexes: Indexes) -> Rejection | None:
        """Why messages at these indexes of a schema cannot be read; None if they can. Raises `RegistryError`."""
        refused = None
        try:
            types = self._types.get(schema_id)
            if types is None:
                types = message_types(self._registry, as_schema(self._registry.schema(schema_id), PROTOBUF))
                self._types[schema_id] = types
            name = types.name_at(indexes)
            if name != self._name:
                raise DoesNotFit(f"the value is a message {name} (schema id {schema_id}), not {self._name}")
            found = difference(types.class_of(name).DESCRIPTOR, self._class.DESCRIPTOR)
            if found:
                raise DoesNotFit(f"schema id {schema_id} cannot be read without loss: {found}")
        except (SchemaNotFound, SchemaInvalid) as error:
            refused = Rejection(UNKNOWN_SCHEMA, str(error))
        except DoesNotFit as error:
            refused = Rejection(WRONG_PROTOBUF, str(error))
        if refused is None:
            self._readable.add((schema_id, indexes))
        elif len(self._refused) < REFUSED_IDS_MAX:
            self._refused[schema_id, indexes] = refused
        return refused

    def _arrays(self, messages: list[Any]) -> list[Any]:
        return [column.made(messages) for column in self._columns]

    def _singly(self, messages: dict[int, Any], bad: dict[int, Rejection]) -> DecodedValues:
        """As `found`, if a message has a value that its column does not have."""
        fit = []
        for at, message in messages.items():
            try:
                self._arrays([message])
                fit.append(message)
            except UnfitMessage as error:
                bad[at] = Rejection(WRONG_PROTOBUF, str(error), error.field)
            except UNFIT as error:
                why = " ".join(str(error).split())[:200]
                bad[at] = Rejection(WRONG_PROTOBUF, f"the message fits no columns: {why}")
        return DecodedValues(self._arrays(fit), bad)
