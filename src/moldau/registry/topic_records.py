"""The records of the topic `_schemas`, as Confluent's registry writes them: keys and values are JSON.

    {"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}
    {"subject":"orders-value","version":1,"id":1,"schema":"...","deleted":false}

A value of null deletes what the key names. Older registries write `"subject":null` in the keys of the global
settings, newer ones leave it out: both are read, so a topic of theirs is taken over.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.client.registry.schemas import AVRO, Reference, Schema
from moldau.registry.texts import strict_json

SCHEMA, CONFIG, MODE, DELETE_SUBJECT, CLEAR_SUBJECT, NOOP, CONTEXT = (
    "SCHEMA", "CONFIG", "MODE", "DELETE_SUBJECT", "CLEAR_SUBJECT", "NOOP", "CONTEXT",
)  # fmt: skip
TENANT = "default"
ID_MAX = (1 << 31) - 1
_MAGIC = {SCHEMA: 1, CONFIG: 0, MODE: 0, DELETE_SUBJECT: 0, CLEAR_SUBJECT: 0, NOOP: 0, CONTEXT: 0}


class UnreadableRecord(ValueError):
    """A record of the topic is not one of a registry; the text says why."""


class RecordKey(NamedTuple):
    """What a record is about; `subject` is None for the settings of the registry."""

    kind: str
    subject: str | None = None
    version: int = 0
    context: str = ""


@dataclass(frozen=True)
class SchemaContent:
    """What an id stands for. `metadata` and `rules` are JSON as it was given, None if there is none."""

    schema: Schema
    metadata: str | None = None
    rules: str | None = None


@dataclass(frozen=True)
class StoredVersion:
    """One version of a subject. `timestamp_ms` is that of its record."""

    subject: str
    version: int
    id: int
    content: SchemaContent
    deleted: bool = False
    timestamp_ms: int = 0


RecordValue = StoredVersion | Mapping[str, Any]


def packed_key(key: RecordKey) -> bytes:
    """The key's bytes."""
    tree: dict[str, Any] = {"keytype": key.kind}
    if key.kind == CONTEXT:
        tree |= {"tenant": TENANT, "context": key.context}
    elif key.subject is not None:
        tree["subject"] = key.subject
    if key.kind == SCHEMA:
        tree["version"] = key.version
    return compact({**tree, "magic": _MAGIC[key.kind]}).encode()


def packed_value(value: RecordValue | None) -> bytes | None:
    """The value's bytes."""
    if value is None:
        return None
    if not isinstance(value, StoredVersion):
        return compact(value).encode()
    tree: dict[str, Any] = {"subject": value.subject, "version": value.version, "id": value.id}
    tree |= fields_of(value.content)
    tree["schema"] = value.content.schema.text
    return compact({**tree, "deleted": value.deleted}).encode()


def fields_of(content: SchemaContent) -> dict[str, Any]:
    """The fields of a schema that are left out when they are empty or the default: clients depend on that."""
    schema, tree = content.schema, dict[str, Any]()
    if schema.kind != AVRO:
        tree["schemaType"] = schema.kind
    if schema.references:
        tree["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in schema.references
        ]
    if content.metadata is not None:
        tree["metadata"] = json.loads(content.metadata)
    if content.rules is not None:
        tree["ruleSet"] = json.loads(content.rules)
    return tree


def read_key(data: bytes | None) -> RecordKey:
    """What a record's key says. Raises `UnreadableRecord`."""
    tree = _object(data, "key")
    kind = tree.get("keytype")
    if kind not in _MAGIC:
        raise UnreadableRecord(f"keytype {str(kind)[:60]!r} is not one of a schema registry")
    if kind == CONTEXT:
        return RecordKey(kind, context=_text(tree, "context"))
    if kind == NOOP:
        return RecordKey(kind)
    subject = tree.get("subject")
    if kind in (CONFIG, MODE) and subject is None:
        return RecordKey(kind)
    return RecordKey(kind, _text(tree, "subject"), _number(tree, "version", 1) if kind == SCHEMA else 0)


def read_value(key: RecordKey, data: bytes | None, timestamp_ms: int) -> RecordValue | None:
    """What a record's value says; None deletes. Raises `UnreadableRecord`."""
    if data is None or key.kind == NOOP:
        return None
    tree = _object(data, "value")
    if key.kind != SCHEMA:
        return tree
    assert key.subject is not None
    version = _number(tree, "version", 1) if "version" in tree else key.version
    if version != key.version or tree.get("subject", key.subject) != key.subject:
        raise UnreadableRecord("the value is of another subject or version than its key")
    deleted = tree.get("deleted", False)
    return StoredVersion(key.subject, version, _number(tree, "id", 0), content_of(tree), deleted is True, timestamp_ms)


def content_of(tree: Mapping[str, Any]) -> SchemaContent:
    """The schema in a request's body, or in a record's value. Raises `UnreadableRecord`."""
    kind = tree.get("schemaType") or AVRO
    if not isinstance(kind, str):
        raise UnreadableRecord("schemaType is not text")
    references = tree.get("references") or []
    if not isinstance(references, list):
        raise UnreadableRecord("references is not a list")
    found = tuple(_reference(one) for one in references)
    metadata, rules = (_canonical_object(tree, name) for name in ("metadata", "ruleSet"))
    return SchemaContent(Schema(_text(tree, "schema"), kind, found), metadata, rules)


def _reference(tree: Any) -> Reference:
    if not isinstance(tree, dict):
        raise UnreadableRecord("a reference is not an object")
    version = tree.get("version")
    if version != -1:
        version = _number(tree, "version", 1)
    return Reference(_text(tree, "name"), _text(tree, "subject"), version)


def _canonical_object(tree: Mapping[str, Any], name: str) -> str | None:
    value = tree.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise UnreadableRecord(f"{name} is not an object")
    return compact(value, sort_keys=True)


def compact(tree: Any, sort_keys: bool = False) -> str:
    """JSON without white space."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def _object(data: bytes | None, what: str) -> dict[str, Any]:
    try:
        tree = strict_json(data or b"")
    except (ValueError, RecursionError):
        raise UnreadableRecord(f"the {what} is not JSON") from None
    if not isinstance(tree, dict):
        raise UnreadableRecord(f"the {what} is not an object")
    return tree


def _text(tree: Mapping[str, Any], name: str) -> str:
    value = tree.get(name)
    if not isinstance(value, str):
        raise UnreadableRecord(f"{name} is not text")
    return value


def _number(tree: Mapping[str, Any], name: str, least: int) -> int:
    value = tree.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= ID_MAX:
        raise UnreadableRecord(f"{name} is not a number of {least} to {ID_MAX}")
    return value
