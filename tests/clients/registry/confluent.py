"""confluent-kafka writes or reads values with a schema registry: `confluent.py write|read avro|json ADDRESS URL TOPIC`.

Schema and values come from standard input, or the values go to standard output, as lines of JSON. It imports nothing of
ours.
"""

import json
import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

verb, kind, address, url, topic = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
context = SerializationContext(topic, MessageField.VALUE)
lines = [json.loads(line) for line in sys.stdin]


def write(schema: str, values: list[Any]) -> None:
    if kind == "avro":
        serializer: Any = AvroSerializer(registry, schema)
    else:
        serializer = JSONSerializer(schema, registry)
    producer = Producer({"bootstrap.servers": address})
    for value in values:
        producer.produce(topic, serializer(value, context))
    assert producer.flush(60) == 0


def read(count: int) -> None:
    deserializer: Any = AvroDeserializer(registry) if kind == "avro" else JSONDeserializer(None, None, registry)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = 0
    while found < count:
        for message in consumer.consume(count - found, 1):
            assert not message.error(), message.error()
            print(json.dumps(deserializer(message.value(), context)))
            found += 1
    consumer.close()


if verb == "write":
    write(json.dumps(lines[0]), lines[1:])
else:
    read(lines[0])
