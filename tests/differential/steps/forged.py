"""Batches that no client makes, and sequences in every order: forged headers and records, duplicates, gaps, epochs."""

from moldau.protocol.apis import DELETE_RECORDS, FETCH, LIST_OFFSETS, PRODUCE
from tests.differential.batches import GZIP, LZ4, SNAPPY, T0, ZSTD, batch, record, varint
from tests.differential.script import Step, collect, send, step
from tests.differential.steps.fetch import LATEST, at, delete, read
from tests.differential.steps.produce import to
from tests.differential.steps.topics import made, new

CREATING = made(
    "for forgers",
    new("forged"),
    new("forged-in-order"),
    new("sequenced", 3),
    new("sequenced-stamped", message_timestamp_type="LogAppendTime"),
    new("sequenced-rolled", segment_ms="1000"),
)

GOOD = record((b"k", b"v"), 0)
TWO = (b"x", b"y")


def bare(fields: bytes, length: int | None = None) -> bytes:
    """A record of these bytes behind its length."""
    return varint(len(fields) if length is None else length) + fields


def forged(body: bytes, count: int = 1, **wrong: int) -> bytes:
    """A batch whose header is right and whose records are these bytes."""
    return batch(*[b""] * count, body=body, **wrong)


HEADERS: tuple[tuple[str, bytes], ...] = (
    ("more records than there are, inside gzip", batch(*TWO, codec=GZIP, count=3, last_offset_delta=2)),
    ("fewer records than there are, inside zstd", batch(*TWO, codec=ZSTD, count=1, last_offset_delta=0)),
    ("a count of two thousand million", batch(b"x", count=2**31 - 1, last_offset_delta=2**31 - 2)),
    (
        "a count of two thousand million, inside gzip",
        batch(b"x", codec=GZIP, count=2**31 - 1, last_offset_delta=2**31 - 2),
    ),
    ("a last offset of minus one", batch(b"x", last_offset_delta=-1)),
    ("a last offset of two thousand million", batch(b"x", last_offset_delta=2**31 - 1)),
    ("a negative base offset", batch(b"x", base_offset=-1)),
    ("the last base offset there is", batch(b"x", base_offset=2**63 - 1)),
    ("a length one too small", batch(b"x", length=len(batch(b"x")) - 13)),
    ("a length one too large", batch(b"x", length=len(batch(b"x")) - 11)),
    ("a length of 49", batch(b"x", length=49)),
    ("a length of 13", batch(b"x", length=13)),
    ("a length of 14, and a negative one where it ends", batch(b"x", length=14, timestamp=T0 | 0xFF)),
    ("a length of 14, and magic 64 where it ends", batch(b"x", length=14, timestamp=T0 & ~0xFF | 0x40)),
    ("a length of 14, and magic 2 where it ends, that is none", batch(b"x", length=14, timestamp=T0 & ~0xFF | 2)),
    ("a length of 14, and magic 1 where it ends, that is none", batch(b"x", length=14, timestamp=T0 & ~0xFF | 1)),
    ("a length of 14, and magic 0 where it ends, that is none", batch(b"x", length=14, timestamp=T0 & ~0xFF)),
    ("the largest length, that is none", batch(b"x", length=2**31 - 1)),
    ("the smallest length there is", batch(b"x", length=-(2**31))),
    ("magic minus one", batch(b"x", magic=-1)),
    ("magic 3", batch(b"x", magic=3)),
    ("magic 127", batch(b"x", magic=127)),
    ("a checksum off by one bit", batch(b"x", crc=1 << 31)),
    ("codec 5, that is none", batch(b"x", attributes=5)),
    ("codec 6, that is none", batch(b"x", attributes=6)),
    ("codec 7, that is none", batch(b"x", attributes=7)),
    ("a control batch of a producer", batch(b"x", attributes=32, producer_id=7200, producer_epoch=0, base_sequence=0)),
    ("a delete horizon", batch(b"x", attributes=64)),
    ("a delete horizon, inside lz4", batch(b"x", attributes=64, codec=LZ4)),
    ("every unused attribute", batch(b"x", attributes=-128)),
    ("a producer id of minus two", batch(b"x", producer_id=-2, producer_epoch=0, base_sequence=0)),
    ("a sequence without a producer", batch(b"x", base_sequence=7)),
    ("an epoch without a producer", batch(b"x", producer_epoch=7)),
    ("a producer without epoch", batch(b"x", producer_id=7201, producer_epoch=-1, base_sequence=0)),
    ("a producer without sequence", batch(b"x", producer_id=7202, producer_epoch=0, base_sequence=-1)),
    ("a producer with sequence minus two", batch(b"x", producer_id=7202, producer_epoch=0, base_sequence=-2)),
    ("two batches, both compressed", batch(b"x", codec=GZIP) + batch(b"y", codec=GZIP)),
    ("a batch and half of another", batch(b"x") + batch(b"y" * 50)[:70]),
    ("a batch and eleven bytes", batch(b"x") + batch(b"y")[:11]),
    ("a batch and the front of one of length zero", batch(b"x") + batch(b"y", length=0)),
    ("a batch and the front of one of magic 9", batch(b"x") + batch(b"y", magic=9)),
)

RECORDS: tuple[tuple[str, bytes], ...] = tuple(
    (f"{what}{where}", forged(body, codec=codec))
    for what, body in (
        ("bytes after the records", GOOD + b"more"),
        ("a key longer than its record", bare(b"\0\0\0" + varint(99) + b"k" + varint(1) + b"v" + varint(0))),
        ("a value longer than its record", bare(b"\0\0\0" + varint(-1) + varint(500) + b"v" + varint(0))),
        ("a negative number of headers", bare(b"\0\0\0" + varint(-1) + varint(-1) + varint(-1))),
        ("more headers than bytes", bare(b"\0\0\0" + varint(-1) + varint(-1) + varint(1000))),
        ("a header without a name", bare(b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + varint(-1) + varint(-1))),
        ("a header whose name is not UTF-8", bare(b"\0\0\0\1\1" + varint(1) + varint(1) + b"\xff" + varint(-1))),
        ("bytes after the headers", bare(b"\0\0\0\1\1\0" + b"xx")),
        ("attributes of a record", bare(b"\x7f\0\0\1\1\0")),
        ("a length in five bytes where one does", b"\x90\x80\x80\x80\x00" + GOOD[1:]),
        ("a record of nothing", varint(0)),
        ("no bytes at all", b""),
    )
    for where, codec in (("", 0), (", inside gzip", GZIP))
)

ORDERS: tuple[tuple[str, bytes, int], ...] = (
    ("offsets that go backwards", record((b"k", b"v"), 1) + record((b"k", b"v"), 0), 2),
    ("the same offset twice", GOOD + GOOD, 2),
    ("offsets with a gap", GOOD + record((b"k", b"v"), 2), 2),
    ("a negative offset", record((b"k", b"v"), -1), 1),
)

TAKEN: tuple[tuple[str, bytes], ...] = (
    *((what, forged(body, count)) for what, body, count in ORDERS),
    ("a key of length minus two", forged(bare(b"\0\0\0" + varint(-2) + varint(1) + b"v" + varint(0)))),
    ("a time beyond the last there is", forged(record((b"k", b"v"), 0, 5), timestamp=2**63 - 3)),
)
"""What Kafka takes, to the harm of those who read it, and we refuse."""

TRIPS: tuple[tuple[str, bytes], ...] = (
    *((f"an order, {what}, inside gzip,", forged(body, count, codec=GZIP)) for what, body, count in ORDERS),
    ("a varint of six bytes", b"\x8e\x80\x80\x80\x80\x00" + GOOD[1:]),
)

FORGED: tuple[Step, ...] = tuple(
    step(f"produce what is no batch: {what}", PRODUCE, 8, to("forged", records), wait_s=3)
    for what, records in (*HEADERS, *RECORDS, *((f"{what} that is none", records) for what, records in TRIPS))
) + (
    *(step(f"produce what Kafka takes: {what}", PRODUCE, 8, to("forged-in-order", data)) for what, data in TAKEN),
    step("a good batch after all the forged ones", PRODUCE, 8, to("forged", batch(b"good"))),
    step("what came in of the forged", FETCH, 12, read("forged")),
)


def of(producer: int, first: int, count: int = 1, epoch: int = 0, **more: int) -> bytes:
    rows = [b"%d" % (first + i) for i in range(count)]
    return batch(*rows, producer_id=producer, producer_epoch=epoch, base_sequence=first, **more)


MAX = 2**31 - 1

SEQUENCES: tuple[Step, ...] = tuple(
    step(f"sequences: {what}", PRODUCE, 8, to("sequenced", records, partition))
    for what, partition, records in (
        ("0 to 1", 0, of(7300, 0, 2)),
        ("2", 0, of(7300, 2)),
        ("3 to 5", 0, of(7300, 3, 3)),
        ("6", 0, of(7300, 6)),
        ("7, the fifth batch", 0, of(7300, 7)),
        ("the first of five again", 0, of(7300, 0, 2)),
        ("8, the sixth batch", 0, of(7300, 8)),
        ("the first of six again", 0, of(7300, 0, 2)),
        ("the second of six again", 0, of(7300, 2)),
        ("the third of six again, compressed", 0, of(7300, 3, 3, codec=GZIP)),
        ("the last of six again", 0, of(7300, 8)),
        ("the first half of one again", 0, of(7300, 3, 2)),
        ("the second half of one again", 0, of(7300, 4, 2)),
        ("two in one that came as two", 0, of(7300, 6, 2)),
        ("the last again and one more", 0, of(7300, 8, 2)),
        ("one left out", 0, of(7300, 10)),
        ("the next", 0, of(7300, 9)),
        ("zero again, long ago", 0, of(7300, 0)),
        ("the same producer elsewhere", 1, of(7300, 40)),
        ("elsewhere, one left out", 1, of(7300, 42)),
        ("elsewhere, the next", 1, of(7300, 41)),
        ("a later epoch that begins in the middle", 0, of(7300, 10, epoch=1)),
        ("a later epoch", 0, of(7300, 0, epoch=1)),
        ("the earlier epoch goes on", 0, of(7300, 10)),
        ("the last batch of the earlier epoch again", 0, of(7300, 9)),
        ("an epoch left out", 0, of(7300, 0, epoch=5)),
        ("the last epoch there is", 0, of(7300, 0, epoch=32767)),
        ("the first epoch after it", 0, of(7300, 0)),
        ("the last epoch goes on", 0, of(7300, 1, epoch=32767)),
        ("near the last", 2, of(7301, MAX - 2, 2)),
        ("over the last", 2, of(7301, MAX, 3)),
        ("over the last again", 2, of(7301, MAX, 3)),
        ("after it", 2, of(7301, 2)),
        ("before it again", 2, of(7301, MAX - 2, 2)),
        ("after it, zero again", 2, of(7301, 0)),
        ("a batch that holds the last in its middle", 2, of(7302, MAX - 1, 4)),
        ("the next after that", 2, of(7302, 2)),
        ("a stranger's batch whose count is wrong", 2, of(7303, 0, 2, last_offset_delta=5)),
        ("the same, right", 2, of(7303, 0, 2)),
    )
) + (
    step("what the sequences came to", FETCH, 12, read("sequenced")),
    step("what they came to elsewhere", FETCH, 12, read("sequenced", 0, 1)),
    step("what they came to at the end of numbers", FETCH, 12, read("sequenced", 0, 2)),
    step("a batch stamped by the broker", PRODUCE, 8, to("sequenced-stamped", of(7310, 0, 2))),
    step("it comes again and has its time", PRODUCE, 8, to("sequenced-stamped", of(7310, 0, 2))),
    step("a batch before a segment is closed", PRODUCE, 8, to("sequenced-rolled", of(7311, 0))),
    step("a batch behind it", PRODUCE, 8, to("sequenced-rolled", of(7311, 1, timestamp=T0 + 90_000))),
    step("the one of the closed segment again", PRODUCE, 8, to("sequenced-rolled", of(7311, 0))),
    step("delete it", DELETE_RECORDS, 2, delete("sequenced-rolled", (0, 1))),
    step("the deleted one again", PRODUCE, 8, to("sequenced-rolled", of(7311, 0))),
    step("the one after it goes on", PRODUCE, 8, to("sequenced-rolled", of(7311, 2, timestamp=T0 + 91_000))),
    step("delete all of them", DELETE_RECORDS, 2, delete("sequenced-rolled", (0, -1))),
    step("the last one again", PRODUCE, 8, to("sequenced-rolled", of(7311, 2, timestamp=T0 + 91_000))),
    step("one left out after all is deleted", PRODUCE, 8, to("sequenced-rolled", of(7311, 9, timestamp=T0 + 92_000))),
    step(
        "the one that follows what is deleted", PRODUCE, 8, to("sequenced-rolled", of(7311, 3, timestamp=T0 + 93_000))
    ),
    step("where that ends", LIST_OFFSETS, 5, at("sequenced-rolled", (0, LATEST))),
)

BEHIND: tuple[Step, ...] = (
    *(
        send(f"batch {i} of a row", PRODUCE, 8, to("sequenced", records, 1), connection="row")
        for i, records in enumerate(
            (of(7320, 0, 3), of(7320, 3), of(7320, 3), of(7320, 5), of(7320, 4, codec=SNAPPY), of(7320, 5, epoch=-1))
        )
    ),
    *(collect(f"the answer to batch {i} of the row", PRODUCE, 8, connection="row") for i in range(6)),
    step("what the row came to", FETCH, 12, read("sequenced", 2, 1)),
)

STEPS: tuple[Step, ...] = (*CREATING, *FORGED, *SEQUENCES, *BEHIND)
