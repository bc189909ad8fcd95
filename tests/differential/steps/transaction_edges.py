"""Where transactions meet the rest: acks, compression, many partitions, deleted records, markers for nobody.

What Kafka 4.3.1 does is what it does without transactions. Deleting records of an open transaction moves the log's
start, and the last stable offset with it. Clients may not add partitions of internal topics (29, the others 55). It
never answers WriteTxnMarkers that name a partition twice.
"""

from moldau.protocol.apis import (
    ADD_PARTITIONS_TO_TXN,
    DELETE_RECORDS,
    DESCRIBE_PRODUCERS,
    END_TXN,
    FETCH,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    WRITE_TXN_MARKERS,
)
from tests.differential.batches import GZIP, LOG_APPEND_TIME, TRANSACTIONAL, batch
from tests.differential.script import Step, V, Variables, silent, step
from tests.differential.steps.fetch import read
from tests.differential.steps.transaction_lives import committed, ends
from tests.differential.steps.transaction_requests import add, described, end, marker, records, started

TOPIC = "tx-edges"
NAME = "tx-edge"
ME, NOW = V("edge"), V("edge-epoch")


def many(what: str, version: int, *parts: tuple[str, int, int], acks: int = -1, codec: int = 0) -> Step:
    """(topic, partition, first sequence) of one request."""

    def of(sequence: int) -> object:
        def made(variables: Variables) -> bytes:
            who = {"producer_id": variables["edge"], "producer_epoch": variables["edge-epoch"]}
            return batch(b"m" * 100, attributes=TRANSACTIONAL, base_sequence=sequence, codec=codec, **who)

        return made

    topics: dict[str, list[object]] = {}
    for topic, index, sequence in parts:
        topics.setdefault(topic, []).append({"index": index, "records": of(sequence)})
    data = [{"name": topic, "partition_data": listed} for topic, listed in topics.items()]
    fields = {"transactional_id": NAME, "acks": acks, "timeout_ms": 5000, "topic_data": data}
    return step(f"v{version}: {what}", PRODUCE, version, fields)


def ended(what: str, commits: bool) -> tuple[Step, ...]:
    return (
        step(f"{what} ends", END_TXN, 5, end(NAME, ME, NOW, commits), save={"edge-epoch": "producer_epoch"}),
        described(f"{what} ended", [NAME], "CompleteCommit" if commits else "CompleteAbort"),
        step(f"committed records after {what}", FETCH, 12, committed(TOPIC)),
    )


ACKS: tuple[Step, ...] = (
    started(NAME, 4, "edge"),
    many("records for one acknowledgement", 12, (TOPIC, 0, 0), acks=1),
    silent("records for no acknowledgement", PRODUCE, 12, {**records(NAME, ME, NOW, 1, topic=TOPIC), "acks": 0}),
    step("late records for no acknowledgement", PRODUCE, 12, {**records(NAME, ME, -1, 2, topic=TOPIC), "acks": 0}),
    silent(
        "records for no acknowledgement that begin",
        PRODUCE,
        12,
        {**records(NAME, ME, NOW, 0, topic=TOPIC, partition=1), "acks": 0},
    ),
    step(
        "late records for no acknowledgement that begin",
        PRODUCE,
        12,
        {**records(NAME, ME, 17, 0, topic=TOPIC, partition=2), "acks": 0},
    ),
    step("records for two acknowledgements", PRODUCE, 12, {**records(NAME, ME, NOW, 2, topic=TOPIC), "acks": 2}),
    *ended("the one of acknowledgements", True),
)
MANY: tuple[Step, ...] = (
    many("compressed records", 12, (TOPIC, 0, 0), codec=GZIP),
    many(
        "records of many partitions, some not there",
        12,
        (TOPIC, 0, 1),
        (TOPIC, 1, 0),
        (TOPIC, 9, 0),
        ("absent", 0, 0),
        ("tx", 2, 0),
    ),
    many("records of many partitions, some out of order", 12, (TOPIC, 0, 2), (TOPIC, 1, 5), (TOPIC, 2, 5)),
    many("older records of many partitions, some not added", 11, (TOPIC, 0, 3), (TOPIC, 3, 0), ("tx-hanging", 0, 0)),
    *(
        step(
            f"v{version}: internal partitions",
            ADD_PARTITIONS_TO_TXN,
            version,
            add(version, NAME, ME, NOW, {"__consumer_offsets": [0], "__transaction_state": [1, 9], TOPIC: [0, 9]}),
        )
        for version in range(4)
    ),
    step(
        "records stamped by their client",
        PRODUCE,
        12,
        records(NAME, ME, NOW, 3, topic=TOPIC, attributes=TRANSACTIONAL | LOG_APPEND_TIME),
    ),
    described("of many partitions", [NAME]),
    *ended("the one of many partitions", False),
)
DELETED: tuple[Step, ...] = (
    many("records that are deleted while they are open", 12, (TOPIC, 3, 0)),
    many("more of them", 12, (TOPIC, 3, 1)),
    step(
        "the open ones are deleted",
        DELETE_RECORDS,
        2,
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 3, "offset": 1}]}], "timeout_ms": 5000},
    ),
    step("committed ends once they are deleted", LIST_OFFSETS, 7, ends(TOPIC, 3)),
    step("committed records once they are deleted", FETCH, 12, committed(TOPIC, 3, 1)),
    step(
        "all open ones are deleted",
        DELETE_RECORDS,
        2,
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 3, "offset": -1}]}], "timeout_ms": 5000},
    ),
    step("committed ends once all are deleted", LIST_OFFSETS, 7, ends(TOPIC, 3)),
    step("committed records once all are deleted", FETCH, 12, committed(TOPIC, 3, 2)),
    step("all records once all are deleted", FETCH, 12, read(TOPIC, 2, 3)),
    step(
        "producers once all are deleted", DESCRIBE_PRODUCERS, 0, {"topics": [{"name": TOPIC, "partition_indexes": [3]}]}
    ),
    many("records behind deleted ones", 12, (TOPIC, 3, 2)),
    *ended("the one of deleted records", False),
    step("committed records behind deleted ones", FETCH, 12, committed(TOPIC, 3, 2)),
    step(
        "the end of an epoch with markers",
        OFFSET_FOR_LEADER_EPOCH,
        4,
        {
            "replica_id": -1,
            "topics": [
                {"topic": TOPIC, "partitions": [{"partition": 3, "current_leader_epoch": -1, "leader_epoch": 0}]}
            ],
        },
    ),
)
INSIDE: tuple[Step, ...] = (
    started("tx-inside", 4, "inside"),
    step(
        "records of an internal topic", PRODUCE, 12, records("tx-inside", V("inside"), 0, topic="__transaction_state")
    ),
    step("records of the other", PRODUCE, 12, records("tx-inside", V("inside"), 0, topic="__consumer_offsets")),
    step("internal topics have no transactions", END_TXN, 5, end("tx-inside", V("inside"), 0, False)),
    described("without records in internal topics", ["tx-inside"], "CompleteAbort"),
)
NOBODY: tuple[Step, ...] = tuple(
    step(f"v{version}: markers of {what}", WRITE_TXN_MARKERS, version, {"markers": [fields]})
    for version in (1, 2)
    for what, fields in (
        ("no producer for what is not there", marker(-1, 0, {"absent": [0], TOPIC: [2, 9]})),
        ("no epoch for what is not there", marker(987001, -1, {"absent": [0], TOPIC: [9]})),
        ("one for a topic that cannot be", marker(987001, 0, {"a b": [0], "": [0]})),
        (
            "one for internal topics",
            marker(987001, 0, {"__transaction_state": [0, 3], "__consumer_offsets": [1]}, True),
        ),
    )
) + (
    step(
        "producers of internal topics",
        DESCRIBE_PRODUCERS,
        0,
        {"topics": [{"name": "__transaction_state", "partition_indexes": [9]}]},
    ),
    step(
        "producers of what has markers only",
        DESCRIBE_PRODUCERS,
        0,
        {"topics": [{"name": TOPIC, "partition_indexes": [2]}]},
    ),
)

STEPS: tuple[Step, ...] = (*ACKS, *MANY, *DELETED, *INSIDE, *NOBODY)
