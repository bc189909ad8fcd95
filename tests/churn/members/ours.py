"""A member that is Moldau's own consumer, of the classic or the consumer protocol."""

import time
from typing import Any

from noting import AGAIN_SECONDS, COMMIT_SECONDS, asked, complain, leaves, note

from moldau import Consumer
from moldau.errors import CommitFailed, FencedInstanceId, KafkaError, UnreleasedInstanceId

settings: dict[str, Any] = {
    "bootstrap.servers": asked.bootstrap,
    "group.id": asked.group,
    "client.id": asked.client,
    "group.protocol": asked.protocol,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.max.wait.ms": 100,
    "metadata.max.age.ms": 5000,
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
    return lambda partitions: note(what, [one.partition for one in partitions])


def commit(consumer: Consumer) -> None:
    """A refused commit is no failure: the group has gone on without this member."""
    try:
        consumer.commit()
    except CommitFailed as refused:
        complain(refused)


def read(consumer: Consumer) -> None:
    """Until it is asked to leave."""
    due, uncommitted = 0.0, False
    while not leaves.is_set():
        records = consumer.poll(100)
        if records:
            note("took", [[record.partition, record.offset] for record in records])
            uncommitted = True
        if uncommitted and time.monotonic() > due:
            commit(consumer)
            due, uncommitted = time.monotonic() + COMMIT_SECONDS, False
    note("leaves", [])
    if uncommitted:
        commit(consumer)


def live() -> KafkaError | None:
    """What it ended with; None if it was asked to leave. An error that passes is heard of and gone on from."""
    with Consumer(settings) as consumer:

        def revoked(partitions: list[Any]) -> None:
            note("revoked", [one.partition for one in partitions])
            commit(consumer)

        consumer.subscribe(asked.topic, on_assigned=noting("assigned"), on_revoked=revoked, on_lost=noting("lost"))
        while True:
            try:
                read(consumer)
            except (FencedInstanceId, UnreleasedInstanceId) as taken:
                return taken
            except KafkaError as error:
                if not error.retriable:
                    raise
                complain(error)
            else:
                return None


while (error := live()) is not None:
    if isinstance(error, FencedInstanceId):
        note("fenced", [str(error)])
        break
    note("refused", [str(error)])
    if not asked.patient or leaves.wait(AGAIN_SECONDS):
        break
note("left", [])
