"""A member that is aiokafka."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError
from noting import COMMIT_SECONDS, asked, complain, leaves, note

STRATEGIES = {"range": RangePartitionAssignor, "sticky": StickyPartitionAssignor}


class Listener(ConsumerRebalanceListener):
    async def on_partitions_assigned(self, assigned: set) -> None:
        note("assigned", [one.partition for one in assigned])

    async def on_partitions_revoked(self, revoked: set) -> None:
        note("revoked", [one.partition for one in revoked])


async def main() -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=asked.bootstrap,
        group_id=asked.group,
        client_id=asked.client,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=asked.session_ms,
        heartbeat_interval_ms=asked.heartbeat_ms,
        partition_assignment_strategy=[STRATEGIES[asked.strategy]],
        fetch_max_wait_ms=100,
    )
    consumer.subscribe([asked.topic], listener=Listener())
    await consumer.start()

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
