"""Messages of ours are read identically by other clients, and theirs by ours: keys, values, headers, timestamps, nulls,
empty contents, the partition that a key belongs to, in each compression.
"""

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.brokers import Broker, ForeignBroker
from harness.patience import stretched
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.partitioning import positive_hash
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from tests import versions
from tests.clients.client import without_ours
from tests.clients.crossing.exact import Message, line, message
from tests.clients.test_java_client import QUICK_START
from tests.environments import java_class, kafka_jars, node_with, python_with

pytestmark = pytest.mark.check

FOLDER = Path(__file__).parent / "crossing"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 7
NOON_MS = 1_700_000_000_000
PYTHON = {
    "confluent": (versions.CONFLUENT, "confluent.py"),
    "kafka-python": (versions.KAFKA_PYTHON, "kafka_python.py"),
    "aiokafka": (versions.AIOKAFKA, "aio.py"),
}
CHECKED = {"confluent": "zstd", "kafka-python": "lz4", "aiokafka": "snappy", "java": "gzip", "kafkajs": "none"}
"""The codec of `make check`; a client compresses with each of them there, in the scenarios of its own test."""
CASES = [
    pytest.param(client, codec, marks=[] if CHECKED[client] == codec else pytest.mark.long)
    for client in CHECKED
    for codec in (CODECS if client != "kafkajs" else ("none", "gzip"))
]
"""KafkaJS has no other codec by itself."""
WITHOUT_NULL_HEADERS = ("kafka-python", "kafkajs")
"""They read headers that are null and refuse to write them."""


def messages() -> list[Message]:
    """Records whose key chooses the partition, of all kinds of content."""
    chance = random.Random(14)
    keys = [
        b"21",
        b"foobar",
        b"key-%d" % chance.randrange(99),
        "Příliš žluťoučký".encode(),
        "鍵🗝".encode(),
        b"\x00\xff",
    ]
    keys += [b"x" * length for length in range(1, 9)] + [chance.randbytes(17) for _ in range(30)]
    large = chance.randbytes(300).hex().encode() * 150  # LZ4 has larger blocks from 64 KiB on
    values = [b"", None, b"\x00", "Vltava – Moldau".encode(), chance.randbytes(3_000), large]
    headers = [
        [],
        [("empty", b"")],
        [("twice", b"1"), ("twice", b"2")],
        [("žluť", b"\xff"), ("none", None)],
        [("a", b"1"), ("b", b"2")],
    ]
    return [Message(key, values[at % 6], headers[at // 6 % 5], NOON_MS - at * 1_000) for at, key in enumerate(keys * 2)]


def command_of(client: str) -> tuple[list[str | Path], dict[str, str]]:
    """The program's command, and what it needs in its environment."""
    if client == "java":
        class_path = java_class(FOLDER / "Exact.java", kafka_jars(versions.KAFKA))
        return ["java", *QUICK_START, "-cp", class_path, "Exact"], {}
    if client == "kafkajs":
        node, modules = node_with(versions.KAFKAJS)
        return [node, FOLDER / "kafkajs.mjs"], {"NODE_PATH": str(modules)}
    pin, program = PYTHON[client]
    return [python_with(pin), FOLDER / program], {}


def run(client: str, verb: str, address: str, topic: str, codec: str, sent: Sequence[Message]) -> list[Message]:
    command, environment = command_of(client)
    done = subprocess.run(
        [*command, verb, address, topic, str(len(sent)), codec],
        input="\n".join(map(line, sent)) if verb == "write" else "",
        capture_output=True,
        text=True,
        timeout=stretched(100),
        env={**without_ours(os.environ), **environment},
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return [message(one) for one in done.stdout.splitlines() if one.startswith("[")]


def ours_read(address: str, topic: str, count: int) -> list[Message]:
    found: list[Message] = []
    with Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        while len(found) < count:
            found += [
                Message(r.key, r.value, r.headers, r.timestamp_ms, r.partition, r.offset) for r in consumer.poll()
            ]
    return found


def placed(sent: Sequence[Message]) -> list[Message]:
    """The messages where a partitioner like Java's puts them."""
    ends = [0] * PARTITIONS
    found = []
    for one in sent:
        partition = positive_hash(one.key or b"") % PARTITIONS
        found.append(one._replace(partition=partition, offset=ends[partition]))
        ends[partition] += 1
    return sorted(found, key=place)


def place(one: Message) -> tuple[int, int]:
    return one.partition, one.offset


@pytest.fixture
def crossed(broker: Broker | ForeignBroker, topic: str) -> str:
    with Admin(broker.address) as admin:
        admin.create_topic(topic, partitions=PARTITIONS)
    return topic


@pytest.mark.parametrize(("client", "codec"), CASES)
def test_another_client_reads_what_ours_writes(broker: Broker, crossed: str, client: str, codec: str) -> None:
    sent = messages()
    with Producer(broker.address, compression_type=codec) as producer:
        for one in sent:
            producer.send(crossed, one.value, one.key, headers=one.headers, timestamp_ms=one.timestamp_ms)
    assert sorted(run(client, "read", broker.address, crossed, codec, sent), key=place) == placed(sent)


@pytest.mark.parametrize(("client", "codec"), CASES)
def test_ours_reads_what_another_client_writes_and_both_choose_the_same_partitions(
    broker: Broker, crossed: str, client: str, codec: str
) -> None:
    sent = messages()
    if client in WITHOUT_NULL_HEADERS:
        sent = [one._replace(headers=[pair for pair in one.headers if pair[1] is not None]) for one in sent]
    run(client, "write", broker.address, crossed, codec, sent)
    assert sorted(ours_read(broker.address, crossed, len(sent)), key=place) == placed(sent)
