"""JSON keys and values with a JSON Schema in a registry, as confluent-kafka's and Java's serializers write them."""

import json
from collections.abc import Callable
from typing import Any

from moldau.client.registry.framing import FRAME_BYTES, schema_id_of
from moldau.client.registry.json_drafts import drafted
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import JSON, GivenSchema, Schema, as_schema
from moldau.client.registry.serializing import Encode, RegistrySerializer
from moldau.errors import ConfigError, DoesNotFit, SchemaInvalid

Validate = Callable[[Any], None]


class JsonSchemaSerializer(RegistrySerializer):
    """Makes JSON of values and checks it against a JSON Schema, for `value_serializer` and `key_serializer`; None
    stays None. Settings are those of `AvroSerializer`; records are named by the schema's `title`. Raises
    `SchemaInvalid`, and `ConfigError` without jsonschema-rs."""

    KIND = JSON

    def _check_installed(self) -> None:
        need_jsonschema("JsonSchemaSerializer")

    def _record_name(self, schema: Schema) -> str | None:
        tree = schema.tree
        title = tree.get("title") if isinstance(tree, dict) else None
        return title if isinstance(title, str) else None

    def _encoder(self, schema: Schema) -> Encode:
        check = checker(self._registry, schema)

        def encode(value: Any) -> bytes:
            try:
                text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
            except (TypeError, ValueError, RecursionError) as error:
                raise DoesNotFit(f"the value cannot be JSON: {error}") from error
            check(value)
            return text

        return encode


class JsonSchemaDeserializer:
    """Reads JSON that a registry's serializer has written, for `value_deserializer` and `key_deserializer`. It is
    checked against `schema`, if that is given, else against the schema it was written with. Raises `NotFramed`,
    `DoesNotFit` and `RegistryError`; blocks for a request to the registry at each new schema id."""

    def __init__(
        self,
        registry: SchemaRegistry,
        schema: GivenSchema | None = None,
        *,
        from_dict: Callable[[Any], Any] | None = None,
    ):
        need_jsonschema("JsonSchemaDeserializer")
        self._registry = registry
        self._reader = None if schema is None else checker(registry, as_schema(schema, JSON))
        self._from_dict = from_dict
        self._writers: dict[int, Validate] = {}

    def __call__(self, data: bytes | None) -> Any:
        """The value in these bytes."""
        if data is None:
            return None
        schema_id = schema_id_of(data)
        check = self._reader or self._writers.get(schema_id)
        if check is None:
            schema = as_schema(self._registry.schema(schema_id), JSON)
            check = self._writers[schema_id] = checker(self._registry, schema)
        try:
            value = json.loads(data[FRAME_BYTES:])
        except (ValueError, RecursionError) as error:
            raise DoesNotFit(f"the bytes behind schema id {schema_id} are not JSON: {error}") from error
        check(value)
        return value if self._from_dict is None else self._from_dict(value)


def checker(registry: SchemaRegistry, schema: Schema) -> Validate:
    """A function that raises `DoesNotFit` for values that the schema does not allow. Raises `SchemaInvalid`. What
    `$ref` names comes from the schema's references only, never from the network."""
    import jsonschema_rs

    def nowhere(uri: str) -> Any:
        raise LookupError(f"{uri} is not among the references of the schema")

    try:
        others = [(name, drafted(other.tree)) for name, other in registry.referenced(schema).items()]
        known = jsonschema_rs.Registry(others, retriever=nowhere) if others else None
        validator = jsonschema_rs.validator_for(drafted(schema.tree), registry=known, retriever=nowhere)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise SchemaInvalid(f"the JSON Schema is wrong: {str(error).splitlines()[0]}") from None

    def check(value: Any) -> None:
        try:
            error = next(iter(validator.iter_errors(value)), None)
        except (ValueError, TypeError, OverflowError) as cause:
            raise DoesNotFit(f"the value cannot be checked against its JSON Schema: {cause}") from cause
        if error is not None:
            at = "".join(f"[{one!r}]" for one in error.instance_path)
            raise DoesNotFit(f"the value{at} does not fit the JSON Schema: {error.message[:300]}")

    return check


def need_jsonschema(what: str) -> None:
    """Raise `ConfigError`, with how to install jsonschema-rs, if it is missing; `what` needs it."""
    import importlib.util

    if importlib.util.find_spec("jsonschema_rs") is None:
        raise ConfigError(f"{what} needs jsonschema-rs: install it with pip install 'moldau[json-schema]'")
