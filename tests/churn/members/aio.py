"""A member that is aiokafka."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError
from noting import AGAIN_SECONDS, COMMIT_SECONDS, asked, complain, leaves, note
from options import options

STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):
    async def on_partitions_assigned(self, assigned: set) -> None:
        note("assigned", [one.partition for one in assigned])

    async def on_partitions_revoked(self, revoked: set) -> None:
        note("revoked", [one.partition for one in revoked])


async def started() -> AIOKafkaConsumer:
    """A consumer that has found the broker, which may be away just now."""
    while True:
        consumer = AIOKafkaConsumer(**options(STRATEGIES))
        consumer.subscribe([asked.topic], listener=Listener())
        try:
            await consumer.start()
        except KafkaError as error:
            complain(error)
            await consumer.stop()
            await asyncio.sleep(AGAIN_SECONDS)
        else:
            return consumer


async def main() -> None:
    consumer = await started()

    async def commit() -> None:
        try:
            await consumer.commit()
        except KafkaError as error:
            complain(error)

    due, uncommitted = 0.0, False
    while not leaves.is_set():
        for taken in (await consumer.getmany(timeout_ms=100)).values():
            note("took", [[record.partition, record.offset] for record in taken])
            uncommitted = True
        if uncommitted and time.monotonic() > due:
            await commit()
            due, uncommitted = time.monotonic() + COMMIT_SECONDS, False
    note("leaves", [])
    if uncommitted:
        await commit()
    await consumer.stop()
    note("left", [])


asyncio.run(main())
