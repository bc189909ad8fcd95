"""Producer ids, and records produced: in every shape that is right, and every one that is refused."""

from collections.abc import Callable

from moldau.protocol.apis import INIT_PRODUCER_ID, PRODUCE
from tests.differential.batches import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NOW,
    SNAPPY,
    T0,
    TRANSACTIONAL,
    ZSTD,
    batch,
    record,
)
from tests.differential.script import Step, V, Variables, silent, step
from tests.differential.steps.topics import NOBODY

Records = bytes | None | Callable[[Variables], bytes]


def to(topic: str, records: Records, partition: int = 0, acks: int = -1, **more: object) -> dict[str, object]:
    """A request for one partition."""
    data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
    return {"acks": acks, "timeout_ms": 5000, "topic_data": data, **more}


def by_id(topic_id: object, records: Records, partition: int = 0) -> dict[str, object]:
    data = [{"topic_id": topic_id, "partition_data": [{"index": partition, "records": records}]}]
    return {"acks": -1, "timeout_ms": 5000, "topic_data": data}


IDS: tuple[Step, ...] = (
    step(
        "a producer id in the oldest way", INIT_PRODUCER_ID, 0, {"transactional_id": None, "transaction_timeout_ms": 1}
    ),
    step(
        "a producer id",
        INIT_PRODUCER_ID,
        3,
        {"transactional_id": None, "transaction_timeout_ms": 60000},
        save={"producer": "producer_id"},
    ),
    step("another producer id", INIT_PRODUCER_ID, 5, {"transactional_id": None}, save={"other": "producer_id"}),
    step("a producer id for an empty name", INIT_PRODUCER_ID, 4, {"transactional_id": "", "transaction_timeout_ms": 1}),
    step(
        "a producer id for one that I name",
        INIT_PRODUCER_ID,
        4,
        {"transactional_id": None, "producer_id": V("producer"), "producer_epoch": 0},
    ),
    step("an epoch without an id", INIT_PRODUCER_ID, 4, {"transactional_id": None, "producer_epoch": 3}),
    step(
        "an id without an epoch",
        INIT_PRODUCER_ID,
        4,
        {"transactional_id": None, "producer_id": 5, "producer_epoch": -1},
    ),
)

GOOD: tuple[Step, ...] = (
    step("produce three records in the oldest way", PRODUCE, 3, to("events", batch(b"a", b"b", b"c"))),
    step("produce with keys", PRODUCE, 5, to("events", batch((b"k1", b"v1"), (b"k2", None)), acks=1)),
    step("produce zstd", PRODUCE, 7, to("events", batch(b"zstd" * 50, codec=ZSTD))),
    step("produce gzip", PRODUCE, 8, to("events", batch(b"gzip" * 50, b"x", codec=GZIP))),
    step("produce snappy", PRODUCE, 9, to("events", batch(b"snappy" * 50, codec=SNAPPY))),
    step("produce lz4", PRODUCE, 10, to("events", batch(b"lz4" * 50, codec=LZ4))),
    step("produce, newest by name", PRODUCE, 12, to("events", batch(b"by name"), 1)),
    step("produce, newest by id", PRODUCE, 13, by_id(V("events"), batch(b"by id"), 1)),
    step(
        "produce a record with headers",
        PRODUCE,
        12,
        to("events", batch(b"x", body=record((b"k", b"v"), 0, 0, [("h", b"1"), ("h", None), ("", b"")])), 1),
    ),
    silent("produce and ask for no answer", PRODUCE, 9, to("events", batch(b"silent"), 1, acks=0)),
    step(
        "produce to two topics and four partitions, half of which are not there",
        PRODUCE,
        8,
        {
            "acks": -1,
            "timeout_ms": 5000,
            "topic_data": [
                {
                    "name": "read",
                    "partition_data": [
                        {"index": 0, "records": batch(b"r0")},
                        {"index": 9, "records": batch(b"r9")},
                        {"index": 1, "records": batch(b"r1", b"r2")},
                    ],
                },
                {"name": "absent", "partition_data": [{"index": 0, "records": batch(b"none")}]},
            ],
        },
    ),
    step("produce where the broker stamps", PRODUCE, 8, to("stamped", batch(b"a", b"b"))),
    step("produce where the broker stamps, compressed", PRODUCE, 8, to("stamped", batch(b"a", b"b", codec=LZ4))),
    step("produce where the broker compresses", PRODUCE, 8, to("recompressed", batch(b"a" * 90, b"b"))),
    step(
        "produce with leader epoch and attributes of one's own", PRODUCE, 8, to("plain", batch(b"x", leader_epoch=77))
    ),
    step("produce with unused attribute bits", PRODUCE, 8, to("plain", batch(b"x", attributes=1 << 9))),
    step("produce without times", PRODUCE, 8, to("plain", batch(b"x", timestamp=-1, max_timestamp=-1))),
    step("produce a wrong largest time", PRODUCE, 8, to("plain", batch(b"x", b"y", max_timestamp=T0 + 999))),
    step("produce with bytes after the batch", PRODUCE, 8, to("plain", batch(b"before") + b"after")),
    step("produce nothing to nothing", PRODUCE, 8, {"acks": -1, "timeout_ms": 5000, "topic_data": []}),
    step("produce to fewer replicas than min.insync.replicas", PRODUCE, 8, to("cautious", batch(b"x"))),
    step("produce in no time", PRODUCE, 8, to("plain", batch(b"x"), timeout_ms=0)),
    step("produce in less than no time", PRODUCE, 8, to("plain", batch(b"x"), timeout_ms=-1)),
)

BAD: tuple[Step, ...] = (
    step("produce v0, which closes the connection", PRODUCE, 0, {"acks": 1}, connection="old"),
    step("produce v2, which closes the connection", PRODUCE, 2, {"acks": 1}, connection="old"),
    step("produce with acks of two", PRODUCE, 8, to("plain", batch(b"x"), acks=2)),
    step("produce with acks of minus two", PRODUCE, 13, {**by_id(V("plain"), batch(b"x")), "acks": -2}),
    step("produce to a topic that is not there", PRODUCE, 3, to("absent", batch(b"x"))),
    step("produce to a partition that is not there", PRODUCE, 8, to("plain", batch(b"x"), 7)),
    step("produce to a negative partition", PRODUCE, 8, to("plain", batch(b"x"), -1)),
    step("produce to a name that is none", PRODUCE, 8, to("a b", batch(b"x"))),
    step("produce to an id nobody has", PRODUCE, 13, by_id(NOBODY, batch(b"x"))),
    step("produce to the id of nothing", PRODUCE, 13, by_id(NOBODY.__class__(int=0), batch(b"x"))),
    step("produce more than fits", PRODUCE, 8, to("small", batch(b"x" * 600))),
    step("produce a null key where keys are needed", PRODUCE, 8, to("compacted", batch((b"k", b"v"), (None, b"w")))),
    step("produce too far in the future", PRODUCE, 8, to("strict", batch(b"a", b"b", timestamp=NOW + 3_600_000))),
    step("produce too far in the past", PRODUCE, 8, to("strict", batch(b"a", timestamp=NOW - 7_200_000_000))),
    step("produce to one's transaction without a name for it", PRODUCE, 8, to("plain", batch(b"x", attributes=16))),
) + tuple(
    step(f"produce what is no batch: {what}", PRODUCE, version, to("plain", records), wait_s=2)
    for what, version, records in (
        ("null", 8, None),
        ("nothing", 8, b""),
        ("a few bytes", 8, b"x" * 20),
        ("sixty bytes", 12, batch(b"x")[:60]),
        ("a batch cut short", 8, batch(b"x" * 100)[:-10]),
        ("two batches", 8, batch(b"x") + batch(b"y")),
        ("a base offset of its own", 8, batch(b"x", base_offset=5)),
        ("magic 0", 8, batch(b"x", magic=0)),
        ("magic 1", 8, batch(b"x", magic=1)),
        ("magic 5", 8, batch(b"x", magic=5)),
        ("a wrong CRC", 8, batch(b"x", crc=1)),
        ("a length of zero", 8, batch(b"x", length=0)),
        ("a negative length", 8, batch(b"x", length=-5)),
        ("a length of 48", 8, batch(b"x", length=48)),
        ("a length beyond the end", 8, batch(b"x", length=5000)),
        ("more records than there are", 8, batch(b"x", count=2, last_offset_delta=1)),
        ("fewer records than there are", 8, batch(b"x", b"y", count=1, last_offset_delta=0)),
        ("a count against the last offset", 8, batch(b"x", b"y", last_offset_delta=5)),
        ("a negative count", 8, batch(b"x", count=-1)),
        ("no record", 8, batch(count=0, last_offset_delta=-1)),
        ("no record, zero delta", 8, batch(count=0)),
        ("a control batch", 8, batch((b"\0\0\0\1", b"\0\0\0\0\0\0"), attributes=CONTROL | TRANSACTIONAL)),
        ("the broker's own time bit", 8, batch(b"x", attributes=LOG_APPEND_TIME)),
        ("a negative sequence with a producer id", 8, batch(b"x", producer_id=99, producer_epoch=0, base_sequence=-1)),
        ("a record longer than the batch", 8, batch(b"x", body=record((None, b"x"), 0, length=99))),
        ("a record shorter than it is", 8, batch(b"x", body=record((None, b"x"), 0, length=3))),
        ("a record of negative length", 8, batch(b"x", body=record((None, b"x"), 0, length=-1))),
        ("gzip that is none", 8, batch(b"x", attributes=GZIP)),
        ("zstd that is none", 8, batch(b"x", attributes=ZSTD)),
        ("zstd before it was known", 6, batch(b"x", codec=ZSTD)),
        ("records cut short inside gzip", 8, batch(b"x", b"y", codec=GZIP, body=record((None, b"x"), 0))),
    )
)


def sequenced(*rows: bytes, first: int, epoch: int = 0, who: str = "producer", **more: object) -> Records:
    return lambda v: batch(*rows, producer_id=v[who], producer_epoch=epoch, base_sequence=first, **more)


IDEMPOTENT: tuple[Step, ...] = (
    step("an idempotent batch", PRODUCE, 8, to("events", sequenced(b"a", b"b", first=0))),
    step("the same batch again", PRODUCE, 8, to("events", sequenced(b"a", b"b", first=0))),
    step("the next batch", PRODUCE, 8, to("events", sequenced(b"c", first=2))),
    step("an older duplicate", PRODUCE, 11, to("events", sequenced(b"a", b"b", first=0))),
    step("a gap in the sequence", PRODUCE, 8, to("events", sequenced(b"x", first=9))),
    step("part of a batch again", PRODUCE, 8, to("events", sequenced(b"b", first=1))),
    step("a newer epoch that does not begin at zero", PRODUCE, 8, to("events", sequenced(b"x", first=7, epoch=1))),
    step("a newer epoch", PRODUCE, 8, to("events", sequenced(b"new", first=0, epoch=1))),
    step("an older epoch", PRODUCE, 8, to("events", sequenced(b"old", first=3, epoch=0))),
    step(
        "a producer nobody knows begins in the middle", PRODUCE, 8, to("events", sequenced(b"m", first=5, who="other"))
    ),
    step("another partition begins anew", PRODUCE, 13, by_id(V("events"), sequenced(b"p1", first=0, epoch=1), 1)),
    step("the last sequence there is", PRODUCE, 8, to("read", sequenced(b"end", first=2**31 - 1, who="other"), 2)),
    step("sequences begin at zero again", PRODUCE, 8, to("read", sequenced(b"wrapped", first=0, who="other"), 2)),
    step("a negative epoch", PRODUCE, 8, to("events", sequenced(b"x", first=0, epoch=-1))),
    step(
        "two idempotent batches in a request",
        PRODUCE,
        8,
        to("events", lambda v: sequenced(b"x", first=1, epoch=1)(v) + sequenced(b"y", first=2, epoch=1)(v)),
    ),
)

STEPS: tuple[Step, ...] = (*IDS, *GOOD, *BAD, *IDEMPOTENT)
