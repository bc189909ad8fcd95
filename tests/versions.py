"""The clients of other projects, each in the newest release and in older ones that people still run.

The newest release of each belongs to `make check`, older ones to `make long`: `releases` marks them. A pin is moved
here and nowhere else; those of Go's clients are in `tests/clients/restarts/franz/go.mod` and
`tests/clients/logins/golang/go.mod`.
"""

from typing import Any

import pytest

KAFKA = "4.4.0"
"""Apache Kafka's Java client and command-line tools."""
KAFKA_BEFORE = "4.3.1"
KAFKA_STREAMS = f"org.apache.kafka:kafka-streams:{KAFKA}"
MIRROR_MAKER = f"org.apache.kafka:connect-mirror:{KAFKA_BEFORE}"
CONFLUENT, CONFLUENT_BEFORE = "confluent-kafka==2.16.1", "confluent-kafka==2.8.2"
CONFLUENT_WITH_SCHEMAS = "confluent-kafka[avro,json,protobuf,schemaregistry]==2.16.1"
KAFKA_PYTHON = "kafka-python[crc32c,lz4,snappy,zstd]==3.0.12"
KAFKA_PYTHON_BEFORE = "kafka-python[crc32c,lz4,snappy,zstd]==2.3.3"
AIOKAFKA = "aiokafka[lz4,snappy,zstd]==0.14.0"
KAFKAJS = "kafkajs@2.2.4"
KAFKAJS_REGISTRY = "@kafkajs/confluent-schema-registry@4.1.0"
PLATFORMATIC = "@platformatic/kafka@2.12.1"
PLAYWRIGHT = "playwright==1.65.2"
FASTSTREAM = "faststream[kafka]==0.7.8"


def releases(newest: str, *older: str) -> list[Any]:
    """Parameters for a test, named by their versions."""
    return [
        pytest.param(newest, id=version_of(newest)),
        *(pytest.param(pin, id=version_of(pin), marks=pytest.mark.long) for pin in older),
    ]


def version_of(pin: str) -> str:
    return pin.rpartition("==")[2].rpartition("@")[2]
