"""A member that is confluent-kafka, of the classic or the consumer protocol."""

from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from noting import AGAIN_SECONDS, COMMIT_SECONDS, RECONNECT_MS_MAX, asked, complain, leaves, note

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
if asked.instance is not None:
    settings["group.instance.id"] = asked.instance
if asked.protocol == "classic":
    settings |= {
        "session.timeout.ms": asked.session_ms,
        "heartbeat.interval.ms": asked.heartbeat_ms,
        "partition.assignment.strategy": asked.strategy,
    }


def noting(what: str) -> Any:
    return lambda _, partitions: note(what, [one.partition for one in partitions])


def read(consumer: Consumer) -> KafkaError | None:
    """Until it is asked to leave, or for what it can go on no longer."""
    while not leaves.is_set():
        message = consumer.poll(0.1)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            complain(error)
            if error.code() == KafkaError._FATAL:
                return error
            continue
        note("took", [[message.partition(), message.offset()]])
        try:
            consumer.store_offsets(offsets=[TopicPartition(asked.topic, message.partition(), message.offset() + 1)])
        except KafkaException as refused:  # the partition has just been taken away
            complain(refused)
    note("leaves", [])
    return None


def live() -> KafkaError | None:
    consumer = Consumer(settings)
    consumer.subscribe([asked.topic], on_assign=noting("assigned"), on_revoke=noting("revoked"), on_lost=noting("lost"))
    error = read(consumer)
    consumer.close()
    return error


while (error := live()) is not None:
    if "still used" not in error.str():
        note("fenced", [error.str()])
        break
    note("refused", [error.str()])
    if not asked.patient or leaves.wait(AGAIN_SECONDS):
        break
note("left", [])
