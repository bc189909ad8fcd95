"""Records in transactions: batches of every producer in every state, what readers see, and what partitions know of it.

Produce of versions before 12 is a client's that has added its partitions; from 12 on the broker adds them. What Kafka
4.3.1 answers, for each partition:

    transactional bit, no transactional id   53 (null); an id that is empty 42, where it has to ask the coordinator
    transactional bit, producer id -1        taken, and nobody is asked
    no open transaction in the partition, so that the coordinator is asked: another's id or an unknown name 49; another
    epoch 47; the partition is not added 48, in v11 120, from v12 on it is added now
    a transaction is open in the partition, so that nobody is asked: the sequences decide (45), and the epoch (47)
    the first batch of a producer that the partition does not know, not at sequence 0, in a transaction   45
    a batch without the transactional bit while the producer has a transaction open there                 48
    the same batch again   its offset again, while the transaction is open; after its end as a new one: 48, 120, 47
"""

from collections.abc import Iterator

from moldau.protocol.apis import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_PRODUCERS,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    PRODUCE,
)
from tests.differential.batches import CONTROL, TRANSACTIONAL
from tests.differential.script import Step, V, step
from tests.differential.steps.fetch import LATEST, read
from tests.differential.steps.transaction_requests import (
    IMPLICIT_PRODUCE,
    Number,
    add,
    described,
    end,
    init,
    plus,
    records,
    started,
)

OLD = (3, 8, 10, 11)
PARTITIONS = {3: 0, 8: 1, 10: 2, 11: 3, 12: 4}
TOPIC = "tx-records"


def producers_of(*partitions: int, topic: str = TOPIC) -> dict[str, object]:
    return {"topics": [{"name": topic, "partition_indexes": list(partitions)}]}


def latest(*partitions: int, isolation: int = 0) -> dict[str, object]:
    parts = [{"partition_index": index, "timestamp": LATEST} for index in partitions]
    return {"replica_id": -1, "isolation_level": isolation, "topics": [{"name": TOPIC, "partitions": parts}]}


def wrongly(version: int) -> Iterator[Step]:
    """Batches that are refused, before, in and after a transaction."""
    name, partition = f"tx-records-{version}", PARTITIONS[version]
    me, epoch = V(name), V(f"{name}-epoch")
    yield started(name, 1, f"{name}-before")
    saved = {me.name: "producer_id", epoch.name: "producer_epoch"}
    yield step(f"{name} is begun again", INIT_PRODUCER_ID, 4, init(name), save=saved)

    def produced(what: str, by: tuple[str | None, Number, Number], sequence: int, **more: object) -> Step:
        fields = records(*by, sequence, topic=TOPIC, partition=int(str(more.pop("partition", partition))), **more)  # type: ignore[arg-type]
        return step(f"v{version}: records in a transaction {what}", PRODUCE, version, fields)

    def others(when: str) -> Iterator[Step]:
        yield produced(f"by another's id {when}", (name, 987654, epoch), 0)
        yield produced(f"by a later epoch {when}", (name, me, plus(epoch.name, 1)), 0)
        yield produced(f"by an earlier epoch {when}", (name, me, plus(epoch.name, -1)), 0)
        yield produced(f"by a name nobody has {when}", ("tx-absent", me, epoch), 0)
        yield produced(f"by no name {when}", ("", me, epoch), 0)
        yield produced(f"without a name {when}", (None, me, epoch), 0)
        yield produced(f"by no id {when}", (name, -1, -1), -1)

    right = (name, me, epoch)
    yield from others("before it")
    if version < IMPLICIT_PRODUCE:
        yield produced("before their partition is added", right, 0)
        fields = add(3, name, me, epoch, {TOPIC: [partition]})
        yield step(f"v{version}: the partition of records is added", ADD_PARTITIONS_TO_TXN, 3, fields)
    yield from others("at its begin")
    yield produced("that begin at five", right, 5)
    yield produced("that begin", right, 0, values=(b"a", b"b"))
    yield produced("that are a control batch", right, 2, attributes=TRANSACTIONAL | CONTROL)
    yield produced("that are in none", right, 2, attributes=0)
    yield produced("that are in none, without a name", (None, me, epoch), 2, attributes=0)
    yield produced("that go on", right, 2)
    yield produced("that come again", right, 2)
    yield produced("that leave a gap", right, 7)
    yield produced("in a partition that is not there", right, 0, partition=99)
    yield produced("in another partition", right, 0, partition=5)
    yield from others("within it")
    yield described(f"{name} with its records", [name])
    yield step(f"v{version}: producers within it", DESCRIBE_PRODUCERS, 0, producers_of(partition, 5))
    yield step(f"v{version}: committed ends within it", LIST_OFFSETS, 7, latest(partition, isolation=1))
    yield step(f"v{version}: ends within it", LIST_OFFSETS, 7, latest(partition))
    yield step(f"v{version}: committed records within it", FETCH, 12, committed(partition))
    ends = 5 if version >= IMPLICIT_PRODUCE else 3
    commits = version in (8, 11)
    saved = {"tx-next-epoch": "producer_epoch"} if ends == 5 else {}
    yield step(f"v{version}: the transaction of records ends", END_TXN, ends, end(name, me, epoch, commits), save=saved)
    yield described(f"{name} at its end", [name], "CompleteCommit" if commits else "CompleteAbort")
    yield step(f"v{version}: producers after it", DESCRIBE_PRODUCERS, 0, producers_of(partition, 5))
    yield step(f"v{version}: committed ends after it", LIST_OFFSETS, 7, latest(partition, isolation=1))
    yield step(f"v{version}: committed records after it", FETCH, 12, committed(partition))
    yield produced("that come again after it", right, 2)
    yield produced("that go on after it", right, 3)
    yield from others("after it")
    yield described(f"{name} after its end", [name])
    if ends == 5:
        yield produced("of the next transaction that go on", (name, me, V("tx-next-epoch")), 3)
        yield produced("of the next transaction", (name, me, V("tx-next-epoch")), 0)
        yield described(f"{name}, its next one", [name])


def committed(partition: int, offset: int = 0) -> dict[str, object]:
    return {**read(TOPIC, offset, partition), "isolation_level": 1}


STEPS: tuple[Step, ...] = (*(one for version in (*OLD, IMPLICIT_PRODUCE) for one in wrongly(version)),)
