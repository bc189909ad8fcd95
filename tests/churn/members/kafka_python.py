"""A member that is kafka-python."""

import time

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError
from noting import COMMIT_SECONDS, RECONNECT_MS_MAX, asked, complain, leaves, note

STRATEGIES = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned: list) -> None:
        note("assigned", [one.partition for one in assigned])

    def on_partitions_revoked(self, revoked: list) -> None:
        note("revoked", [one.partition for one in revoked])


consumer = KafkaConsumer(
    bootstrap_servers=asked.bootstrap,
    group_id=asked.group,
    client_id=asked.client,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    session_timeout_ms=asked.session_ms,
    heartbeat_interval_ms=asked.heartbeat_ms,
    partition_assignment_strategy=[STRATEGIES[asked.strategy]],
    fetch_max_wait_ms=100,
    reconnect_backoff_max_ms=RECONNECT_MS_MAX,
)
consumer.subscribe([asked.topic], listener=Listener())


def commit() -> None:
    try:
        consumer.commit()
    except KafkaError as error:
        complain(error)


due, uncommitted = 0.0, False
while not leaves.is_set():
    for taken in consumer.poll(100).values():
        note("took", [[record.partition, record.offset] for record in taken])
        uncommitted = True
    if uncommitted and time.monotonic() > due:
        commit()
        due, uncommitted = time.monotonic() + COMMIT_SECONDS, False
note("leaves", [])
if uncommitted:
    commit()
consumer.close()
note("left", [])
