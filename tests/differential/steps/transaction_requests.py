"""Requests of transactions as fields, in each generation of their versions, and the states that are waited for.

A transaction goes on being completed after EndTxn was answered, until its markers are written: whoever asks next waits
first until DescribeTransactions names the state.
"""

from collections.abc import Callable, Mapping

from moldau.protocol.apis import DESCRIBE_TRANSACTIONS, INIT_PRODUCER_ID
from tests.differential.batches import TRANSACTIONAL, batch
from tests.differential.script import Step, Tree, V, Variables, step

BATCHED = 4
"""The first version of AddPartitionsToTxn that names several transactions: what brokers send."""
IMPLICIT = 5
"""The first version of EndTxn and TxnOffsetCommit that only clients of transaction version 2 send."""
IMPLICIT_PRODUCE = 12
PRODUCE_OF = {0: 3, 1: 7, 2: 8, 3: 9, 4: 11, 5: IMPLICIT_PRODUCE}
"""The Produce that a client sends which ends its transactions in that version of EndTxn."""
Number = int | V | Callable[[Variables], int]


def init(name: str | None, timeout_ms: int = 600_000, **more: object) -> dict[str, object]:
    return {"transactional_id": name, "transaction_timeout_ms": timeout_ms, **more}


def of(name: str, producer: Number, epoch: Number) -> dict[str, object]:
    return {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch}


def add(
    version: int, name: str, producer: Number, epoch: Number, topics: Mapping[str, list[int]], verifies: bool = False
) -> dict[str, object]:
    listed = [{"name": topic, "partitions": partitions} for topic, partitions in topics.items()]
    if version >= BATCHED:
        return {"transactions": [{**of(name, producer, epoch), "verify_only": verifies, "topics": listed}]}
    return {f"v3_and_below_{key}": value for key, value in {**of(name, producer, epoch), "topics": listed}.items()}


def add_offsets(name: str, producer: Number, epoch: Number, group: str) -> dict[str, object]:
    return {**of(name, producer, epoch), "group_id": group}


def end(name: str, producer: Number, epoch: Number, commits: bool = True) -> dict[str, object]:
    return {**of(name, producer, epoch), "committed": commits}


def commit(
    name: str, producer: Number, epoch: Number, group: str, *offsets: tuple[int, int], **more: object
) -> dict[str, object]:
    """(partition, offset) of the topic `tx`; `more` says which member."""
    topic = str(more.pop("topic", "tx"))
    parts = [
        {"partition_index": index, "committed_offset": at, "committed_metadata": f"at-{at}"} for index, at in offsets
    ]
    return {**of(name, producer, epoch), "group_id": group, "topics": [{"name": topic, "partitions": parts}], **more}


def marker(
    producer: Number,
    epoch: Number,
    topics: Mapping[str, list[int]],
    commits: bool = False,
    coordinator_epoch: int = 0,
    **more: object,
) -> dict[str, object]:
    """What a coordinator writes into partitions; `more` is the transaction's version."""
    listed = [{"name": topic, "partition_indexes": partitions} for topic, partitions in topics.items()]
    said = {"producer_id": producer, "producer_epoch": epoch, "transaction_result": commits}
    return {**said, "topics": listed, "coordinator_epoch": coordinator_epoch, **more}


def records(
    name: str | None,
    producer: Number,
    epoch: Number,
    sequence: int = 0,
    values: tuple[bytes, ...] = (b"x",),
    topic: str = "tx",
    partition: int = 0,
    attributes: int = TRANSACTIONAL,
) -> dict[str, object]:
    """One batch for one partition."""

    def made(variables: Variables) -> bytes:
        known = {"producer_id": value_of(producer, variables), "producer_epoch": value_of(epoch, variables)}
        return batch(*values, attributes=attributes, base_sequence=sequence, **known)

    data = [{"name": topic, "partition_data": [{"index": partition, "records": made}]}]
    return {"transactional_id": name, "acks": -1, "timeout_ms": 5000, "topic_data": data}


def value_of(number: Number, variables: Variables) -> int:
    if isinstance(number, V):
        return int(variables[number.name])
    return number(variables) if callable(number) else number


def plus(name: str, more: int) -> Callable[[Variables], int]:
    """A variable and so much more."""
    return lambda variables: int(variables[name]) + more


def started(name: str, version: int, variable: str, **more: object) -> Step:
    """A producer begins: `variable` is its id, `variable`-epoch its epoch."""
    return step(
        f"{name} is begun by InitProducerId v{version}",
        INIT_PRODUCER_ID,
        version,
        init(name, **more),  # type: ignore[arg-type]
        save={variable: "producer_id", f"{variable}-epoch": "producer_epoch"},
    )


def in_state(*states: str) -> Callable[[Tree], bool]:
    return lambda reply: all(one["transaction_state"] in states for one in reply["transaction_states"])


def described(what: str, names: list[str], *states: str) -> Step:
    """Transactions described, once they are in one of the states."""
    until = in_state(*states) if states else None
    return step(f"described {what}", DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": names}, until=until)
