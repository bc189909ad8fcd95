"""Calls of confluent-kafka's registry client: `confluent_calls.py URL SUBJECT` prints what each answered, as JSON. It
imports nothing of ours."""

import json
import sys
from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)

url, subject = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
answers: dict[str, Any] = {}


def schema(*fields: tuple[str, Any]) -> Schema:
    made = [{"name": name, "type": kind, **more} for name, kind, more in (field + ({},) for field in fields)]
    return Schema(json.dumps({"type": "record", "name": "R", "fields": made}), "AVRO")


def refused(call: Callable[[], Any]) -> int:
    try:
        call()
    except SchemaRegistryError as error:
        return int(error.error_code)
    raise AssertionError("it was not refused")


ONE, TWO = schema(("a", "int")), schema(("a", "int"), ("b", "int"))
full = registry.register_schema_full_response(subject, ONE)
answers["registered"] = [full.schema_id, full.version]
answers["again"] = registry.register_schema(subject, ONE)
answers["looked_up"] = registry.lookup_schema(subject, ONE).version
answers["incompatible"] = refused(lambda: registry.register_schema(subject, TWO))
answers["compatible"] = registry.test_compatibility(subject, ONE)
registry.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
answers["level"] = registry.get_config(subject).compatibility_level
second = registry.register_schema(subject, TWO)
answers["latest"] = registry.get_latest_version(subject).version
answers["versions"] = registry.get_versions(subject)
answers["unknown"] = refused(lambda: registry.get_latest_version(subject + "-nowhere"))
answers["mode"] = registry.get_global_mode()
answers["subjects"] = subject in registry.get_subjects()
of_id = registry.get_schema_versions(full.schema_id)
answers["of_id"] = [[one.subject, one.version] for one in of_id if one.subject == subject]
assert full.guid is not None
assert ONE.schema_str is not None
answers["guid"] = json.loads(registry.get_schema_by_guid(full.guid).schema_str or "") == json.loads(ONE.schema_str)
answers["types"] = "AVRO" in registry.get_schema_types()
answers["deleted"] = registry.delete_version(subject, 2)
answers["deleted_subject"] = registry.delete_subject(subject)
registry.delete_version(subject, 2, permanent=True)
answers["gone"] = registry.delete_subject(subject, permanent=True)
print(json.dumps(answers))
