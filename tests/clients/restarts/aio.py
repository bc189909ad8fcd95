"""aiokafka lives through restarts; see `lasting.py`."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from lasting import BOOTSTRAP, GROUP, PARTITIONS, PAUSE_S, TOPIC, notes

REQUEST_MS_MAX = 300_000
"""aiokafka gives a record up after this time; its default is 40 s, less than a busy machine may need for a restart."""


async def produce() -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=BOOTSTRAP, enable_idempotence=True, acks="all", request_timeout_ms=REQUEST_MS_MAX
    ) as producer:
        while not notes.ends.is_set():
            number, notes.sent = notes.sent, notes.sent + 1
            sent = await producer.send(TOPIC, str(number).encode(), partition=number % PARTITIONS)
            sent.add_done_callback(lambda one, number=number: notes.told(number, one.exception()))
            await asyncio.sleep(PAUSE_S)
        await producer.flush()


async def consume() -> None:
    async with AIOKafkaConsumer(
        TOPIC, bootstrap_servers=BOOTSTRAP, group_id=GROUP, auto_offset_reset="earliest"
    ) as consumer:
        while not notes.complete:
            try:
                taken = await consumer.getmany(timeout_ms=100)
            except KafkaError as error:
                if not error.retriable:
                    raise
                print(repr(error), file=sys.stderr)
            else:
                notes.read([record.value for records in taken.values() for record in records])


async def both() -> None:
    await asyncio.gather(produce(), consume())


asyncio.run(both())
