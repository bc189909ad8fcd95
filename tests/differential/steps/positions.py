"""Where records stand: offsets by name and by time, records deleted from the front, reads at every edge.

`rolled` has four segments, because a record more than a second after a segment's first one closes it:

    0-1  T0, T0+1                       2-4  T0+10 s ...   5  T0+5 s, older than those before it
    6-7  T0+20 s, gzip   8  T0+20.5 s   9  without a time  10 T0+40 s
"""

from moldau.protocol.apis import DELETE_RECORDS, FETCH, LIST_OFFSETS, PRODUCE
from tests.differential.batches import GZIP, T0, batch
from tests.differential.script import Step, step
from tests.differential.steps.fetch import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    at,
    delete,
    read,
    whole,
)
from tests.differential.steps.produce import to
from tests.differential.steps.topics import made, new

KINDS = {
    "the latest": (LATEST, 1),
    "the earliest": (EARLIEST, 1),
    "the largest time": (MAX_TIMESTAMP, 7),
    "the earliest here": (EARLIEST_LOCAL, 8),
    "the latest elsewhere": (LATEST_TIERED, 9),
    "the earliest to move": (EARLIEST_PENDING, 11),
}
"""How offsets are named, and since which version."""

CREATING = made(
    "for positions",
    new("rolled", segment_ms="1000"),
    new("cleared", segment_ms="1000"),
    new("hollow"),
    new("rolled-stamped", segment_ms="1000", message_timestamp_type="LogAppendTime"),
    new("many", index_interval_bytes="0", segment_index_bytes="80"),
    new("only-compacted", cleanup_policy="compact"),
    new("compacted-deleted", cleanup_policy="compact,delete"),
    new("no-times", segment_ms="1"),
    new("at-max", message_timestamp_after_max_ms=str(2**63 - 1)),
)

FILLING: tuple[Step, ...] = tuple(
    step(f"fill {topic}: {i}", PRODUCE, 8, to(topic, records))
    for topic, batches in (
        (
            "rolled",
            (
                batch(b"0", b"1"),
                batch(b"2", b"3", b"4", timestamp=T0 + 10_000),
                batch(b"5", timestamp=T0 + 5_000),
                batch(b"6", b"7", timestamp=T0 + 20_000, codec=GZIP),
                batch(b"8", timestamp=T0 + 20_500),
                batch(b"9", timestamp=-1, max_timestamp=-1),
                batch(b"10", timestamp=T0 + 40_000),
            ),
        ),
        ("cleared", (batch(b"0", b"1"), batch(b"2", timestamp=T0 + 10_000))),
        ("rolled-stamped", (batch(b"0", b"1"), batch(b"2", timestamp=T0 + 10_000))),
        ("many", [batch(*[b"%d" % i] * 3, timestamp=T0 + i * 100) for i in range(12)]),
        ("only-compacted", (batch((b"k", b"1"), (b"k", b"2")),)),
        ("compacted-deleted", (batch((b"k", b"1"), (b"k", b"2")),)),
        ("no-times", [batch(b"%d" % i, b"x", timestamp=-1, max_timestamp=-1) for i in range(3)]),
        ("at-max", (batch(b"x", timestamp=2**63 - 1), batch(b"y", timestamp=0))),
    )
    for i, records in enumerate(batches)
)

LISTING: tuple[Step, ...] = (
    *(
        step(f"{what} of {topic}, since v{version}", LIST_OFFSETS, version, at(topic, (0, kind)))
        for topic in ("rolled", "hollow", "many")
        for what, (kind, version) in KINDS.items()
    ),
    *(
        step(f"{what} of rolled, before v{version}", LIST_OFFSETS, version - 1, at("rolled", (0, kind)))
        for what, (kind, version) in KINDS.items()
        if version > 1
    ),
    *(
        step(f"{what} of rolled, committed", LIST_OFFSETS, 11, {**at("rolled", (0, kind)), "isolation_level": 1})
        for what, (kind, _) in KINDS.items()
    ),
    *(
        step(f"by time in rolled: T0 + {after}", LIST_OFFSETS, 7, at("rolled", (0, T0 + after)))
        for after in (-1, 0, 1, 2, 4999, 5000, 5001, 9999, 10_000, 10_001, 10_003, 20_000, 20_001, 20_002)
    ),
    *(
        step(f"by time in rolled, later: T0 + {after}", LIST_OFFSETS, 5, at("rolled", (0, T0 + after)))
        for after in (20_500, 20_501, 39_999, 40_000, 40_001)
    ),
    step("by the last time there is", LIST_OFFSETS, 7, at("rolled", (0, 2**63 - 1))),
    step("by the last time there is, where a record has it", LIST_OFFSETS, 7, at("at-max", (0, 2**63 - 1))),
    step("the largest time, where it is the last there is", LIST_OFFSETS, 7, at("at-max", (0, MAX_TIMESTAMP))),
    step("the largest time of records without times", LIST_OFFSETS, 7, at("no-times", (0, MAX_TIMESTAMP))),
    step("by time among records without times", LIST_OFFSETS, 7, at("no-times", (0, 0))),
    step("by time in what is empty", LIST_OFFSETS, 7, at("hollow", (0, T0))),
    step("by time where the broker stamps in segments", LIST_OFFSETS, 7, at("rolled-stamped", (0, T0))),
    step("by a time long past, committed", LIST_OFFSETS, 7, {**at("rolled", (0, 1)), "isolation_level": 1}),
    *(
        step(f"by time in many: T0 + {after}", LIST_OFFSETS, 7, at("many", (0, T0 + after)))
        for after in (101, 103, 599, 1102, 1103)
    ),
)

READING: tuple[Step, ...] = (
    *(step(f"fetch rolled from {offset}", FETCH, 12, read("rolled", offset)) for offset in range(12)),
    *(
        step(f"fetch rolled from 2, {size} bytes at most", FETCH, 12, read("rolled", 2, partition_max_bytes=size))
        for size in (1, 60, 61, 80, 100, 160)
    ),
    *(step(f"fetch many from {offset}", FETCH, 12, read("many", offset)) for offset in (0, 17, 35, 36, 37)),
    step("fetch many, some bytes from the middle", FETCH, 12, read("many", 16, partition_max_bytes=200)),
    step(
        "fetch two partitions of which the first fills the reply",
        FETCH,
        12,
        {
            **whole(
                [
                    {"topic": name, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 150}]}
                    for name in ("many", "rolled")
                ]
            ),
            "max_bytes": 150,
        },
    ),
    step("fetch what is empty", FETCH, 12, read("hollow")),
    step("fetch beyond what is empty", FETCH, 12, read("hollow", 1)),
)


def then(topic: str, what: str, *offsets: int) -> tuple[Step, ...]:
    """What a topic says after records of it were deleted."""
    return (
        *(
            step(f"{name} of {topic} after {what}", LIST_OFFSETS, 11 if kind < -5 else 9, at(topic, (0, kind)))
            for name, (kind, _) in KINDS.items()
            if kind != MAX_TIMESTAMP
        ),
        step(
            f"the largest time of what is left of {topic} after {what}", LIST_OFFSETS, 7, at(topic, (0, MAX_TIMESTAMP))
        ),
        step(f"by an early time in {topic} after {what}", LIST_OFFSETS, 7, at(topic, (0, T0))),
        step(f"by a later time in {topic} after {what}", LIST_OFFSETS, 7, at(topic, (0, T0 + 10_002))),
        *(step(f"fetch {topic} from {offset} after {what}", FETCH, 12, read(topic, offset)) for offset in offsets),
    )


DELETING: tuple[Step, ...] = (
    step("delete into the middle of a batch", DELETE_RECORDS, 2, delete("rolled", (0, 3))),
    *then("rolled", "deleting into a batch", 2, 3, 4),
    step("delete up to where a segment begins", DELETE_RECORDS, 1, delete("rolled", (0, 6))),
    *then("rolled", "deleting whole segments", 5, 6),
    step("delete one beyond the end", DELETE_RECORDS, 2, delete("rolled", (0, 12))),
    step("delete exactly to the end", DELETE_RECORDS, 2, delete("rolled", (0, 11))),
    *then("rolled", "deleting all", 10, 11, 12),
    step("produce after all is deleted", PRODUCE, 8, to("rolled", batch(b"11", timestamp=T0 + 50_000))),
    *then("rolled", "producing again", 10, 11, 12),
    step("delete all by its name", DELETE_RECORDS, 0, delete("cleared", (0, -1))),
    *then("cleared", "deleting all by name", 2, 3),
    step("delete from what is empty", DELETE_RECORDS, 2, delete("hollow", (0, 0))),
    step("delete all of what is empty", DELETE_RECORDS, 2, delete("hollow", (0, -1))),
    step("delete beyond what is empty", DELETE_RECORDS, 2, delete("hollow", (0, 1))),
    step("delete to minus two", DELETE_RECORDS, 2, delete("many", (0, -2))),
    step("delete to the smallest number", DELETE_RECORDS, 2, delete("many", (0, -(2**63)))),
    step("delete to the largest number", DELETE_RECORDS, 2, delete("many", (0, 2**63 - 1))),
    step("delete one partition twice in a request", DELETE_RECORDS, 2, delete("many", (0, 3), (0, 6))),
    step("delete what is only compacted", DELETE_RECORDS, 2, delete("only-compacted", (0, 1))),
    step("delete all of what is only compacted", DELETE_RECORDS, 0, delete("only-compacted", (0, -1))),
    step("delete what is compacted and deleted", DELETE_RECORDS, 2, delete("compacted-deleted", (0, 1))),
    step("fetch what is compacted and was deleted into", FETCH, 12, read("compacted-deleted", 1)),
)

STEPS: tuple[Step, ...] = (*CREATING, *FILLING, *LISTING, *READING, *DELETING)
