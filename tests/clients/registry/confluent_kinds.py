"""confluent-kafka's serializers of JSON Schema and Protobuf, with references, `normalize` and `use.latest.version`:
`confluent_kinds.py URL SUFFIX` prints what came back, as JSON. It imports nothing of ours."""

import json
import sys
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP

url, suffix = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
answers: dict[str, Any] = {}


def context(topic: str) -> SerializationContext:
    return SerializationContext(f"{topic}-{suffix}", MessageField.VALUE)


def protobuf_class() -> Any:
    """A message that imports another file, which imports one of Google's."""
    kind = descriptor_pb2.FieldDescriptorProto
    river = descriptor_pb2.FileDescriptorProto(
        name=f"river_{suffix}.proto", package="cz", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    message = river.message_type.add(name=f"River{suffix}")
    message.field.add(name="name", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    time = message.field.add(name="seen", number=2, type=kind.TYPE_MESSAGE, label=kind.LABEL_OPTIONAL)
    time.type_name = ".google.protobuf.Timestamp"
    gauge = descriptor_pb2.FileDescriptorProto(
        name=f"gauge_{suffix}.proto", package="cz", syntax="proto3", dependency=[river.name]
    )
    message = gauge.message_type.add(name=f"Gauge{suffix}")
    field = message.field.add(name="river", number=1, type=kind.TYPE_MESSAGE, label=kind.LABEL_OPTIONAL)
    field.type_name = f".cz.River{suffix}"
    message.field.add(name="cm", number=2, type=kind.TYPE_SINT32, label=kind.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP.serialized_pb)
    for file in (river, gauge):
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"cz.Gauge{suffix}"))


Gauge = protobuf_class()
value = Gauge(cm=[61, -3])
value.river.name = "Úpa"
value.river.seen.seconds = 7
to_protobuf = ProtobufSerializer(Gauge, registry, {"use.deprecated.format": False})
data = to_protobuf(value, context("protobuf"))
back = ProtobufDeserializer(Gauge, {"use.deprecated.format": False}, registry)(data, context("protobuf"))
answers["protobuf"] = back == value
latest = registry.get_latest_version(f"protobuf-{suffix}-value")
answers["protobuf_references"] = [one.name for one in latest.schema.references or []]

level = {"title": "Level", "type": "object", "properties": {"cm": {"type": "integer"}}, "required": ["cm"]}
registry.register_schema(f"level-{suffix}", Schema(json.dumps(level), "JSON"))
gauge = {"type": "object", "properties": {"level": {"$ref": "level.json"}}, "additionalProperties": False}
referred = Schema(json.dumps(gauge), "JSON", [SchemaReference("level.json", f"level-{suffix}", 1)])
to_json = JSONSerializer(referred, registry, conf={"normalize.schemas": True})
data = to_json({"level": {"cm": 61}}, context("json"))
answers["json"] = JSONDeserializer(None, None, registry)(data, context("json"))
try:
    to_json({"level": {"cm": "x"}}, context("json"))
except Exception as error:
    answers["json_refused"] = "cm" in str(error) or "x" in str(error)

river = {"type": "record", "name": "cz.River", "fields": [{"name": "name", "type": "string"}]}
registry.register_schema(f"river-{suffix}", Schema(json.dumps(river), "AVRO"))
avro = {"type": "record", "name": "cz.Gauge", "fields": [{"name": "river", "type": "cz.River"}]}
registry.register_schema(
    f"avro-{suffix}-value",
    Schema(json.dumps(avro), "AVRO", [SchemaReference("cz.River", f"river-{suffix}", 1)]),
)
to_avro = AvroSerializer(registry, None, conf={"use.latest.version": True, "auto.register.schemas": False})
data = to_avro({"river": {"name": "Metuje"}}, context("avro"))
answers["avro_latest"] = AvroDeserializer(registry)(data, context("avro"))
print(json.dumps(answers))
