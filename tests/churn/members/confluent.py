"""A member that is confluent-kafka, of the classic or the newer protocol."""

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from noting import COMMIT_SECONDS, RECONNECT_MS_MAX, asked, complain, leaves, note

settings: dict[str, Any] = {
    "bootstrap.servers": asked.bootstrap,
    "group.id": asked.group,
    "client.id": asked.client,
    "group.protocol": asked.protocol,
    "auto.offset.reset": "earliest",
    "enable.auto.offset.store": False,
    "auto.commit.interval.ms": round(COMMIT_SECONDS * 1000),
    "fetch.wait.max.ms": 100,
    "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
    "topic.metadata.refresh.interval.ms": 5000,
}
if asked.protocol == "classic":
    settings |= {
        "session.timeout.ms": asked.session_ms,
        "heartbeat.interval.ms": asked.heartbeat_ms,
        "partition.assignment.strategy": asked.strategy,
    }


def noting(what: str) -> Any:
    return lambda _, partitions: note(what, [one.partition for one in partitions])


consumer = Consumer(settings)
consumer.subscribe([asked.topic], on_assign=noting("assigned"), on_revoke=noting("revoked"), on_lost=noting("lost"))
while not leaves.is_set():
    message = consumer.poll(0.1)
    if message is None:
        continue
    if message.error() is not None:
        complain(message.error())
        continue
    note("took", [[message.partition(), message.offset()]])
    try:
        consumer.store_offsets(offsets=[TopicPartition(asked.topic, message.partition(), message.offset() + 1)])
    except KafkaException as error:  # the partition has just been taken away
        complain(error)
note("leaves", [])
consumer.close()
note("left", [])
