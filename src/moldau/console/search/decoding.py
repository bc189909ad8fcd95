"""`RegistryDecoder`: values that serializers of a schema registry wrote, as JSON."""

import base64
import contextlib
import json
from collections.abc import Callable
from typing import Any

from moldau.client.registry.avro import AvroDeserializer
from moldau.client.registry.framing import FRAME_BYTES, schema_id_of
from moldau.client.registry.json_texts import json_text
from moldau.client.registry.protobuf import ProtobufDeserializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, JSON, PROTOBUF
from moldau.errors import MoldauError
from moldau.monotonic import monotonic_s

FAILED_FOR_S = 30.0
"""A schema that the registry did not return is not asked for again for this long."""
KNOWN_MAX = 10_000


class RegistryDecoder:
    """Decodes Avro, JSON and Protobuf; blocks for a request at each new schema id. What cannot be decoded, or not
    without a package that is missing, stays as it is. Any thread may use it."""

    def __init__(self, registry: SchemaRegistry):
        self._registry = registry
        self._avro: AvroDeserializer | None = None
        self._of_messages: ProtobufDeserializer | None = None
        self._kinds: dict[int, str] = {}
        self._failed_s: dict[int, float] = {}

    def __call__(self, part: str, data: bytes) -> bytes | None:
        """JSON, or None."""
        try:
            schema_id = schema_id_of(data)
            if self._failed_s.get(schema_id, -FAILED_FOR_S) + FAILED_FOR_S > monotonic_s():
                return None
            kind = self._kind(schema_id)
            if kind == AVRO:
                return self._of_avro(data)
            if kind == PROTOBUF:
                return self._of_protobuf(data)
            return data[FRAME_BYTES:] if kind == JSON else None
        except MoldauError:
            return None

    def named(self, data: bytes) -> str:
        """What decoded these bytes, as `RegistryEncoder` takes it: `#7`, for Protobuf with the message. Raises
        `MoldauError`."""
        schema_id = schema_id_of(data)
        message = f" {self._protobuf(data).DESCRIPTOR.full_name}" if self._kind(schema_id) == PROTOBUF else ""
        return f"#{schema_id}{message}"

    def _kind(self, schema_id: int) -> str:
        kind = self._kinds.get(schema_id)
        if kind is None:
            if len(self._failed_s) + len(self._kinds) > KNOWN_MAX:
                self._failed_s.clear()
                self._kinds.clear()
            try:
                kind = self._registry.schema(schema_id).kind
            except MoldauError:
                self._failed_s[schema_id] = monotonic_s()
                raise
            self._kinds[schema_id] = kind
        return kind

    @property
    def _protobuf(self) -> ProtobufDeserializer:
        if self._of_messages is None:
            self._of_messages = ProtobufDeserializer(self._registry)
        return self._of_messages

    def _of_avro(self, data: bytes) -> bytes:
        if self._avro is None:
            self._avro = AvroDeserializer(self._registry)
        value = self._avro(data)
        return json_text(value, _plain).encode("utf-8", "replace")

    def _of_protobuf(self, data: bytes) -> bytes | None:
        from google.protobuf.json_format import MessageToDict

        message = self._protobuf(data)
        try:
            tree = MessageToDict(message, preserving_proto_field_name=True)
        except (TypeError, KeyError, ValueError, RecursionError):  # an Any whose type is not known, for example
            return None
        return json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace")


class WrittenWith:
    """Decodes one record, and notes what its parts were written with: `schemas` has `key` and `value`, if they were
    decoded."""

    def __init__(self, decoder: RegistryDecoder):
        self._decoder = decoder
        self.schemas: dict[str, str] = {}

    def __call__(self, part: str, data: bytes) -> bytes | None:
        text = self._decoder(part, data)
        if text is not None:
            with contextlib.suppress(MoldauError):
                self.schemas[part] = self._decoder.named(data)
        return text


def _plain(value: Any) -> Any:
    """What JSON has no kind for: bytes as base64, times in ISO 8601, everything else as text."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    iso: Callable[[], str] | None = getattr(value, "isoformat", None)
    return iso() if iso is not None else str(value)
