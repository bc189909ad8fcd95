"""Every answer here is one that Apache Kafka 4.3.1 gave to the same bytes, but for those in `STRICTER`."""

import gzip
import io
import itertools
import os
import random
import struct
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given

from moldau.errors import ErrorCode
from moldau.records import compression, rows, validation
from moldau.records.batch import Row, crc_holds, encode_batch, read_header
from moldau.records.validation import INT64_MAX, Checked, Rules, assign_offsets, check_produce, needs_executor
from tests.records import making
from tests.records.making import NOW, batch, record

HOUR = 3_600_000
GOOD = batch(record(0), record(1))
NONE, CORRUPT, TOO_LARGE = ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE
INVALID, TIMESTAMP = ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP
UNKNOWN_CODEC = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def check(data: bytes, now_ms: int = NOW, **rules: Any) -> Checked:
    return check_produce(memoryview(bytearray(data)), Rules(**rules), now_ms)


def next_header(length: int, magic: int = 2) -> bytes:
    """The first 17 bytes of another batch."""
    return struct.pack(">qiib", 0, length, -1, magic)


AS_KAFKA = {
    "two records": (GOOD, NONE),
    "nothing": (b"", INVALID),
    "11 bytes": (GOOD[:11], INVALID),
    "12 bytes": (GOOD[:12], INVALID),
    "16 bytes": (GOOD[:16], INVALID),
    "60 bytes": (GOOD[:60], INVALID),
    "its header": (GOOD[:61], INVALID),
    "all but a byte": (GOOD[:-1], INVALID),
    "12 bytes, length 0": (bytes(12), CORRUPT),
    "17 bytes, format 5": (next_header(58, magic=5), CORRUPT),
    "two batches": (GOOD + GOOD, INVALID),
    "a byte after it": (GOOD + b"x", NONE),
    "11 bytes after it": (GOOD + bytes(11), NONE),
    "12 zeros after it": (GOOD + bytes(12), CORRUPT),
    "61 zeros after it": (GOOD + bytes(61), CORRUPT),
    "the start of another batch": (GOOD + GOOD[:17], NONE),
    "most of another batch": (GOOD + GOOD[:-1], NONE),
    "the start of something of format 5": (GOOD + next_header(58, magic=5) + bytes(20), CORRUPT),
    "something old of 26 bytes": (GOOD + next_header(14, magic=0) + bytes(9), INVALID),
    "base offset 5": (batch(record(), base_offset=5), INVALID),
    "format 0": (batch(record(), magic=0), INVALID),
    "format 1": (batch(record(), magic=1), INVALID),
    "format 5": (batch(record(), magic=5), CORRUPT),
    "format -1": (batch(record(), magic=-1), CORRUPT),
    "wrong checksum": (batch(record(), crc=1), CORRUPT),
    "length 0": (batch(record(), length=0), CORRUPT),
    "length -1": (batch(record(), length=-1), CORRUPT),
    "length 13": (batch(record(), length=13), CORRUPT),
    "length 14": (batch(record(), length=14), CORRUPT),
    "length 48": (batch(record(), length=48), CORRUPT),
    "length 49": (batch(record(), length=49), CORRUPT),
    "length -2 GiB": (batch(record(), length=-(2**31)), CORRUPT),
    "no records": (batch(), INVALID),
    "count -1": (batch(record(), count=-1, last=0), INVALID),
    "count 3 of 2": (batch(record(0), record(1), count=3), INVALID),
    "count 1 of 2": (batch(record(0), record(1), count=1), INVALID),
    "last offset delta 5 of 2": (batch(record(0), record(1), last=5), INVALID),
    "last offset delta -1": (batch(record(), last=-1), INVALID),
    "count 3 of 2, last offset delta 1": (batch(record(0), record(1), count=3, last=1), INVALID),
    "record too short": (batch(record(0, length=3), record(1)), INVALID),
    "record of no bytes": (batch(record(0, length=0)), INVALID),
    "record of negative length": (batch(record(0, length=-5)), INVALID),
    "record of 1 GiB": (batch(record(0, length=1 << 30)), INVALID),
    "bytes behind a record's fields": (batch(record(0, after=b"zz")), INVALID),
    "bytes behind the records": (batch(record() + b"abc", count=1), INVALID),
    "-1 headers": (batch(record(header_block=b"\x01")), INVALID),
    "9 headers that are not there": (batch(record(header_block=b"\x12")), INVALID),
    "a header without key": (batch(record(header_block=b"\x02\x01\x02v")), INVALID),
    "a header's key that is no UTF-8": (batch(record(headers=[(b"\xff\xfe", b"v")])), NONE),
    "a header without value": (batch(record(headers=[(b"h", None)])), NONE),
    "a control batch": (batch(record(), attributes=0x20), INVALID),
    "log append time": (batch(record(), attributes=0x08), NONE),
    "delete horizon": (batch(record(), attributes=0x40), NONE),
    "unused attributes": (batch(record(), attributes=-32768 | 0x4080), NONE),
    "producer id without sequence": (batch(record(), producer_id=5, producer_epoch=0), INVALID),
    "producer id with a negative sequence": (batch(record(), producer_id=5, producer_epoch=0, sequence=-2), INVALID),
    "producer id": (batch(record(), producer_id=5, producer_epoch=0, sequence=7), NONE),
    "producer id without epoch": (batch(record(), producer_id=5, producer_epoch=-1, sequence=0), NONE),
    "producer id -2": (batch(record(), producer_id=-2, producer_epoch=0, sequence=0), NONE),
    "sequence without producer id": (batch(record(), sequence=5), NONE),
    "timestamp -1": (batch(record(), base_timestamp=-1, max_timestamp=-1), NONE),
    "timestamp -5": (batch(record(), base_timestamp=-5, max_timestamp=-5), NONE),
    "a record of 2013": (batch(record(), base_timestamp=1357000000000), NONE),
    "a record two hours ahead": (batch(record(0), record(1, timestamp=2 * HOUR)), TIMESTAMP),
    "largest timestamp wrong": (batch(record(), max_timestamp=5), NONE),
    "largest timestamp forged": (batch(record(), max_timestamp=NOW + 10**9), NONE),
    "largest of all timestamps": (batch(record(), base_timestamp=INT64_MAX), TIMESTAMP),
    "smallest of all timestamps": (batch(record(), base_timestamp=-INT64_MAX - 1), TIMESTAMP),
    "no key": (batch(record(key=None)), NONE),
    "no value": (batch(record(value=None)), NONE),
    "1.1 MB": (batch(record(value=bytes(1_100_000))), TOO_LARGE),
    "1.1 MB and a wrong checksum": (batch(record(value=bytes(1_100_000)), crc=1), TOO_LARGE),
    "1.1 MB and a base offset": (batch(record(value=bytes(1_100_000)), base_offset=5), INVALID),
    "leader epoch 5": (batch(record(), leader_epoch=5), NONE),
    **{f"codec {codec}": (batch(record(0), record(1), codec=codec), NONE) for codec in (1, 2, 3, 4)},
    **{
        f"codec {codec}, count 3 of 2": (batch(record(0), record(1), codec=codec, count=3), INVALID) for codec in (1, 4)
    },
    **{f"codec {codec}, nothing": (batch(codec=codec, count=1), INVALID) for codec in (1, 2, 3, 4)},
}

STRICTER = {
    "the next batch's length overflows": (batch(record(), length=2**31 - 1), INVALID),
    "offset delta 5": (batch(record(0), record(5)), INVALID),
    "offset delta -1": (batch(record(-1), record(1)), INVALID),
    "key of length -2": (batch(b"\x0e\0\0\0\x03\x02v\0", count=1), INVALID),
    "a timestamp past 64 bits": (batch(record(timestamp=2**62), base_timestamp=INT64_MAX), INVALID),
    "codec 5": (batch(record(), attributes=5), UNKNOWN_CODEC),
    "codec 7": (batch(record(), attributes=7), UNKNOWN_CODEC),
    **{
        f"codec {codec}, cut off": (batch(record(), codec=codec, change=lambda body: body[:-6]), INVALID)
        for codec in (1, 2, 3, 4)
    },
    **{
        f"codec {codec}, bytes behind": (batch(record(), codec=codec, change=lambda body: body + b"trail"), INVALID)
        for codec in (1, 2, 3, 4)
    },
    **{f"codec {codec}, short record": (batch(record(length=3), codec=codec), INVALID) for codec in (1, 2, 3, 4)},
}
LZ4_START = bytes.fromhex("04224d18")


def lz4(body: bytes, head: str = "6040 82", end: bytes = bytes(4)) -> bytes:
    """A frame of stored blocks of 20 bytes."""
    blocks = (body[at : at + 20] for at in range(0, len(body), 20))
    return LZ4_START + bytes.fromhex(head) + b"".join(struct.pack("<I", len(b) | 1 << 31) + b for b in blocks) + end


POISON = {
    "whose blocks depend on each other": lambda body: lz4(body, "4040 c0"),
    "with a dictionary": lambda body: lz4(body, "6140 00000000 a0"),
    "of two frames": lambda body: lz4(body[:30]) + lz4(body[30:]),
    "behind something to be skipped": lambda body: struct.pack("<II", 0x184D2A50, 4) + b"skip" + lz4(body),
    "before something to be skipped": lambda body: lz4(body) + struct.pack("<II", 0x184D2A50, 4) + b"skip",
    "with an empty block in the middle": lambda body: (
        lz4(body[:30], end=b"") + struct.pack("<I", 1 << 31) + lz4(body[30:])[7:]
    ),
}
"""LZ4 that decoders read, but not Java's: it would stop every Java consumer, so Kafka's broker refuses it too (but for
what is behind a frame, which it does not look at)."""


@pytest.mark.parametrize("name", POISON)
def test_lz4_that_java_does_not_read_is_refused(name: str) -> None:
    checked = check(batch(record(value=bytes(50)), codec=3, change=lambda body: POISON[name](plain_of(body))))
    assert checked.error == INVALID
    assert checked.message is not None and "Java" in checked.message


def halves(body: bytes, *cuts: int) -> bytes:
    """As many gzip members as there are pieces between the cuts."""
    bounds = [0, *cuts, len(body)]
    return b"".join(gzip.compress(body[low:high]) for low, high in itertools.pairwise(bounds))


def blocks_of_nothing(count: int) -> bytes:
    """A gzip member without content, as long as it likes."""
    return gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * count + b"\3\0" + bytes(8)


GZIP_OF_MEMBERS = {
    "of two members": lambda body: halves(body, 30),
    "of three members": lambda body: halves(body, 7, 30),
    "before an empty member": lambda body: gzip.compress(body) + gzip.compress(b""),
    "behind an empty member": lambda body: gzip.compress(b"") + gzip.compress(body),
    "behind a long empty member": lambda body: blocks_of_nothing(20_000) + gzip.compress(body),
    "between empty members": lambda body: gzip.compress(b"") + gzip.compress(body) + gzip.compress(b""),
}
"""Gzip that Java reads, and librdkafka does not: of two members it returns the first and says nothing of the other,
and an empty first one aborts its process."""


@pytest.mark.parametrize("name", GZIP_OF_MEMBERS)
def test_gzip_that_librdkafka_does_not_read_is_refused(name: str) -> None:
    made = batch(record(value=bytes(50)), codec=1, change=lambda body: GZIP_OF_MEMBERS[name](gzip.decompress(body)))
    refused = check(made)
    assert refused.error == INVALID
    assert "librdkafka" in (refused.message or "")


@pytest.mark.parametrize("level", range(10))
@pytest.mark.parametrize("value", [b"", bytes(50), os.urandom(100_000)], ids=["empty", "small", "large"])
def test_every_gzip_of_one_member_is_taken(level: int, value: bytes) -> None:
    made = batch(record(value=value), codec=1, change=lambda body: gzip.compress(gzip.decompress(body), level))
    assert check(made).error == NONE
    named = io.BytesIO()
    with gzip.GzipFile("a name " * 99, "wb", level, named) as file:
        file.write(record(value=value))
    assert check(batch(record(value=value), codec=1, change=lambda _: named.getvalue())).error == NONE


@pytest.mark.parametrize(
    ("head", "end"),
    [("6040 82", bytes(4)), ("6440 a7", bytes(4) + bytes.fromhex("8f2e7e42")), ("6840 3a00000000000000 2d", bytes(4))],
    ids=["plain", "with a checksum", "with its size"],
)
def test_every_lz4_frame_that_java_reads_is_taken(head: str, end: bytes) -> None:
    assert (
        check(batch(record(value=bytes(50)), codec=3, change=lambda body: lz4(plain_of(body), head, end))).error == NONE
    )


def plain_of(body: bytes) -> bytes:
    return bytes(compression.decompress(compression.LZ4, body, 1 << 20))


CASES = {**AS_KAFKA, **STRICTER}


@pytest.mark.parametrize("name", CASES)
def test_each_input_gets_its_answer(name: str) -> None:
    data, error = CASES[name]
    checked = check(data)
    assert checked.error == error, checked.message
    assert (checked.message is None) == (error == NONE)
    assert (checked.record_errors == ()) == (error != TIMESTAMP)


def test_what_is_appended_is_the_batch_without_what_follows() -> None:
    checked = check(batch(record(0), record(1, timestamp=7), record(2, timestamp=7)) + b"rest")
    assert checked.size == len(batch(record(0), record(1, timestamp=7), record(2, timestamp=7)))
    assert checked.max_timestamp == NOW + 7
    assert checked.header.count == 3 and checked.rewritten is None


def test_a_batch_without_timestamps_has_none() -> None:
    assert check(batch(record(), base_timestamp=-1)).max_timestamp == -1


def test_records_without_a_key_are_named_on_a_compacted_topic() -> None:
    for codec in (0, 4):
        data = batch(record(0, key=None), record(1), record(2, key=None), codec=codec)
        checked = check(data, compacted=True, partition="facts-3")
        text = "Compacted topic cannot accept message without key in topic partition facts-3"
        assert checked.error == INVALID
        assert checked.record_errors == ((0, text), (2, text))
        assert checked.message == (
            "One or more records have been rejected due to 2 record errors in total, and only showing the first three "
            "errors at most: "
            f"[RecordError(batchIndex=0, message='{text}'), RecordError(batchIndex=2, message='{text}')]"
        )
    assert check(batch(record()), compacted=True).error == NONE


def test_timestamps_out_of_range_are_named() -> None:
    data = batch(record(0), record(1, timestamp=HOUR + 1), record(2, timestamp=HOUR), record(3, timestamp=-HOUR - 1))
    checked = check(data, before_max_ms=HOUR)
    assert checked.error == TIMESTAMP
    assert checked.message == "One or more records have been rejected due to invalid timestamp"
    bounds = f"The timestamp should be within [{NOW - HOUR}, {NOW + HOUR}]"
    assert checked.record_errors == (
        (1, f"Timestamp {NOW + HOUR + 1} of message with offset 1 is out of range. {bounds}"),
        (3, f"Timestamp {NOW - HOUR - 1} of message with offset 3 is out of range. {bounds}"),
    )
    assert check(batch(record(), base_timestamp=-1), before_max_ms=HOUR).error == NONE
    assert check(data, after_max_ms=HOUR + 1).error == NONE


def test_a_missing_key_goes_before_a_bad_timestamp_of_the_same_record() -> None:
    data = batch(record(0, key=None, timestamp=2 * HOUR), record(1, timestamp=2 * HOUR), record(2, key=None))
    checked = check(data, compacted=True)
    assert checked.error == TIMESTAMP
    assert [index for index, _ in checked.record_errors] == [0, 1, 2]
    assert [text.split()[0] for _, text in checked.record_errors] == ["Compacted", "Timestamp", "Compacted"]


def test_record_errors_have_an_end() -> None:
    data = batch(*(record(i, key=None) for i in range(3000)))
    checked = check(data, compacted=True)
    assert len(checked.record_errors) == 1000
    assert checked.message is not None and "due to 3000 record errors" in checked.message


def test_under_log_append_time_the_records_timestamps_do_not_matter() -> None:
    data = batch(record(0), record(1, timestamp=2 * HOUR))
    for claim in (data, batch(record(0), record(1, timestamp=2 * HOUR), codec=4)):
        checked = check(claim, timestamp_type="LogAppendTime")
        assert checked.error == NONE
    claimed = check(batch(record(), attributes=8), timestamp_type="LogAppendTime")
    assert (claimed.error, len(claimed.record_errors)) == (TIMESTAMP, 1)
    assert (
        check(batch(record(key=None), base_timestamp=0), timestamp_type="LogAppendTime", compacted=True).error
        == INVALID
    )


def test_the_time_of_a_batch_that_claims_log_append_time_is_its_largest() -> None:
    data = batch(record(0), record(1, timestamp=-5), attributes=8, base_timestamp=3, max_timestamp=NOW - 9)
    checked = check(data)
    assert (checked.error, checked.max_timestamp) == (NONE, NOW - 9)
    assert check(batch(record(), attributes=8, max_timestamp=NOW + 2 * HOUR)).error == TIMESTAMP


def assigned(data: bytearray, append_time_ms: int | None, max_timestamp: int) -> Any:
    assign_offsets(memoryview(data), 1000, 4, append_time_ms, max_timestamp)
    assert crc_holds(data)
    header = read_header(data)
    assert (header.base_offset, header.partition_leader_epoch, header.size) == (1000, 4, len(data))
    return header


def test_a_right_batch_gets_its_offset_and_nothing_else() -> None:
    data = batch(record(), attributes=0x4080)
    crc = read_header(data).crc
    header = assigned(data, None, NOW)
    assert (header.crc, header.attributes) == (crc, 0x4080)


def test_a_wrong_largest_timestamp_is_corrected() -> None:
    header = assigned(batch(record(), max_timestamp=5, attributes=0x4080), None, NOW)
    assert (header.max_timestamp, header.attributes) == (NOW, 0)


def test_log_append_time_is_written_and_taken_away() -> None:
    header = assigned(batch(record(), codec=4, attributes=0x10), NOW + 77, NOW)
    assert (header.attributes, header.max_timestamp, header.base_timestamp) == (4 | 8 | 0x10, NOW + 77, NOW)
    header = assigned(batch(record(), attributes=8), None, NOW)
    assert (header.attributes, header.max_timestamp) == (0, NOW)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_may_want_another_codec(codec: int, wanted: str) -> None:
    data = batch(
        record(0), record(1, timestamp=9, headers=[(b"h", b"x")]), codec=codec, attributes=0x90, producer_id=7,
        producer_epoch=1, sequence=3,
    )  # fmt: skip
    checked = check(data, compression_type=wanted)
    assert checked.error == NONE
    same = ("uncompressed", "gzip", "snappy", "lz4", "zstd")[codec] == wanted
    assert (checked.rewritten is None) == same
    if checked.rewritten is not None:
        assert crc_holds(checked.rewritten)
        assert checked.size == len(checked.rewritten) == checked.header.size
        assert checked.header[5:] == read_header(checked.rewritten)[5:]
        assert checked.header.attributes & ~7 == 0x10
        assert checked.header[8:] == (NOW + 9, 7, 1, 3, 2)
        assert list(rows.iterate(checked.rewritten)) == list(rows.iterate(data))
        assert check(checked.rewritten, compression_type=wanted).rewritten is None


def test_a_batch_may_be_too_large_in_the_codec_that_the_topic_wants() -> None:
    data = batch(record(value=bytes(5000)), codec=4)
    checked = check(data, compression_type="uncompressed", max_message_bytes=4000)
    assert checked.error == TOO_LARGE


def test_a_larger_limit_for_messages_lets_more_be_inflated() -> None:
    data = batch(record(value=bytes(25 << 20)), codec=4)
    assert check(data).error == TOO_LARGE
    assert check(data, max_message_bytes=1 << 10).error == TOO_LARGE
    assert check(data, max_message_bytes=(25 << 20) // 24 + 10).error == NONE
    assert check(data, max_message_bytes=30 << 20).error == NONE
    assert check(data, max_message_bytes=2**31 - 1).error == NONE


@pytest.mark.parametrize("codec", range(5))
def test_each_record_of_a_compressed_batch_is_bounded_and_not_the_batch(codec: int) -> None:
    """As Kafka 4.4 does: a record of exactly the limit is taken, and uncompressed ones are bounded by their batch."""
    rows = [Row(None, bytes(size)) for size in (100, 9992, 9992)]  # the largest record has 10,000 bytes
    data = encode_batch(rows, codec=codec)
    assert check(data, max_decompressed_bytes=10_000).error is NONE
    refused = check(data, max_decompressed_bytes=9_999)
    assert refused.error is (INVALID if codec else NONE)
    assert refused.message is None or "10000 bytes where max.decompressed.message.bytes allows 9999" in refused.message


def test_only_what_may_inflate_beyond_64_kib_needs_the_executor() -> None:
    small, large = record(value=bytes(60_000)), record(value=bytes(70_000))
    assert not needs_executor(batch(large))
    assert not needs_executor(b"")
    assert not needs_executor(batch(record(), attributes=7))
    for codec in (1, 2, 3, 4):
        assert not needs_executor(batch(small, codec=codec))
        assert needs_executor(batch(large, codec=codec))
    assert needs_executor(batch(record(value=random.Random(1).randbytes(66_000)), codec=4))


@given(making.row_lists)
def test_what_clients_write_passes(some: list[Any]) -> None:
    for codec in range(5):
        data = encode_batch(some, codec=codec)
        checked = check(data, now_ms=2**62, before_max_ms=INT64_MAX)
        mistimed = any(stamp < 2**62 - INT64_MAX for _, _, stamp, _ in some)
        assert checked.error == (TIMESTAMP if mistimed else NONE)


def test_the_short_way_and_the_long_way_give_one_answer() -> None:
    chance = random.Random(5)
    rules = [Rules(), Rules(compacted=True), Rules(timestamp_type="LogAppendTime"), Rules(max_message_bytes=90)]
    for _ in range(4000):
        data = bytearray(chance.choice([GOOD, batch(record(key=None), codec=chance.choice([0, 0, 4]))]))
        for _ in range(chance.randrange(3)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0xFF, chance.randrange(256)])
        if chance.random() < 0.9:
            data[17:21] = struct.pack(">I", crc32c(data[21:]))
        for rule in rules:
            short = check_produce(memoryview(data), rule, NOW)
            assert short == validation._check(memoryview(data), rule, NOW)


@pytest.mark.parametrize(
    ("stamps", "furthest"),
    [((NOW, NOW + HOUR + 1, NOW + 9 * HOUR), NOW + 9 * HOUR), ((NOW, NOW - 2 * HOUR - 1), NOW - 2 * HOUR - 1)],
)
def test_a_refusal_for_timestamps_has_the_one_that_is_furthest_from_the_clock(
    stamps: tuple[int, ...], furthest: int
) -> None:
    written = [Row(None, b"x", stamp) for stamp in stamps]
    refused = check(bytes(encode_batch(written)), before_max_ms=2 * HOUR)
    assert (refused.error, refused.max_timestamp) == (TIMESTAMP, furthest)
