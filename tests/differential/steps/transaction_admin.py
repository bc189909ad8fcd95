"""What administrators and brokers ask: transactions described and listed, producers of partitions, markers by hand.

What Kafka 4.3.1 answers to WriteTxnMarkers, where there is no authorizer, whoever asks: 3 for a partition that is not
there; 47 for an epoch below the producer's, or, in version 2 with transaction version 2, not above it while its
transaction is open; 52 for a coordinator's epoch below the last one's; -1 for a producer id, epoch or version below
zero; otherwise the marker is written, even for a producer that nobody is. Markers of one producer are answered as one.
"""

from moldau.protocol.apis import (
    DESCRIBE_PRODUCERS,
    FETCH,
    LIST_TRANSACTIONS,
    OFFSET_FETCH,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.fetch import read
from tests.differential.steps.transaction_offsets import offsets_of
from tests.differential.steps.transaction_requests import commit, described, marker, records, started

HANGING = "tx-hanging"


def listing(what: str, version: int, *states: str, **more: object) -> Step:
    fields: dict[str, object] = {"state_filters": list(states), **more}
    return step(f"v{version}: list transactions {what}", LIST_TRANSACTIONS, version, fields)


LISTING: tuple[Step, ...] = (
    started("tx-listed", 3, "listed"),
    started("tx-listed-open", 3, "open"),
    step("records of tx-listed-open", PRODUCE, 12, records("tx-listed-open", V("open"), 0, topic=HANGING)),
    step(
        "more records of tx-listed-open",
        PRODUCE,
        12,
        records("tx-listed-open", V("open"), 0, topic=HANGING, partition=1),
    ),
    described("by their names", ["tx-listed", "tx-listed-open"]),
    described("twice", ["tx-listed", "tx-listed"]),
    described("by names nobody has", ["tx-absent", "tx-listed", ""]),
    described("by none", []),
    *(listing("all", version) for version in (0, 1, 2)),
    *(listing("that are empty", version, "Empty") for version in (0, 1, 2)),
    *(listing("in states that are none", version, "ongoing", "nothing", "Ongoing") for version in (0, 1, 2)),
    *(listing("in a state that is none", version, "nothing") for version in (0, 1, 2)),
    *(listing(f"in state {state}", 2, state) for state in ("PrepareCommit", "PrepareAbort", "CompleteCommit")),
    *(listing(f"in state {state}", 2, state) for state in ("CompleteAbort", "Dead", "PrepareEpochFence")),
    *(listing("of a producer", version, producer_id_filters=[V("open")]) for version in (0, 1, 2)),
    *(listing("of producers", version, producer_id_filters=[V("open"), V("listed"), -1]) for version in (0, 1, 2)),
    *(listing("of a producer nobody is", version, producer_id_filters=[987654]) for version in (0, 1, 2)),
    *(listing("of a producer in a state", version, "Empty", producer_id_filters=[V("open")]) for version in (0, 1, 2)),
    *(listing("that last for hours", version, duration_filter=3_600_000) for version in (1, 2)),
    *(listing("that last at all", version, "Ongoing", duration_filter=0) for version in (1, 2)),
    *(listing("that last less than nothing", version, "Ongoing", duration_filter=-2) for version in (1, 2)),
    *(
        listing(f"by the pattern {pattern!r}", 2, transactional_id_pattern=pattern)
        for pattern in (
            "",
            "tx-listed",
            "tx-listed.*",
            ".*open",
            "open",
            "(",
            "*",
            "(?!x)y",
            "(?i)TX-LISTED",
            r"\w+-listed\b.*",
        )
    ),
    listing("by pattern and state", 2, "Ongoing", transactional_id_pattern="tx-listed.*"),
)


def producers(*partitions: int, topic: str = HANGING) -> dict[str, object]:
    return {"topics": [{"name": topic, "partition_indexes": list(partitions)}]}


def marking(what: str, version: int, *markers: dict[str, object]) -> Step:
    return step(f"v{version}: markers {what}", WRITE_TXN_MARKERS, version, {"markers": list(markers)})


HERE = {HANGING: [0]}
ME = V("hanging")
MARKING: tuple[Step, ...] = (
    started(HANGING, 3, "hanging"),
    step("records that hang", PRODUCE, 12, records(HANGING, ME, 0, topic=HANGING, values=(b"a", b"b"))),
    step("producers of a topic", DESCRIBE_PRODUCERS, 0, producers(0, 1, 2)),
    step("producers of partitions that are not there", DESCRIBE_PRODUCERS, 0, producers(0, 9, -1)),
    step("producers of a topic that is not there", DESCRIBE_PRODUCERS, 0, producers(0, topic="absent")),
    step("producers of a topic that cannot be", DESCRIBE_PRODUCERS, 0, producers(0, topic="a b")),
    step("producers of a topic without a name", DESCRIBE_PRODUCERS, 0, producers(0, topic="")),
    step("producers of no partition", DESCRIBE_PRODUCERS, 0, producers()),
    step("producers of no topic", DESCRIBE_PRODUCERS, 0, {"topics": []}),
    step("producers of a partition twice", DESCRIBE_PRODUCERS, 0, producers(0, 0)),
    *(
        one
        for version in (1, 2)
        for one in (
            marking("for nobody", version),
            marking("for no partition", version, marker(ME, 0, {})),
            marking("for a topic that is not there", version, marker(ME, 0, {"absent": [0]})),
            marking(
                "for a partition that is not there", version, marker(ME, 0, {HANGING: [0, 9]}, coordinator_epoch=-5)
            ),
            marking("for a negative partition", version, marker(ME, 0, {HANGING: [-1]})),
            marking("of an earlier epoch", version, marker(ME, -1, HERE)),
            marking("of a producer nobody is", version, marker(987654, 0, {HANGING: [2]}, coordinator_epoch=3)),
            marking("of an earlier coordinator", version, marker(987654, 0, {HANGING: [2]}, coordinator_epoch=2)),
            marking("of a coordinator below zero", version, marker(987655, 0, {HANGING: [2]}, coordinator_epoch=-1)),
            marking("of a producer below zero", version, marker(-1, 0, {HANGING: [2]})),
            marking(
                "of two producers",
                version,
                marker(987654, 1, {HANGING: [2]}, True, 3),
                marker(987656, 0, {HANGING: [2]}),
            ),
            marking(
                "of a producer twice",
                version,
                marker(987657, 0, {HANGING: [2]}),
                marker(987657, 0, {HANGING: [2]}, True),
            ),
        )
    ),
    step("producers that were given markers", DESCRIBE_PRODUCERS, 0, producers(0, 1, 2)),
    marking("of version 2 at the same epoch", 2, marker(ME, 0, HERE, transaction_version=2)),
    marking("of version 3 at the same epoch", 2, marker(ME, 0, HERE, transaction_version=3)),
    marking("of version -1 at the same epoch", 2, marker(ME, 0, {HANGING: [2]}, transaction_version=-1)),
    marking("of version 2 at the next epoch", 2, marker(ME, 1, HERE, transaction_version=2, coordinator_epoch=0)),
    step("producers of what hung", DESCRIBE_PRODUCERS, 0, producers(0)),
    step("committed records of what hung", FETCH, 12, {**read(HANGING), "isolation_level": 1}),
    described("what hung", [HANGING]),
    marking("of tx-listed-open as by hand", 1, marker(V("open"), 0, {HANGING: [0, 1]}, commits=True)),
    step("committed records of what was committed by hand", FETCH, 12, {**read(HANGING), "isolation_level": 1}),
    step("producers in the end", DESCRIBE_PRODUCERS, 0, producers(0, 1, 2)),
    described("what was committed by hand", ["tx-listed-open"]),
)

OFFSETS: tuple[Step, ...] = (
    started("tx-marked", 3, "marked"),
    step("offsets that hang", TXN_OFFSET_COMMIT, 5, commit("tx-marked", V("marked"), 0, "tx-marked-group", (0, 1))),
    described("with offsets that hang", ["tx-marked"]),
    step("offsets while they hang", OFFSET_FETCH, 9, offsets_of("tx-marked-group", stable=True)),
    *(
        marking(
            f"for offsets in partition {partition}",
            1,
            marker(V("marked"), 0, {"__consumer_offsets": [partition]}, True),
        )
        for partition in range(3)
    ),
    step("offsets that were committed by hand", OFFSET_FETCH, 9, offsets_of("tx-marked-group", stable=True)),
    marking("for offsets in no partition", 1, marker(V("marked"), 0, {"__consumer_offsets": [3]}, True)),
)

STEPS: tuple[Step, ...] = (*LISTING, *MARKING, *OFFSETS)
