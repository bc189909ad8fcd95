"""What the serializers of a registry share: under which subject, schema and id the values of a topic are written."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from moldau.client.registry.framing import framed
from moldau.client.registry.names_of_settings import keywords, truth
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import GivenSchema, Schema, as_schema
from moldau.client.registry.subjects import SubjectNameStrategy, strategy
from moldau.errors import ConfigError

SETTINGS = ("auto_register_schemas", "use_latest_version", "normalize_schemas", "subject_name_strategy")
Encode = Callable[[Any], bytes]


class RegistrySerializer(ABC):
    """Writes values with the id of their schema. A producer binds it to a topic (`for_topic`) before the first record;
    the schema is registered, or looked up, then, and never again."""

    KIND: str

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: GivenSchema | None = None,
        *,
        to_dict: Callable[[Any], Any] | None = None,
        auto_register_schemas: bool | None = None,
        use_latest_version: bool | None = None,
        normalize_schemas: bool | None = None,
        subject_name_strategy: str | SubjectNameStrategy | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        self._check_installed()
        self._to_dict = to_dict
        named: dict[str, Any] = {
            "auto_register_schemas": auto_register_schemas, "use_latest_version": use_latest_version,
            "normalize_schemas": normalize_schemas, "subject_name_strategy": subject_name_strategy,
        }  # fmt: skip
        given = {name: value for name, value in named.items() if value is not None}
        if settings is not None:
            given |= keywords(settings, type(self).__name__, SETTINGS)
        self._latest = truth("use_latest_version", given.get("use_latest_version", False))
        self._register = truth("auto_register_schemas", given.get("auto_register_schemas", not self._latest))
        self._normalize = truth("normalize_schemas", given.get("normalize_schemas", False))
        self._strategy: SubjectNameStrategy = strategy(given.get("subject_name_strategy", "topic"))
        if self._latest and self._register:
            raise ConfigError("use.latest.version and auto.register.schemas cannot both be true")
        if schema is None and not self._latest:
            raise ConfigError(f"{type(self).__name__} needs a schema, or use.latest.version")
        self._registry = registry
        self._schema = None if schema is None else as_schema(schema, self.KIND)
        self._name = None if self._schema is None else self._record_name(self._schema)
        self._bound: dict[tuple[str, str], Encode] = {}
        self._lock = threading.Lock()

    def __call__(self, value: Any, topic: str = "", field: str = "value") -> bytes | None:
        """The bytes of one value. A producer says the topic; by hand it is needed unless subjects are named after
        records. Raises as `for_topic`, and `DoesNotFit`."""
        return self.for_topic(topic, field)(value)

    def for_topic(self, topic: str, field: str) -> Callable[[Any], bytes | None]:
        """The serializer of the topic's keys (`field` is `key`) or values. Blocks for a request to the registry the
        first time. Raises `RegistryError`."""
        encode = self._bound.get((topic, field))
        if encode is None:
            with self._lock:
                encode = self._bound.get((topic, field))
                if encode is None:
                    encode = self._bound[topic, field] = self._bind(topic, field)
        bound = encode
        return lambda value: None if value is None else bound(value)

    def _bind(self, topic: str, field: str) -> Encode:
        if self._strategy is strategy("topic") and not topic:
            raise ConfigError(f"{type(self).__name__} needs the topic: call it with topic=, or give it to a producer")
        subject = self._strategy(topic, field, self._name)
        if self._latest:
            latest = self._registry.version(subject)
            schema, schema_id = as_schema(latest.schema, self.KIND), latest.id
        else:
            assert self._schema is not None
            schema = self._ready(self._schema)
            if self._register:
                schema_id = self._registry.register(subject, schema, normalize=self._normalize)
            else:
                schema_id = self._registry.lookup(subject, schema, normalize=self._normalize).id
        encode = self._encoder(schema)
        to_dict = self._to_dict
        if to_dict is None:
            return lambda value: framed(schema_id, encode(value))
        return lambda value: framed(schema_id, encode(to_dict(value)))

    @abstractmethod
    def _check_installed(self) -> None:
        """Raise `ConfigError` if the package that encodes is not installed."""

    @abstractmethod
    def _record_name(self, schema: Schema) -> str | None:
        """The full name of what the schema describes."""

    def _ready(self, schema: Schema) -> Schema:
        """The given schema with the references that it needs in the registry."""
        return schema

    @abstractmethod
    def _encoder(self, schema: Schema) -> Encode:
        """What makes bytes of values, without the frame; raises `DoesNotFit`."""
