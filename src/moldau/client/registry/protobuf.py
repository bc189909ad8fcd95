"""Protobuf keys and values, as confluent-kafka's and Java's serializers write them; the codec is Google's library."""

import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.client.registry.framing import FRAME_BYTES, schema_id_of
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import PROTOBUF, GivenSchema, Reference, Schema, as_schema
from moldau.client.registry.serializing import Encode, RegistrySerializer
from moldau.errors import ConfigError, DoesNotFit

if TYPE_CHECKING:
    from moldau.client.registry.proto.messages import Indexes, MessageTypes


class ProtobufSerializer(RegistrySerializer):
    """Makes Protobuf of messages, or of dicts with a message's fields, for `value_serializer` and `key_serializer`;
    None stays None.

        Producer("localhost:9092", value_serializer=ProtobufSerializer(SchemaRegistry("http://localhost:8081"), River))

    The second argument is a class that protoc has generated, or the text of a `.proto` file; `message` is the full name
    of one of its messages, the first by default. The imports of a class's file are registered as references, under
    their paths. Settings are those of `AvroSerializer`; records are named by the message. Raises `SchemaInvalid`, and
    `ConfigError` without protobuf.
    """

    KIND = PROTOBUF

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: GivenSchema | type[Any] | None = None,
        *,
        message: str = "",
        **settings: Any,
    ):
        self._check_installed()
        self._file: Any = None
        self._message = message
        if isinstance(schema, type):
            from moldau.client.registry.proto.files import text_of

            self._file, self._message = _descriptor(schema).file, _descriptor(schema).full_name
            schema = Schema(text_of(self._file), PROTOBUF)
        super().__init__(registry, schema, **settings)

    def _check_installed(self) -> None:
        need_protobuf("ProtobufSerializer")

    def _record_name(self, schema: Schema) -> str | None:
        if self._file is not None:
            return self._message
        types = message_types(self._registry, schema)
        name = self._message or types.name_at((0,))
        types.indexes_of(name)
        return name

    def _ready(self, schema: Schema) -> Schema:
        return schema if self._file is None else self._with_imports(self._file, {})

    def _with_imports(self, file: Any, known: dict[str, Schema]) -> Schema:
        """The schema of a generated file, whose imports are in the registry under their paths."""
        from moldau.client.registry.proto.files import text_of
        from moldau.client.registry.proto.well_known import is_known_to_all

        references = []
        for other in file.dependencies:
            path = other.name
            if is_known_to_all(path):
                continue
            if path not in known:
                known[path] = self._with_imports(other, known)
                if self._register:
                    self._registry.register(path, known[path], normalize=self._normalize)
            version = self._registry.lookup(path, known[path], normalize=self._normalize).version
            references.append(Reference(path, path, version))
        return Schema(text_of(file), PROTOBUF, tuple(references))

    def _encoder(self, schema: Schema) -> Encode:
        from google.protobuf.message import EncodeError, Message

        from moldau.client.registry.proto.messages import packed_indexes

        types = message_types(self._registry, schema)
        name = self._message or types.name_at((0,))
        head, make = packed_indexes(types.indexes_of(name)), types.class_of(name)

        def encode(value: Any) -> bytes:
            try:
                if isinstance(value, Message):
                    if value.DESCRIPTOR.full_name != name:
                        raise DoesNotFit(f"the value is a message {value.DESCRIPTOR.full_name}, not {name}")
                    return head + bytes(value.SerializeToString())
                if isinstance(value, Mapping):
                    return head + bytes(make(**value).SerializeToString())
            except (TypeError, ValueError, AttributeError, EncodeError) as error:
                if isinstance(error, DoesNotFit):
                    raise
                raise DoesNotFit(f"the value does not fit {name}: {_why(error)}") from error
            raise DoesNotFit(f"{type(value).__name__} is neither a message {name} nor a dict with its fields")

        return encode


class ProtobufDeserializer:
    """Reads Protobuf that a registry's serializer has written, for `value_deserializer` and `key_deserializer`.

    Values are messages of the class `message`, which protoc has generated, or of the schema that they were written
    with. `from_message` is called with each value at the end. Raises `NotFramed`, `DoesNotFit`, also for a message of
    another name, and `RegistryError`; blocks for a request to the registry at each new schema id.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        message: type[Any] | None = None,
        *,
        from_message: Callable[[Any], Any] | None = None,
    ):
        need_protobuf("ProtobufDeserializer")
        self._registry = registry
        self._class: Any = message
        self._name = None if message is None else _descriptor(message).full_name
        self._from_message = from_message
        self._types: dict[int, MessageTypes] = {}
        self._classes: dict[tuple[int, Indexes], Any] = {}

    def __call__(self, data: bytes | None) -> Any:
        """The message in these bytes."""
        from google.protobuf.message import DecodeError

        from moldau.client.registry.proto.messages import indexes_in

        if data is None:
            return None
        schema_id = schema_id_of(data)
        indexes, at = indexes_in(data, FRAME_BYTES)
        made = self._classes.get((schema_id, indexes)) or self._class_of(schema_id, indexes)
        try:
            value = made.FromString(data[at:])
        except (DecodeError, ValueError) as error:
            raise DoesNotFit(f"the bytes do not fit schema id {schema_id}: {_why(error)}") from error
        return value if self._from_message is None else self._from_message(value)

    def _class_of(self, schema_id: int, indexes: "Indexes") -> Any:
        types = self._types.get(schema_id)
        if types is None:
            schema = as_schema(self._registry.schema(schema_id), PROTOBUF)
            types = self._types[schema_id] = message_types(self._registry, schema)
        name = types.name_at(indexes)
        if self._name not in (None, name):
            raise DoesNotFit(f"the value is a message {name} (schema id {schema_id}), not {self._name}")
        made = self._classes[schema_id, indexes] = self._class or types.class_of(name)
        return made


def message_types(registry: SchemaRegistry, schema: Schema) -> "MessageTypes":
    """The message types of the schema with its references. Raises `SchemaInvalid` and `RegistryError`."""
    from moldau.client.registry.proto.messages import MessageTypes

    return MessageTypes(schema, registry.referenced(schema))


def need_protobuf(what: str) -> None:
    """Raise `ConfigError`, with how to install protobuf, if it is missing; `what` needs it."""
    try:
        is_there = importlib.util.find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise ConfigError(f"{what} needs protobuf: install it with pip install 'moldau[protobuf]'")


def _descriptor(message: type[Any]) -> Any:
    descriptor = getattr(message, "DESCRIPTOR", None)
    if descriptor is None or not hasattr(descriptor, "file"):
        raise ConfigError(f"{message.__name__} is not a message class that protoc has generated")
    return descriptor


def _why(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
