"""Clients of both transaction versions with the same transactional ids: who upgrades, who goes back, who comes late.

Of version 2 are Produce 12, TxnOffsetCommit 5 and EndTxn 5, and what they end is ended at the next epoch; of version 1
whatever is older. What Kafka 4.3.1 does: the EndTxn alone decides at which epoch a transaction ends. A request of the
transaction before is late: 90 (47 in what is too old to know that), 47 in Produce and TxnOffsetCommit, and it changes
nothing of the one that is open.
"""

from collections.abc import Iterator

from moldau.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_PRODUCERS,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.fetch import read
from tests.differential.steps.transaction_requests import (
    IMPLICIT,
    IMPLICIT_PRODUCE,
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

TOPIC = "tx-mixtures"
MIXTURES = ((12, 3), (11, 5), (12, 5), (9, 1), (12, 4), (8, 5), (12, 5), (3, 0))
"""Versions of Produce and of EndTxn."""


def mixture(name: str, commits: bool, partition: int) -> Iterator[Step]:
    """One transaction after another, each by a client of other versions."""
    me, epoch = V(name), V(f"{name}-epoch")
    yield started(name, 3, name)
    sequence = 0
    for number, (produce, ends) in enumerate(MIXTURES):
        which = f"{name}, transaction {number}:"
        if produce < IMPLICIT_PRODUCE:
            fields = add(3, name, me, epoch, {TOPIC: [partition]})
            yield step(f"{which} its partition", ADD_PARTITIONS_TO_TXN, 3, fields)
        fields = records(name, me, epoch, sequence, (b"%d" % number,), TOPIC, partition)
        yield step(f"{which} its records by v{produce}", PRODUCE, produce, fields)
        saved = {epoch.name: "producer_epoch"} if ends >= IMPLICIT else {}
        sequence = 0 if ends >= IMPLICIT else sequence + 1
        fields = end(name, me, epoch, commits)
        yield step(f"{which} its end by v{ends}", END_TXN, ends, fields, save=saved)
        yield described(f"{which} ended", [name], "CompleteCommit" if commits else "CompleteAbort")
        fields = {"topics": [{"name": TOPIC, "partition_indexes": [partition]}]}
        yield step(f"{which} what the partition knows", DESCRIBE_PRODUCERS, 0, fields)
    fields = {**read(TOPIC, 0, partition), "isolation_level": 1}
    yield step(f"{name}: what readers get", FETCH, 12, fields)
    yield step(f"{name}: begun anew", INIT_PRODUCER_ID, 1, init(name))


LATE = "tx-late"
ME, NOW = V("late"), V("late-epoch")
LATELY: tuple[Step, ...] = (
    started(LATE, 4, "late"),
    step("records of the first", PRODUCE, 12, records(LATE, ME, 0, topic=TOPIC, partition=2)),
    step("the first ends", END_TXN, 5, end(LATE, ME, 0), save={"late-epoch": "producer_epoch"}),
    described("the first ended", [LATE], "CompleteCommit"),
    step("records of the second", PRODUCE, 12, records(LATE, ME, NOW, topic=TOPIC, partition=2)),
    *(
        step(f"v{version}: the first {'is committed' if commits else 'is aborted'} late", END_TXN, version, fields)
        for version in range(6)
        for commits in (True, False)
        for fields in (end(LATE, ME, 0, commits),)
    ),
    *(
        step(
            f"v{version}: records of the first come late",
            PRODUCE,
            version,
            records(LATE, ME, 0, 1, (b"late",), TOPIC, part),
        )
        for version in (3, 8, 11, 12)
        for part in (2,)
    ),
    *(
        step(f"v{version}: records of the first come late elsewhere", PRODUCE, version, fields)
        for version in (3, 8, 11, 12)
        for fields in (records(LATE, ME, 0, 0, (b"late",), TOPIC, 3),)
    ),
    *(
        step(
            f"v{version}: partitions of the first come late",
            ADD_PARTITIONS_TO_TXN,
            version,
            add(version, LATE, ME, 0, {"tx": [0]}),
        )
        for version in range(6)
    ),
    *(
        step(
            f"v{version}: offsets of the first are added late",
            ADD_OFFSETS_TO_TXN,
            version,
            add_offsets(LATE, ME, 0, "tx-late-group"),
        )
        for version in range(5)
    ),
    *(
        step(
            f"v{version}: offsets of the first come late",
            TXN_OFFSET_COMMIT,
            version,
            commit(LATE, ME, 0, "tx-late-group", (0, 1)),
        )
        for version in range(6)
    ),
    described("the second, which nobody changed", [LATE]),
    *(
        step(
            f"v{version}: the first recovers late",
            INIT_PRODUCER_ID,
            version,
            init(LATE, producer_id=ME, producer_epoch=0),
        )
        for version in (3,)
    ),
    described("the second, aborted by it", [LATE], "CompleteAbort"),
    step("the first recovers once more", INIT_PRODUCER_ID, 4, init(LATE, producer_id=ME, producer_epoch=0)),
    step("the second recovers", INIT_PRODUCER_ID, 4, init(LATE, producer_id=ME, producer_epoch=NOW)),
    step(
        "the second recovers further",
        INIT_PRODUCER_ID,
        4,
        init(LATE, producer_id=ME, producer_epoch=plus("late-epoch", 1)),
    ),
    step("and further", INIT_PRODUCER_ID, 5, init(LATE, producer_id=ME, producer_epoch=plus("late-epoch", 2))),
    described("after all of them", [LATE]),
    step("an empty one is aborted", END_TXN, 5, end(LATE, ME, plus("late-epoch", 2), False)),
    step("an empty one is aborted, later", END_TXN, 5, end(LATE, ME, plus("late-epoch", 3), False)),
    described("after what was empty", [LATE], "CompleteAbort"),
)

STEPS: tuple[Step, ...] = (*mixture("tx-mixture", True, 0), *mixture("tx-mixture-aborted", False, 1), *LATELY)
