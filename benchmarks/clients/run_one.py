"""Runs one way of one client in a process of its own, with whatever Python has that client: produces or reads a topic,
and prints how long it took and how much processor time, as JSON.

usage: python run_one.py WAY ADDRESS TOPIC PARTITIONS ROWS BYTES CODEC KEYED [fresh]

Without `fresh` each client has its imports, connections and metadata when the clocks start. With it they start with the
process, and leave out only the making of what is sent. Values are JSON that compresses to about a half. Nothing of
Moldau's benchmarks is imported here.
"""

import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

BEGAN = time.perf_counter()

CHUNK = 5_000
TUNED = {
    "fetch.queue.backoff.ms": 5, "queued.min.messages": 1_000_000, "queued.max.messages.kbytes": 1_000_000,
}  # fmt: skip
LINGER_MS = 5
BATCH_BYTES = 512 * 1024


class Job:
    """What is to be sent or read, and the clocks."""

    def __init__(self, arguments: list[str]):
        self.way, self.address, self.topic = arguments[:3]
        self.partitions, self.rows, self.bytes = (int(argument) for argument in arguments[3:6])
        self.codec, self.keyed = arguments[6], arguments[7] == "keyed"
        self.is_fresh = arguments[8:] == ["fresh"]
        self._began, self._cpu = BEGAN, 0.0

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """What is done in this block does not count."""
        began, cpu = time.perf_counter(), time.process_time()
        yield
        self._began += time.perf_counter() - began
        self._cpu += time.process_time() - cpu

    def contents(self) -> tuple[list[bytes], list[bytes | None]]:
        with self.making():
            chance = random.Random(7)
            filler = '"airline":"UA","origin":"EWR","destination":"IAH","carrier":"1545","delay":' * (self.bytes // 150)
            half = self.bytes // 2
            values = [f"{{{filler}{chance.getrandbits(4 * half):0{half}x}}}".encode() for _ in range(self.rows)]
            return values, [b"key-%d" % chance.randrange(100_000) if self.keyed else None for _ in values]

    def begin(self) -> None:
        """The client is warm."""
        if not self.is_fresh:
            self._began, self._cpu = time.perf_counter(), time.process_time()

    def end(self) -> None:
        seconds, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        print(json.dumps({"rate": self.rows / seconds, "cpu_us": cpu / self.rows * 1e6}))


def moldau_send(job: Job) -> None:
    import moldau

    values, keys = job.contents()
    called = [0]

    def delivered(error: object, _: object) -> None:
        called[0] += error is None

    with moldau.Producer(job.address, compression_type=job.codec, linger_ms=LINGER_MS) as producer:
        job.begin()
        send, topic = producer.send, job.topic
        if job.way == "moldau send, on_delivery":
            for value, key in zip(values, keys, strict=True):
                send(topic, value, key, on_delivery=delivered)
        else:
            for value, key in zip(values, keys, strict=True):
                send(topic, value, key)
        producer.flush()
        job.end()
    assert called[0] in (0, job.rows)


def moldau_table(job: Job) -> None:
    import pyarrow as pa

    import moldau
    from moldau.records.arrays import binaries

    values, keys = job.contents()
    with job.making():
        table = pa.Table.from_arrays([binaries(values), binaries(keys)], ["value", "key"])
    with moldau.Producer(job.address, compression_type=job.codec) as producer:
        if not job.is_fresh:
            producer.send_table(job.topic, table.slice(0, 1)).result()  # imports, and asks for metadata
            table = table.slice(1)
        job.begin()
        producer.send_table(job.topic, table).result()
        job.end()


def moldau_aio_send(job: Job) -> None:
    import moldau.aio

    values, keys = job.contents()

    async def run() -> None:
        async with moldau.aio.Producer(job.address, compression_type=job.codec, linger_ms=LINGER_MS) as producer:
            job.begin()
            for value, key in zip(values, keys, strict=True):
                await producer.send(job.topic, value, key)
            await producer.flush()
            job.end()

    asyncio.run(run())


def moldau_read(job: Job) -> None:
    import moldau

    with moldau.Consumer(job.address, auto_offset_reset="earliest") as consumer:
        consumer.assign([moldau.TopicPartition(job.topic, number) for number in range(job.partitions)])
        if not job.is_fresh:
            consumer.poll_table(0)  # imports pyarrow
        poll: Callable[[], Any] = consumer.poll_table if job.way == "moldau tables" else _polling(consumer)
        seen = 0
        job.begin()
        while seen < job.rows:
            seen += len(poll())
        job.end()


def _polling(consumer: Any) -> Callable[[], Any]:
    return lambda: consumer.poll(1_000, CHUNK)


def moldau_read_table(job: Job) -> None:
    import moldau

    if not job.is_fresh:
        moldau.read_table(job.topic, job.address, until=dict.fromkeys(range(job.partitions), 1))  # imports
    job.begin()
    assert len(moldau.read_table(job.topic, job.address)) == job.rows
    job.end()


def moldau_aio_read(job: Job) -> None:
    import moldau.aio

    async def run() -> None:
        async with moldau.aio.Consumer(job.address, auto_offset_reset="earliest") as consumer:
            consumer.assign([moldau.TopicPartition(job.topic, number) for number in range(job.partitions)])
            seen = 0
            job.begin()
            while seen < job.rows:
                seen += len(await consumer.poll(1_000, CHUNK))
            job.end()

    asyncio.run(run())


def confluent_send(job: Job) -> None:
    from confluent_kafka import Producer

    values, keys = job.contents()
    called = [0]

    def delivered(error: object, _: object) -> None:
        called[0] += error is None

    settings = {
        "bootstrap.servers": job.address, "compression.type": job.codec, "linger.ms": LINGER_MS, "acks": "all",
        "enable.idempotence": True, "batch.size": BATCH_BYTES, "queue.buffering.max.messages": 2_000_000,
        "queue.buffering.max.kbytes": 2_000_000, "batch.num.messages": 100_000,
    }  # fmt: skip
    producer = Producer(settings)
    if not job.is_fresh:
        producer.list_topics(job.topic, timeout=10)
    job.begin()
    produce, topic = producer.produce, job.topic
    if job.way == "confluent produce, on_delivery":
        for number, (value, key) in enumerate(zip(values, keys, strict=True)):
            produce(topic, value, key, on_delivery=delivered)
            if not number % 1_000:
                producer.poll(0)
    else:
        for value, key in zip(values, keys, strict=True):
            produce(topic, value, key)
    assert not producer.flush(60)
    job.end()
    assert called[0] in (0, job.rows)


def confluent_read(job: Job) -> None:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": job.address, "group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer({**settings, **(TUNED if job.way == "confluent consume(5000), tuned" else {})})
    if not job.is_fresh:
        consumer.list_topics(job.topic, timeout=10)
    seen = 0
    job.begin()
    consumer.assign([TopicPartition(job.topic, number, 0) for number in range(job.partitions)])
    while seen < job.rows:
        for message in consumer.consume(CHUNK, 1.0):
            assert message.error() is None
            message.value()
            seen += 1
    job.end()
    consumer.close()


def aiokafka_send(job: Job) -> None:
    from aiokafka import AIOKafkaProducer

    values, keys = job.contents()
    codec = None if job.codec == "none" else job.codec

    async def run() -> None:
        settings = {"linger_ms": LINGER_MS, "enable_idempotence": True, "max_batch_size": BATCH_BYTES}
        producer = AIOKafkaProducer(bootstrap_servers=job.address, compression_type=codec, **settings)
        await producer.start()
        if not job.is_fresh:
            await producer.partitions_for(job.topic)
        job.begin()
        for value, key in zip(values, keys, strict=True):
            await producer.send(job.topic, value, key)
        await producer.flush()
        job.end()
        await producer.stop()

    asyncio.run(run())


def aiokafka_read(job: Job) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=job.address, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([TopicPartition(job.topic, number) for number in range(job.partitions)])
        seen = 0
        job.begin()
        while seen < job.rows:
            found = await consumer.getmany(timeout_ms=1_000, max_records=CHUNK)
            seen += sum(len(records) for records in found.values())
        job.end()
        await consumer.stop()

    asyncio.run(run())


def kafka_python_send(job: Job) -> None:
    from kafka import KafkaProducer

    values, keys = job.contents()
    codec = None if job.codec == "none" else job.codec
    settings = {"linger_ms": LINGER_MS, "batch_size": BATCH_BYTES, "compression_type": codec, "acks": "all"}
    producer = KafkaProducer(bootstrap_servers=job.address, **settings)
    if not job.is_fresh:
        producer.partitions_for(job.topic)
    job.begin()
    for value, key in zip(values, keys, strict=True):
        producer.send(job.topic, value, key)
    producer.flush()
    job.end()
    producer.close()


def kafka_python_read(job: Job) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=job.address, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(job.topic, number) for number in range(job.partitions)])
    seen = 0
    job.begin()
    while seen < job.rows:
        seen += sum(len(records) for records in consumer.poll(1_000, max_records=CHUNK).values())
    job.end()
    consumer.close()


WAYS: dict[str, Callable[[Job], None]] = {
    "moldau send_table": moldau_table, "moldau send": moldau_send, "moldau send, on_delivery": moldau_send,
    "moldau.aio send": moldau_aio_send, "confluent produce": confluent_send,
    "confluent produce, on_delivery": confluent_send, "aiokafka send": aiokafka_send,
    "kafka-python send": kafka_python_send, "moldau tables": moldau_read, "moldau read_table": moldau_read_table,
    "moldau poll(5000)": moldau_read, "moldau.aio poll(5000)": moldau_aio_read,
    "confluent consume(5000)": confluent_read, "confluent consume(5000), tuned": confluent_read,
    "aiokafka getmany(5000)": aiokafka_read, "kafka-python poll(5000)": kafka_python_read,
}  # fmt: skip


if __name__ == "__main__":
    asked = Job(sys.argv[1:])
    WAYS[asked.way](asked)
