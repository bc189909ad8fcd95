"""A little of everything that a broker has metrics for: batches, reads, a group that is behind, a transaction."""

from moldau import TopicPartition
from moldau.aio import Consumer, Producer
from tests.handlers.living import Living

TOPIC, GROUP = "orders", "billing"
RECORDS, READ = 20, 5


async def some_traffic(alive: Living) -> None:
    """`RECORDS` records in partition 0 of `TOPIC`, of which `GROUP` has read and committed `READ`; a transaction of one
    record in another topic."""
    await alive.make(TOPIC, 2)
    await alive.make("paid")
    address = f"127.0.0.1:{alive.broker.port}"
    async with Producer(address) as producer:
        for number in range(RECORDS):
            await producer.send(TOPIC, f"{number}", partition=0)
    async with Producer(address, transactional_id="till") as producer:
        async with producer.transaction():
            await producer.send("paid", "1")
    async with Consumer(address, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        records = await consumer.poll(timeout_ms=10_000, max_records=READ)
        assert len(records) == READ
        await consumer.commit({TopicPartition(TOPIC, 0): READ})
