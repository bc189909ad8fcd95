import contextlib
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from harness.tiers import examples
from moldau.errors import ErrorCode
from moldau.files import legacy
from moldau.files.legacy import Damaged, LogEntry
from tests.records import making
from tests.records import old_messages as old
from tests.records.old_messages import CONTENTS, STAMPS, Row, message, mixed, resealed, set_v0, set_v1, wrapper

OFFSETS = [3, 4, 6, 9, 10]
codecs = pytest.mark.parametrize("codec", [0, old.GZIP, old.SNAPPY, old.LZ4], ids=["none", "gzip", "snappy", "lz4"])


def read(data: bytes, **how: bool) -> list[Row]:
    return [Row(*row[:5]) for entry in legacy.entries(data) for row in legacy.rows(entry, **how)]


def refusal(data: bytes, **how: bool) -> str:
    with pytest.raises(Damaged) as caught:
        read(data, **how)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert str(caught.value) == f"at position {caught.value.position}: {caught.value.what}"
    return caught.value.what


@codecs
def test_v0_has_no_timestamps_and_wrappers_hold_absolute_offsets(codec: int) -> None:
    data, rows = set_v0(OFFSETS, CONTENTS, codec)
    assert read(data) == rows


@codecs
@pytest.mark.parametrize(
    "how",
    [{}, {"absolute": True}, {"append_time": 5_000}, {"first": 2}, {"first": 3}],
    ids=["relative", "absolute", "append time", "head compacted away", "base 0"],
)
def test_v1_wrappers_end_at_their_own_offset_however_they_count(how: dict[str, int], codec: int) -> None:
    data, rows = set_v1(OFFSETS, CONTENTS, codec, STAMPS, **how)  # type: ignore[arg-type]
    assert read(data) == rows


def test_a_v1_wrapper_at_offset_0_is_taken_as_it_stands() -> None:
    inner = [message(i, None, b"%d" % i, magic=1, timestamp=i) for i in range(3)]
    assert [row.offset for row in read(wrapper(0, *inner, magic=1))] == [0, 1, 2]


def test_headers_are_none_in_old_formats() -> None:
    [entry] = legacy.entries(message(7, b"k", b"v", magic=1))
    [record] = legacy.rows(entry)
    assert record.headers == []


@pytest.mark.parametrize(
    "packed",
    [old.bare_snappy(message(8, b"k", b"v")), old.xerial(message(8, b"k", b"v"), 5)],
    ids=["one block", "xerial"],
)
def test_snappy_comes_bare_and_framed(packed: bytes) -> None:
    assert read(wrapper(8, codec=old.SNAPPY, packed=packed)) == [Row(8, -1, -1, b"k", b"v")]


def test_lz4s_wrong_header_checksum_is_right_in_v0_only() -> None:
    inner = message(8, b"k", b"v" * 70_000)
    for checksum in (old.LZ4_RIGHT, old.LZ4_WRONG, b"\0"):
        assert read(wrapper(8, codec=old.LZ4, packed=old.lz4_frame(inner, checksum))) == [
            Row(8, -1, -1, b"k", b"v" * 70_000)
        ]
    wrong = wrapper(8, codec=old.LZ4, packed=old.lz4_frame(inner, old.LZ4_WRONG), magic=1)
    assert "cannot be inflated" in refusal(wrong)


@pytest.mark.parametrize(
    ("start", "checksum"),
    [("04224d18 6840 0500000000000000", "47"), ("04224d18 6140 07000000", None), ("04224d18 6940", None)],
    ids=["with the content's size", "with a dictionary", "with both"],
)
def test_lz4_headers_of_every_length_get_their_checksum(start: str, checksum: str | None) -> None:
    head = bytes.fromhex(start).ljust(18 if start.endswith("6940") else 0, b"\0")
    repaired = legacy._with_right_lz4_header(memoryview(head + b"\xaa" + bytes(8)))
    assert repaired[: len(head)] == head and repaired[len(head) + 1 :] == bytes(8)
    right = [legacy._with_right_lz4_header(memoryview(head + bytes([i]) + bytes(8))) for i in range(256)]
    assert {bytes(one) for one in right} == {bytes(repaired)}
    for cut in (0, 3, 6, len(head)):
        assert legacy._with_right_lz4_header(memoryview(head[:cut])) == head[:cut]


def test_inner_messages_of_the_other_format_are_read_as_kafka_does() -> None:
    inner = [message(0, None, b"a"), message(1, None, b"b", magic=1, timestamp=5)]
    assert read(wrapper(9, *inner, magic=1, timestamp=7)) == [Row(8, -1, 0, None, b"a"), Row(9, 5, 0, None, b"b")]
    assert read(wrapper(9, *inner, magic=0)) == [Row(0, -1, -1, None, b"a"), Row(1, 5, -1, None, b"b")]


def test_bytes_after_a_value_and_lengths_below_minus_1_mean_nothing() -> None:
    assert read(message(5, b"k", b"v", after=b"more")) == [Row(5, -1, -1, b"k", b"v")]
    body = b"\0\0" + struct.pack(">ii", -7, -9)
    assert read(struct.pack(">qiI", 5, 14, zlib.crc32(body)) + body) == [Row(5, -1, -1, None, None)]


def test_an_inner_message_that_is_cut_off_is_none() -> None:
    first, second = message(0, None, b"a", magic=1), message(1, None, b"b", magic=1)
    for cut in range(len(second)):
        assert [row.offset for row in read(wrapper(20, first, second[:cut], magic=1))] == [20]


def test_one_file_may_hold_all_formats() -> None:
    data, rows = mixed()
    assert read(data) == rows
    found = list(legacy.entries(data))
    assert [entry.magic for entry in found] == [0, 0, 0, 1, 1, 1, 2, 1]
    assert [entry.codec for entry in found] == [0, 0, 2, 0, 0, 1, 0, 0]
    assert [(entry.base_offset, entry.last_offset) for entry in found] == [
        (0, 0), (1, 1), (2, 5), (6, 6), (7, 7), (8, 10), (11, 12), (13, 13),
    ]  # fmt: skip
    assert [entry.timestamp_ms for entry in found] == [-1, -1, -1, 1_000, 1_002, 1_002, making.NOW, 5]
    assert [entry.timestamp_type for entry in found] == [-1, -1, -1, 0, 0, 0, 0, 1]
    assert all(entry.crc_ok for entry in found)
    assert b"".join(bytes(entry.data) for entry in found) == data
    assert [entry.position for entry in found] == [sum(e.size for e in found[:i]) for i in range(len(found))]


def test_control_batches_are_shown_only_to_those_who_ask() -> None:
    marker = making.batch(making.record(key=b"\0\0\0\1", value=bytes(6)), attributes=0x30, base_offset=4, producer_id=9)
    assert read(bytes(marker)) == []
    [row] = read(bytes(marker), control=True)
    assert (row.offset, row.key) == (4, b"\0\0\0\1")


def test_a_wrong_checksum_is_told_and_refused_unless_nobody_asks() -> None:
    for data in (message(3, b"k", b"v", crc=1), wrapper(3, message(3, b"k", b"v", crc=1))):
        assert refusal(data) in (
            "the checksum of the entry at offset 3 is wrong",
            "the entry at offset 3 contains a message at 3 with a wrong checksum",
        )
        assert read(data, check_crcs=False) == [Row(3, -1, -1, b"k", b"v")]
    [entry] = legacy.entries(message(3, b"k", b"v", crc=1))
    assert (entry.crc_ok, entry.crc) == (False, 1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (wrapper(3, wrapper(3, message(3))), "contains another wrapper"),
        (wrapper(3, message(4, magic=1), magic=1), "after the entry's own offset"),
        (wrapper(3, packed=old.pack(old.GZIP, b"", 0)), "holds no message"),
        (wrapper(3, packed=old.pack(old.GZIP, message(3)[:-1], 0)), "holds no message"),
        (wrapper(3, message(3, size=13)), "less than the minimum"),
        (wrapper(3, message(3, size=-1)), "less than the minimum"),
        (wrapper(3, message(3, magic=2)), "contains a message of format 2"),
        (wrapper(3, message(3, magic=1, size=21)), "contains a message of format 1 in 33 bytes"),
        (wrapper(3, message(-3)), "impossible offset -3"),
        (message(3, None, None, attributes=old.GZIP), "has no value"),
        (wrapper(3, packed=b"no gzip"), "cannot be inflated"),
        (message(3, None, b"", attributes=4), "has codec 4"),
        (message(3, None, b"", attributes=7), "has codec 7"),
        (message(3, b"k")[:-4], "cut off"),
        (message(3, size=13), "less than the minimum"),
        (message(3, size=0), "less than the minimum"),
        (message(3, size=-(2**31)), "less than the minimum"),
        (message(3, size=2**31 - 1), "cut off"),
        (message(3, magic=3), "the unknown format 3"),
        (message(3, magic=255), "the unknown format -1"),
        (message(3, magic=1, size=21), "has only 33 bytes"),
        (message(3, magic=2, after=bytes(20)), "has only 54 bytes"),
        (bytes(making.batch(making.record(), base_offset=-1)), "impossible number"),
        (bytes(making.batch(making.record(), count=-1)), "impossible number"),
        (bytes(making.batch(making.record(), base_offset=2**63 - 1, last=1, count=1)), "impossible number"),
        (bytes(making.batch(making.record(), count=2**20 + 1)), "more than the maximum"),
        (bytes(making.batch(making.record(), count=2)), "is bad"),
        (bytes(making.batch(making.record(), codec=1, change=lambda _: b"x")), "cannot be inflated"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(data: bytes, why: str) -> None:
    assert why in refusal(data)


@pytest.mark.parametrize("lengths", [(100, 0), (0, 100), (2**31 - 1, 0), (0, 2**31 - 1), (10, -1)])
@pytest.mark.parametrize("magic", [0, 1])
def test_keys_and_values_stay_inside_their_message(magic: int, lengths: tuple[int, int]) -> None:
    body = bytes([magic, 0]) + bytes(8 * magic) + struct.pack(">ii", *lengths)
    data = struct.pack(">qiI", 5, len(body) + 4, zlib.crc32(body)) + body
    assert "extends past the entry's end" in refusal(data)
    assert "extends past the entry's end" in refusal(wrapper(5, data))


def test_a_batch_may_be_empty() -> None:
    assert read(bytes(making.batch(count=0, last=5, base_offset=3))) == []


def test_zeros_at_the_end_are_no_damage_but_the_end_of_what_was_written() -> None:
    data, rows = mixed()
    for zeros in (1, 16, 17, 100, 600_000):
        seen: list[LogEntry] = []
        with pytest.raises(Damaged) as caught:
            seen.extend(legacy.entries(data + bytes(zeros)))
        assert [row for entry in seen for row in rows_of(entry)] == rows
        assert (caught.value.zeros, caught.value.at_end, caught.value.position) == (True, True, len(data))
    with pytest.raises(Damaged) as caught:
        read(data + bytes(300_000) + b"\1")
    assert not caught.value.zeros


def test_every_truncation_gives_what_is_whole_and_says_where_the_rest_begins() -> None:
    data, rows = mixed()
    whole = list(legacy.entries(data))
    ends = [0, *(entry.position + entry.size for entry in whole)]
    for cut in range(len(data)):
        before = max(end for end in ends if end <= cut)
        seen: list[LogEntry] = []
        if cut == before:
            seen += legacy.entries(data[:cut])
        else:
            with pytest.raises(Damaged) as caught:
                seen.extend(legacy.entries(data[:cut]))
            assert (caught.value.position, caught.value.at_end) == (before, True)
        assert [entry[:8] for entry in seen] == [entry[:8] for entry in whole if entry.position < before]
    assert read(data) == rows


def survive(data: bytes, check_crcs: bool = True) -> list[Row]:
    """What can be read; anything but the documented exception, where it belongs, comes through."""
    seen: list[Row] = []
    where = range(len(data) + 1)
    with tolerated(where):
        for entry in legacy.entries(data):
            where = range(entry.position, entry.position + 1)
            assert entry.codec >= 0 and entry.timestamp_type in (-1, 0, 1) and entry.last_offset is not None
            with tolerated(where):
                assert entry.base_offset is not None
            with tolerated(where):
                seen += rows_of(entry)
            if not check_crcs:
                with tolerated(where):
                    list(legacy.rows(entry, check_crcs=False, control=True))
    return seen


@contextlib.contextmanager
def tolerated(where: range) -> Iterator[None]:
    try:
        yield
    except Damaged as damaged:
        if damaged.position not in where:
            raise


def rows_of(entry: LogEntry) -> list[Row]:
    return [Row(*row[:5]) for row in legacy.rows(entry)]


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_is_noticed_or_is_part_of_an_offset(flip: int) -> None:
    data, rows = mixed()
    contents = {row[1:] for row in rows}
    uncovered = {entry.position + at for entry in legacy.entries(data) for at in (*range(12), *range(12, 17))}
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= flip
        seen = survive(bytes(flipped))
        assert {row[1:] for row in seen} <= contents
        if at not in uncovered:
            assert len(seen) < len(rows)


flips = st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), min_size=1, max_size=6)


@settings(max_examples=examples(200, 300))
@given(flips=flips, cut=st.none() | st.integers(0, 2**16), seal=st.booleans())
@example(flips=[(0, 1)], cut=None, seal=True)
def test_any_damage_is_survived(flips: list[tuple[int, int]], cut: int | None, seal: bool) -> None:
    data = bytearray(mixed()[0])
    for at, bits in flips:
        data[at % len(data)] ^= bits
    if seal:
        resealed(data)
    survive(bytes(data[: None if cut is None else cut % len(data)]), check_crcs=False)


@given(inner=st.binary(max_size=200), codec=st.sampled_from([1, 2, 3]), magic=st.sampled_from([0, 1]))
def test_any_bytes_in_a_wrapper_are_survived(inner: bytes, codec: int, magic: int) -> None:
    survive(wrapper(9, inner, codec=codec, magic=magic), check_crcs=False)
    survive(wrapper(9, codec=codec, magic=magic, packed=inner), check_crcs=False)


@given(data=st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    survive(data, check_crcs=False)


contents = st.tuples(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=200))
steps = st.lists(st.tuples(st.integers(1, 9), contents, st.integers(-1, 2**45)), min_size=1, max_size=8)
makers = st.sampled_from(["v0", "v1", "absolute", "append time", "gone"])


@given(sets=st.lists(st.tuples(makers, st.integers(0, 3), steps), max_size=6))
def test_what_was_written_is_read(sets: list[tuple[str, int, list[tuple[int, tuple[bytes, bytes], int]]]]) -> None:
    data, rows, offset = b"", [], 0
    for kind, codec, records in sets:
        offsets = [offset := offset + step for step, _, _ in records]
        values, stamps = [content for _, content, _ in records], [stamp for _, _, stamp in records]
        part, part_rows = make(kind, codec, offsets, values, stamps)
        data, rows = data + part, rows + part_rows
    assert read(data) == rows
    assert [entry.base_offset for entry in legacy.entries(data)] == sorted(e.base_offset for e in legacy.entries(data))


def make(
    kind: str, codec: int, offsets: Sequence[int], values: Sequence[tuple[bytes, bytes]], stamps: Sequence[int]
) -> tuple[bytes, list[Row]]:
    if kind == "v0":
        return set_v0(offsets, values, codec)
    return set_v1(
        offsets,
        values,
        codec,
        stamps,
        append_time=max(stamps) if kind == "append time" else None,
        absolute=kind == "absolute",
        first=min(offsets[0], 3) if kind == "gone" else 0,
    )


@pytest.mark.parametrize("window", [17, 61, 100, 1000])
def test_a_file_is_read_through_a_window(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "WINDOW_BYTES", window)
    data, _ = mixed()
    asked: list[int] = []

    def read_at(length: int, at: int) -> bytes:
        asked.append(length)
        return data[at : at + length]

    assert [e[:8] for e in legacy.stream(read_at, len(data))] == [e[:8] for e in legacy.entries(data)]
    assert max(asked) <= max(window, *(entry.size for entry in legacy.entries(data)))
    [*_, before, last] = legacy.entries(data)
    assert [e.position for e in legacy.stream(read_at, len(data), before.position)] == [before.position, last.position]


def test_a_file_that_shrinks_while_it_is_read_is_cut_off() -> None:
    data = mixed()[0] + bytes(400)
    for left in range(len(data) - 1):
        shorter = data[:left]
        with pytest.raises(Damaged):
            list(legacy.stream(lambda length, at, shorter=shorter: shorter[at : at + length], len(data)))  # type: ignore[misc]


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [old.GZIP, old.SNAPPY])
def test_a_bomb_takes_no_more_than_the_limit(codec: int) -> None:
    bomb = wrapper(3, bytes(64 << 20), codec=codec)
    [entry] = legacy.entries(bomb)

    def inflate() -> None:
        with pytest.raises(Damaged, match="more than 1048576 bytes"):
            list(legacy.rows(entry, inflated_max=1 << 20))

    assert peak_of(inflate) < 4 << 20


def test_a_file_is_never_held_as_a_whole() -> None:
    one = message(1, None, bytes(1000))

    def read_at(length: int, at: int) -> bytes:
        start = at % len(one)
        return (one * (length // len(one) + 2))[start : start + length]

    def walk() -> None:
        assert sum(1 for _ in legacy.stream(read_at, len(one) * 20_000)) == 20_000

    assert peak_of(walk) < 8 * legacy.WINDOW_BYTES


def test_an_entry_larger_than_any_broker_writes_is_refused_unread() -> None:
    head = message(3, size=legacy.ENTRY_BYTES_MAX)

    def read_at(length: int, at: int) -> bytes:
        assert length <= legacy.WINDOW_BYTES
        return head[at : at + length]

    with pytest.raises(Damaged, match="more than the maximum"):
        list(legacy.stream(read_at, 1 << 40))
