"""The fixture `moldau_registry`, used as a user's test uses it."""

import asyncio

from moldau import Consumer, Producer, TopicPartition
from moldau.serializers import AvroDeserializer, AvroSerializer, Schema, SchemaRegistry
from moldau.testing import Broker, RunningRegistry


def test_serializers_use_the_registry_of_the_session(
    moldau_broker: Broker, moldau_registry: RunningRegistry, moldau_topic: str
) -> None:
    registry = SchemaRegistry(moldau_registry.url)
    with Producer(moldau_broker.bootstrap_servers, value_serializer=AvroSerializer(registry, '"string"')) as producer:
        producer.send(moldau_topic, "Vltava")
    reader = AvroDeserializer(registry)
    with Consumer(moldau_broker.bootstrap_servers, auto_offset_reset="earliest", value_deserializer=reader) as consumer:
        consumer.assign([TopicPartition(moldau_topic, 0)])
        assert next(iter(consumer)).value == "Vltava"


def test_a_registry_that_starts_again_has_its_schemas() -> None:
    with Broker(users={"ann": "ann-secret"}) as broker:
        registry = RunningRegistry(broker)
        with registry:
            assert SchemaRegistry(registry.url).register("s", Schema('"int"')) == 1

        async def again() -> None:
            async with registry:
                url = registry.url
                assert await asyncio.to_thread(lambda: SchemaRegistry(url).register("s", Schema('"int"'))) == 1

        asyncio.run(again())
