"""aiokafka writes and reads messages exactly: `aio.py write|read ADDRESS TOPIC COUNT CODEC`."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from exact import Message, run


async def send(address: str, topic: str, messages: list[Message], codec: str) -> None:
    compression = None if codec == "none" else codec
    async with AIOKafkaProducer(bootstrap_servers=address, compression_type=compression) as producer:
        for m in messages:
            await producer.send(topic, m.value, m.key, headers=m.headers, timestamp_ms=m.timestamp_ms)
        await producer.flush()


async def fetch(address: str, topic: str, count: int) -> list[Message]:
    found: list[Message] = []
    async with AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.unsubscribe()
        consumer.assign([TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)])
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=1_000)).values():
                found += [Message(r.key, r.value, list(r.headers), r.timestamp, r.partition, r.offset) for r in records]
    return found


run(
    lambda *arguments: asyncio.run(send(*arguments)),
    lambda *arguments: asyncio.run(fetch(*arguments)),
)
