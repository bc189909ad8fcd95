"""A member that is kafka-python."""

import sys
import time
from pathlib import Path

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError
from noting import AGAIN_SECONDS, COMMIT_SECONDS, RECONNECT_MS_MAX, asked, complain, leaves, note
from options import options

sys.path.append(str(Path(__file__).parents[2] / "clients" / "drivers"))
from lost_joins import rejoin_if_lost

STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned: list) -> None:
        note("assigned", [one.partition for one in assigned])

    def on_partitions_revoked(self, revoked: list) -> None:
        note("revoked", [one.partition for one in revoked])


def made() -> KafkaConsumer:
    """A consumer; the broker may be away just now."""
    while True:
        try:
            return KafkaConsumer(**options(STRATEGIES), reconnect_backoff_max_ms=RECONNECT_MS_MAX)
        except KafkaError as error:
            complain(error)
            leaves.wait(AGAIN_SECONDS)


consumer = made()
consumer.subscribe([asked.topic], listener=Listener())


def polled() -> dict:
    """What has come; nothing while the broker is away, which poll raises."""
    try:
        return consumer.poll(100)
    except KafkaError as error:
        if not error.retriable:
            raise
        complain(error)
        leaves.wait(AGAIN_SECONDS)
        return {}


def commit() -> None:
    try:
        consumer.commit()
    except KafkaError as error:
        complain(error)


due, uncommitted = 0.0, False
while not leaves.is_set():
    for taken in polled().values():
        note("took", [[record.partition, record.offset] for record in taken])
        uncommitted = True
    rejoin_if_lost(consumer)
    if uncommitted and time.monotonic() > due:
        commit()
        due, uncommitted = time.monotonic() + COMMIT_SECONDS, False
note("leaves", [])
if uncommitted:
    commit()
consumer.close()
note("left", [])
