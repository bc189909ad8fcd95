"""Transactions from beginning to end: in each version, timed out, fenced, side by side, and over what is not there.

What Kafka 4.3.1 answers: a time-out of less than 1 ms or more than `transaction.max.timeout.ms` is 50. A transaction
that times out is aborted at the next epoch, and its producer is late (47, 90; EndTxn v5 48), but it may recover its id.
AddPartitionsToTxn with partitions that are not there adds none: those are 3, the others 55; one without partitions
begins the transaction; one without transactions gets no answer at all. A Produce for two producers is refused as a
whole, 49 for each partition. InitProducerId while a transaction is open aborts it and is 51 until that is done.
"""

from collections.abc import Iterator

from moldau.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DELETE_TOPICS,
    DESCRIBE_PRODUCERS,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    OFFSET_FETCH,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from tests.differential.batches import TRANSACTIONAL, batch
from tests.differential.script import Step, V, Variables, step
from tests.differential.steps.fetch import LATEST, read, read_by_id
from tests.differential.steps.transaction_offsets import offsets_of
from tests.differential.steps.transaction_requests import (
    BATCHED,
    IMPLICIT,
    PRODUCE_OF,
    add,
    add_offsets,
    commit,
    described,
    end,
    init,
    plus,
    records,
    started,
)

LIVES = "tx-lives"
MIXED = "tx-mixed"


def committed(topic: str, partition: int = 0, offset: int = 0) -> dict[str, object]:
    return {**read(topic, offset, partition), "isolation_level": 1}


def ends(topic: str, partition: int = 0, timestamp: int = LATEST, isolation: int = 1) -> dict[str, object]:
    parts = [{"partition_index": partition, "timestamp": timestamp}]
    return {"replica_id": -1, "isolation_level": isolation, "topics": [{"name": topic, "partitions": parts}]}


def life(version: int) -> Iterator[Step]:
    """Begun, written to, committed; a second one, aborted; recovered. `version` is that of most requests."""
    name, group = f"tx-life-{version}", f"tx-life-{version}-group"
    me, epoch = V(name), V(f"{name}-epoch")
    yield started(name, version, name)
    yield described(f"{name} begun", [name])
    for number, commits in enumerate((True, False)):
        which = f"v{version}: {'second' if number else 'first'} life:"
        if version < IMPLICIT:
            fields = add(version, name, me, epoch, {LIVES: [version]})
            yield step(f"{which} its partition", ADD_PARTITIONS_TO_TXN, version, fields)
        sequence = 0 if version >= IMPLICIT else 2 * number
        fields = records(name, me, epoch, sequence, (b"a", b"b"), LIVES, version)
        yield step(f"{which} its records", PRODUCE, PRODUCE_OF[version], fields)
        if version < IMPLICIT:
            yield step(f"{which} its group", ADD_OFFSETS_TO_TXN, min(version, 4), add_offsets(name, me, epoch, group))
        fields = commit(name, me, epoch, group, (0, 5 + number))
        yield step(f"{which} its offsets", TXN_OFFSET_COMMIT, version, fields)
        yield step(f"{which} ends for readers", LIST_OFFSETS, 7, ends(LIVES, version))
        yield step(f"{which} pending offsets", OFFSET_FETCH, 9, offsets_of(group, stable=True))
        saved = {epoch.name: "producer_epoch"} if version >= IMPLICIT else {}
        yield step(f"{which} its end", END_TXN, version, end(name, me, epoch, commits), save=saved)
        yield described(f"{name}, {which} ended", [name], "CompleteCommit" if commits else "CompleteAbort")
        fields = {"topics": [{"name": LIVES, "partition_indexes": [version]}]}
        yield step(f"{which} what the partition knows", DESCRIBE_PRODUCERS, 0, fields)
        yield step(f"{which} what readers get", FETCH, 12, committed(LIVES, version))
        yield step(f"{which} offsets of its group", OFFSET_FETCH, 9, offsets_of(group, stable=True), until=_stable)
    if version >= 3:
        fields = init(name, producer_id=me, producer_epoch=epoch)
        saved = {f"{name}-recovered": "producer_epoch"}
        yield step(f"v{version}: recovered", INIT_PRODUCER_ID, version, fields, save=saved)
        yield step(f"v{version}: recovered once more", INIT_PRODUCER_ID, version, fields)
        yield step(f"v{version}: partitions of before", ADD_PARTITIONS_TO_TXN, 3, add(3, name, me, epoch, {LIVES: [0]}))


def _stable(reply: dict[str, list[dict[str, list[dict[str, list[dict[str, int]]]]]]]) -> bool:
    return not any(p["error_code"] == 88 for g in reply["groups"] for t in g["topics"] for p in t["partitions"])


TIMED: tuple[Step, ...] = (
    *(
        step(f"v{version}: a time-out of {timeout_ms} ms", INIT_PRODUCER_ID, version, init("tx-timed", timeout_ms))
        for version in range(6)
        for timeout_ms in (0, -1, 900_001, 2**31 - 1)
    ),
    described("after wrong time-outs", ["tx-timed"]),
    step("a time-out without an id", INIT_PRODUCER_ID, 4, init(None, 900_001)),
    started("tx-timed", 4, "timed", timeout_ms=1),
    step("records that time out", PRODUCE, 12, records("tx-timed", V("timed"), 0, topic=MIXED, partition=2)),
    described("timed out", ["tx-timed"], "CompleteAbort"),
    step("records after the time-out", PRODUCE, 12, records("tx-timed", V("timed"), 0, 1, topic=MIXED, partition=2)),
    step(
        "older records after the time-out", PRODUCE, 9, records("tx-timed", V("timed"), 0, 1, topic=MIXED, partition=2)
    ),
    *(step(f"v{v}: the end after the time-out", END_TXN, v, end("tx-timed", V("timed"), 0)) for v in range(6)),
    *(
        step(
            f"v{v}: partitions after the time-out",
            ADD_PARTITIONS_TO_TXN,
            v,
            add(v, "tx-timed", V("timed"), 0, {MIXED: [2]}),
        )
        for v in range(6)
    ),
    step("what readers get of what timed out", FETCH, 12, committed(MIXED, 2)),
    step(
        "recovered after the time-out", INIT_PRODUCER_ID, 5, init("tx-timed", producer_id=V("timed"), producer_epoch=0)
    ),
    step("begun after the time-out", INIT_PRODUCER_ID, 5, init("tx-timed")),
)

FENCED: tuple[Step, ...] = (
    started("tx-fenced", 4, "fenced"),
    step("records before the fence", PRODUCE, 12, records("tx-fenced", V("fenced"), 0, topic=MIXED, partition=1)),
    step("the fence, while it is open", INIT_PRODUCER_ID, 4, init("tx-fenced")),
    step("the fence", INIT_PRODUCER_ID, 4, init("tx-fenced"), until=lambda reply: reply["error_code"] != 51),
    step("records after the fence", PRODUCE, 12, records("tx-fenced", V("fenced"), 0, 1, topic=MIXED, partition=1)),
    step(
        "older records after the fence", PRODUCE, 11, records("tx-fenced", V("fenced"), 0, 1, topic=MIXED, partition=1)
    ),
    step(
        "plain records after the fence",
        PRODUCE,
        11,
        records(None, V("fenced"), 0, 1, topic=MIXED, partition=1, attributes=0),
    ),
    *(step(f"v{v}: the end after the fence", END_TXN, v, end("tx-fenced", V("fenced"), 0)) for v in range(6)),
    step(
        "offsets after the fence", TXN_OFFSET_COMMIT, 5, commit("tx-fenced", V("fenced"), 0, "tx-fenced-group", (0, 1))
    ),
    step("what readers get behind the fence", FETCH, 12, committed(MIXED, 1)),
)


def plain(value: bytes) -> dict[str, object]:
    data = [{"name": MIXED, "partition_data": [{"index": 0, "records": batch(value)}]}]
    return {"acks": -1, "timeout_ms": 5000, "topic_data": data}


def _three(reply: dict[str, list[dict[str, list[dict[str, int]]]]]) -> bool:
    return reply["topics"][0]["partitions"][0]["offset"] == 11


BESIDE: tuple[Step, ...] = (
    *(started(f"tx-beside-{one}", 4, f"beside-{one}") for one in "abc"),
    step("plain records before all", PRODUCE, 8, plain(b"p0")),
    step("records of a", PRODUCE, 12, records("tx-beside-a", V("beside-a"), 0, 0, (b"a0",), MIXED)),
    step("records of b", PRODUCE, 12, records("tx-beside-b", V("beside-b"), 0, 0, (b"b0", b"b1"), MIXED)),
    step("plain records between them", PRODUCE, 8, plain(b"p1")),
    step("records of c", PRODUCE, 12, records("tx-beside-c", V("beside-c"), 0, 0, (b"c0",), MIXED)),
    step("more records of a", PRODUCE, 12, records("tx-beside-a", V("beside-a"), 0, 1, (b"a1",), MIXED)),
    step("b is aborted", END_TXN, 5, end("tx-beside-b", V("beside-b"), 0, False)),
    described("b aborted", ["tx-beside-b"], "CompleteAbort"),
    step("readers wait for a", FETCH, 12, committed(MIXED)),
    step("readers see the end before a", LIST_OFFSETS, 7, ends(MIXED)),
    step("a is committed", END_TXN, 5, end("tx-beside-a", V("beside-a"), 0)),
    described("a committed", ["tx-beside-a"], "CompleteCommit"),
    step("readers wait for c", FETCH, 12, committed(MIXED)),
    step("c is aborted", END_TXN, 5, end("tx-beside-c", V("beside-c"), 0, False)),
    described("c aborted", ["tx-beside-c"], "CompleteAbort"),
    step("plain records after all", PRODUCE, 8, plain(b"p2")),
    *(step(f"v{v}: what readers get in the end", FETCH, v, committed(MIXED)) for v in range(4, 13)),
    *(
        step(f"v{v}: what readers get in the end", FETCH, v, {**read_by_id(V("mixed")), "isolation_level": 1})
        for v in range(13, 19)
    ),
    *(step(f"all that is there from offset {at}", FETCH, 12, read(MIXED, at)) for at in (0, 5)),
    *(step(f"what readers get from offset {at}", FETCH, 12, committed(MIXED, 0, at)) for at in range(1, 11)),
    step(
        "what readers get in little pieces", FETCH, 12, {**read(MIXED, partition_max_bytes=150), "isolation_level": 1}
    ),
    *(step(f"v{v}: where readers end", LIST_OFFSETS, v, ends(MIXED)) for v in range(2, 12)),
    *(step(f"where readers are at {at}", LIST_OFFSETS, 7, ends(MIXED, timestamp=at)) for at in (-2, 0)),
)


def two(first: str, second: str) -> dict[str, object]:
    """One batch for each of two partitions, of two producers."""

    def made(producer: str) -> object:
        def records_of(variables: Variables) -> bytes:
            return batch(
                b"x", attributes=TRANSACTIONAL, base_sequence=0, producer_epoch=0, producer_id=variables[producer]
            )

        return records_of

    parts = [{"index": 0, "records": made(first)}, {"index": 1, "records": made(second)}]
    data = [{"name": "tx", "partition_data": parts}]
    return {"transactional_id": "tx-two", "acks": -1, "timeout_ms": 5000, "topic_data": data}


TWO = V("two")
ABSENT: tuple[Step, ...] = (
    started("tx-two", 4, "two"),
    started("tx-two-more", 4, "more"),
    *(step(f"v{v}: records of two producers", PRODUCE, v, two("two", "more")) for v in (8, 11, 12)),
    *(
        step(
            f"v{v}: partitions of which some are not there", ADD_PARTITIONS_TO_TXN, v, add(v, "tx-two", TWO, 0, topics)
        )
        for v in range(6)
        for topics in ({"tx": [0, 9], "absent": [0]},)
    ),
    *(step(f"v{v}: no partitions", ADD_PARTITIONS_TO_TXN, v, add(v, "tx-two", TWO, 0, {})) for v in range(6)),
    described("to which nothing was added", ["tx-two"]),
    *(
        step(
            f"v{v}: partitions of several transactions",
            ADD_PARTITIONS_TO_TXN,
            v,
            {
                "transactions": [
                    *_transactions("tx-two", "two", {"tx": [0]}),
                    *_transactions("tx-two-more", "more", {"tx": [1], "absent": [0]}),
                    *_transactions("tx-absent", "more", {"tx": [1]}),
                ]
            },
        )
        for v in (4, 5)
        for _transactions in (
            lambda name, producer, topics: add(BATCHED, name, V(producer), 0, topics)["transactions"],
        )
    ),
    step("partitions twice", ADD_PARTITIONS_TO_TXN, 3, add(3, "tx-two", TWO, 0, {"tx": [0, 0, 1]})),
    described("to which something was added", ["tx-two", "tx-two-more"]),
    step("the partitions of a topic that goes", ADD_PARTITIONS_TO_TXN, 3, add(3, "tx-two", TWO, 0, {"tx-doomed": [0]})),
    step("records of a topic that goes", PRODUCE, 9, records("tx-two", TWO, 0, topic="tx-doomed")),
    step("the topic goes", DELETE_TOPICS, 4, {"topic_names": ["tx-doomed"], "timeout_ms": 10_000}),
    step("the end without the topic", END_TXN, 4, end("tx-two", TWO, 0)),
    described("whose topic is gone", ["tx-two"], "CompleteCommit"),
    step("the epoch of it all", INIT_PRODUCER_ID, 4, init("tx-two", producer_id=TWO, producer_epoch=0)),
    step("the same again", INIT_PRODUCER_ID, 4, init("tx-two", producer_id=TWO, producer_epoch=0)),
    step(
        "an epoch that is none",
        INIT_PRODUCER_ID,
        4,
        init("tx-two", producer_id=TWO, producer_epoch=plus("two-epoch", 7)),
    ),
)

STEPS: tuple[Step, ...] = (*(one for version in range(6) for one in life(version)), *TIMED, *FENCED, *BESIDE, *ABSENT)
