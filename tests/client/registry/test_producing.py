"""Producers with the serializers of a registry: each topic's schema, tables, asyncio; and the examples of the page."""

import asyncio
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from harness.pages import examples
from harness.patience import stretched
from harness.small_registry import SmallRegistry
from moldau import Consumer, Producer, TopicPartition, aio
from moldau.serializers import AvroDeserializer, AvroSerializer, RegistryUnavailable, SchemaRegistry
from moldau.testing import Broker

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def values(address: str, topic: str, count: int, registry: SchemaRegistry) -> list[object]:
    with Consumer(address, auto_offset_reset="earliest", value_deserializer=AvroDeserializer(registry)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[object] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll()]
        return found


def test_rows_lists_and_tables_are_serialized_for_their_topic(address: str, registry: SchemaRegistry) -> None:
    with Producer(address, value_serializer=AvroSerializer(registry, NUMBER)) as producer:
        producer.send_table("mixed", pa.table({"value": [{"n": 0}]}))
        producer.send_many("mixed", [{"n": 1}])
        producer.send("mixed", {"n": 2})
        producer.send("other", {"n": 3}, key=b"k")
        producer.flush()
    assert values(address, "mixed", 3, registry) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert registry.subjects() == ["mixed-value", "other-value"]


def test_a_registry_that_is_down_is_an_error_of_send_and_the_next_send_asks_again(
    address: str, small: SmallRegistry
) -> None:
    small.answers = [(503, b"")]
    with Producer(address, value_serializer=AvroSerializer(SchemaRegistry(small.url), NUMBER)) as producer:
        with pytest.raises(RegistryUnavailable, match="HTTP 503"):
            producer.send("late", {"n": 1})
        producer.send("late", {"n": 2}).result(stretched())


def test_on_asyncio_the_registry_is_asked_outside_of_the_loop(
    address: str, small: SmallRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    serializer = AvroSerializer(SchemaRegistry(small.url), NUMBER)
    bind = serializer._bind
    monkeypatch.setattr(serializer, "_bind", lambda *of: (threads.append(threading.current_thread()), bind(*of))[1])

    async def send() -> None:
        async with aio.Producer(address, value_serializer=serializer) as producer:
            await producer.send_many("asked", [{"n": 1}])
            await (await producer.send("asked", {"n": 2}))

    asyncio.run(send())
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


def test_the_examples_of_the_page_run(address: str, small: SmallRegistry) -> None:
    space: dict[str, object] = {"__name__": "example"}
    for _, code in examples("schemas.md"):
        exec(code.replace("localhost:9092", address).replace("http://localhost:8081", small.url), space)
