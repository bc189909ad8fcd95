"""Offsets by time where there is much to look at: large batches in every codec, times that do not rise, markers.

`large` has four batches of 3,000 records each, whose times do not rise, neither in a batch nor from one to the next:
batch n of `STARTS` begins at offset 3,000 n and holds the milliseconds STARTS[n] ... STARTS[n] + 2999 after T0.
"""

from moldau.protocol.apis import DELETE_RECORDS, END_TXN, FIND_COORDINATOR, LIST_OFFSETS, PRODUCE
from tests.differential.batches import GZIP, SNAPPY, T0, ZSTD, batch, record
from tests.differential.script import Step, V, step
from tests.differential.steps.fetch import MAX_TIMESTAMP, at, delete
from tests.differential.steps.produce import to
from tests.differential.steps.topics import made, new
from tests.differential.steps.transaction_requests import IMPLICIT_PRODUCE, end, records, started

RECORDS = 3000
STARTS = {20_000: GZIP, 0: SNAPPY, 10_000: 0, 30_000: ZSTD}
DELTAS = tuple(i * 7919 % RECORDS for i in range(RECORDS))
BODY = b"".join(record((None, b"%040d" % (i * 7919)), i, delta) for i, delta in enumerate(DELTAS))
ROWS = (b"",) * RECORDS
TIMES = (
    -1,
    0,
    1,
    2998,
    2999,
    3000,
    10_000,
    12_345,
    19_999,
    20_000,
    20_001,
    22_998,
    22_999,
    23_000,
    30_000,
    32_999,
    33_000,
)

CREATING = made("for times", new("large"), new("sparse", index_interval_bytes="100000000"), new("ended"))

FILLING: tuple[Step, ...] = (
    *(
        step(
            f"fill large: {after}",
            PRODUCE,
            8,
            to("large", batch(*ROWS, body=BODY, codec=codec, timestamp=T0 + after, max_timestamp=T0 + after + 2999)),
        )
        for after, codec in STARTS.items()
    ),
    *(
        step(f"fill sparse: {number}", PRODUCE, 8, to("sparse", batch(b"x" * 3000, timestamp=T0 + after)))
        for number, after in enumerate((5000, *range(40), 5001, *range(40)))
    ),
)


def asked(topic: str, what: str, *times: int) -> tuple[Step, ...]:
    return (
        step(f"the largest time in {topic}, {what}", LIST_OFFSETS, 7, at(topic, (0, MAX_TIMESTAMP))),
        *(step(f"T0 + {after} in {topic}, {what}", LIST_OFFSETS, 7, at(topic, (0, T0 + after))) for after in times),
    )


ME = V("timed"), V("timed-epoch")
IN_TRANSACTIONS: tuple[Step, ...] = (
    step(
        "a coordinator for timed",
        FIND_COORDINATOR,
        4,
        {"key_type": 1, "coordinator_keys": ["timed"]},
        until=lambda reply: reply["coordinators"][0]["error_code"] == 0,
    ),
    started("timed", 4, "timed"),
    step("a record in a transaction", PRODUCE, IMPLICIT_PRODUCE, records("timed", *ME, topic="ended")),
    step("a time in a transaction that is open", LIST_OFFSETS, 7, at("ended", (0, T0))),
    step(
        "a time in a transaction that is open, committed",
        LIST_OFFSETS,
        7,
        {**at("ended", (0, T0)), "isolation_level": 1},
    ),
    step("the transaction is aborted", END_TXN, 4, end("timed", *ME, commits=False)),
    step(
        "a time in a transaction that was aborted, committed",
        LIST_OFFSETS,
        7,
        {**at("ended", (0, T0)), "isolation_level": 1},
        until=lambda reply: reply["topics"][0]["partitions"][0]["offset"] >= 0,
    ),
    step("a time that only the marker reaches", LIST_OFFSETS, 7, at("ended", (0, T0 + 1000))),
)

STEPS: tuple[Step, ...] = (
    *CREATING,
    *FILLING,
    *asked("large", "all of it", *TIMES),
    *asked("sparse", "all of it", 0, 39, 40, 4999, 5000, 5001, 5002),
    step("delete from the front of large", DELETE_RECORDS, 2, delete("large", (0, 1500))),
    *asked("large", "from the middle of a batch", *TIMES),
    step("delete a batch of large", DELETE_RECORDS, 2, delete("large", (0, 4000))),
    *asked("large", "from the second batch on", *TIMES),
    step("delete from the front of sparse", DELETE_RECORDS, 2, delete("sparse", (0, 42))),
    *asked("sparse", "without what was largest", 0, 39, 40, 5000),
)
