import contextlib
import ctypes
import mmap
import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.errors import ErrorCode, KafkaError
from tests.records import making
from tests.records.columns_both_ways import both, each, installed, interpreted
from tests.records.making import batch, record, varint

INT64_MAX = 2**63 - 1

ways = pytest.mark.parametrize("columns", each)


def section(records: bytes, count: int, **other: Any) -> Any:
    fields = {
        "last_offset_delta": count - 1,
        "base_offset": 0,
        "base_timestamp": 0,
        "append_timestamp": None,
        "low": 0,
        "high": 1 << 40,
    }
    return installed.Section(records, 0, len(records), count, **{**fields, **other})


def strings(column: Any, count: int) -> list[bytes | None]:
    """A column of Arrow's buffers as a list."""
    offsets, data = memoryview(column.offsets).cast("i"), bytes(column.data)
    out = [data[offsets[i] : offsets[i + 1]] for i in range(count)]
    bits = column.validity
    assert (bits is None) == (column.nulls == 0)
    return [None if bits is not None and not bits[i >> 3] >> (i & 7) & 1 else out[i] for i in range(count)]


def unpacked(columns: Any) -> list[tuple[Any, ...]]:
    """What `decode` gave as rows (offset, timestamp, type, key, value, headers)."""
    count = columns.rows
    headers: list[list[tuple[str, bytes | None]]] = [[] for _ in range(count)]
    if columns.lists is not None:
        names, values = strings(columns.header_keys, columns.headers), strings(columns.header_values, columns.headers)
        at = memoryview(columns.lists.offsets).cast("i")
        for row in range(count):
            headers[row] = [(names[j].decode(), values[j]) for j in range(at[row], at[row + 1])]
            bits = columns.lists.validity
            assert bool(headers[row]) == (bits is None or bool(bits[row >> 3] >> (row & 7) & 1))
    return list(
        zip(
            memoryview(columns.offsets).cast("q")[:count].tolist(),
            memoryview(columns.timestamps).cast("q")[:count].tolist(),
            memoryview(columns.timestamp_types).cast("i")[:count].tolist(),
            strings(columns.keys, count),
            strings(columns.values, count),
            headers,
            strict=True,
        )
    )


@ways
@given(rows=making.row_lists)
def test_what_is_encoded_is_sound_and_reads_back(columns: Any, rows: list[Any]) -> None:
    base = rows[0][2]
    records, max_timestamp = columns.encode_rows(rows, base)
    stamps = [row[2] for row in rows]
    assert max_timestamp == max([-1, *stamps])
    flaw, index, largest, smallest, null_keys = columns.scan(records, 0, len(records), len(rows), base)
    assert (flaw, index, largest, smallest) == (0, len(rows), max_timestamp, min(stamps))
    assert null_keys == sum(row[0] is None for row in rows)
    whole = section(bytes(records), len(rows), base_offset=7, base_timestamp=base)
    wanted = [(7 + i, stamp, 0, key, value, list(pairs)) for i, (key, value, stamp, pairs) in enumerate(rows)]
    assert columns.rows(whole, tuple) == wanted
    assert unpacked(columns.decode([whole])) == wanted
    by_hand = b"".join(
        record(i, timestamp=stamp - base, key=key, value=value, headers=[(name.encode(), data) for name, data in pairs])
        for i, (key, value, stamp, pairs) in enumerate(rows)
    )
    assert records == by_hand


@ways
@given(rows=making.row_lists, low=st.integers(0, 35), high=st.integers(0, 35))
def test_decode_takes_only_the_offsets_asked_for_from_many_batches(
    columns: Any, rows: list[Any], low: int, high: int
) -> None:
    records = bytes(columns.encode_rows(rows, 0)[0])
    every = section(records, len(rows), base_offset=100)
    part = section(records, len(rows), base_offset=200, low=low, high=high, append_timestamp=55)
    want = unpacked(columns.decode([every]))
    fixed = [(offset + 100, 55, 1, *rest) for offset, _, _, *rest in want[low:high]]
    assert unpacked(columns.decode([every, part])) == want + fixed
    assert columns.rows(part, tuple) == fixed


@ways
def test_offsets_of_a_compacted_batch_have_gaps(columns: Any) -> None:
    records = record(2) + record(5, key=None) + record(9)
    compacted = section(records, 3, base_offset=10, last_offset_delta=12)
    assert [row[0] for row in unpacked(columns.decode([compacted]))] == [12, 15, 19]
    with pytest.raises(KafkaError) as refused:
        columns.decode([section(records, 3, base_offset=10, last_offset_delta=8)])
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    assert str(refused.value) == "record 2 of the batch at offset 10 is bad: its offset delta is not the next one"


@ways
def test_timestamps_come_in_ticks_and_stop_at_the_ends(columns: Any) -> None:
    records = (
        record(0, timestamp=5) + record(1, timestamp=2**62) + record(2, timestamp=-(2**62)) + record(3, timestamp=-1)
    )
    decoded = columns.decode([section(records, 4)], bytearray, 1000)
    limit = INT64_MAX // 1000 * 1000
    assert memoryview(decoded.timestamps).cast("q").tolist() == [5000, limit, -limit, -1000]


@ways
def test_no_sections_are_no_rows(columns: Any) -> None:
    assert unpacked(columns.decode([])) == []


FLAWED = [
    (record(0, length=-1), 2),
    (record(0, length=0), 2),
    (record(0, length=1 << 30), 2),
    (b"\xff\xff\xff\xff\xff\x01" + record(0), 1),
    (b"\xff\xff\xff\xff\x1f" + record(0), 1),
    (b"\x80", 1),
    (b"\x16\0" + b"\xff" * 10 + b"\x00", 3),
    (b"\x18\0" + b"\xff" * 9 + b"\x02\0\0", 3),
    (b"\x02\0", 3),
    (record(1), 5),
    (record(-1), 5),
    (b"\x04\0\0", 5),
    (record(0, length=2), 5),
    (record(0, length=3), 6),
    (record(0, length=4), 6),
    (b"\x0c\0\0\0\x03\x02v", 6),
    (b"\x0a\0\0\0\x64k", 6),
    (b"\x0e\0\0\0\x02k\x03\0", 7),
    (b"\x0e\0\0\0\x02k\x64v", 7),
    (b"\x10\0\0\0\x02k\x02v\x01", 8),
    (b"\x10\0\0\0\x02k\x02v\x64", 8),
    (b"\x0e\0\0\0\x02k\x02v", 8),
    (record(header_block=b"\x02\x01\x02v"), 9),
    (record(header_block=b"\x02\x64h\x02v"), 9),
    (record(header_block=b"\x02\x02h\x03"), 10),
    (record(header_block=b"\x02\x02h\x64v"), 10),
    (record(header_block=b"\x02\x02h\x02v\x00"), 11),
    (record(after=b"zz"), 11),
    (record(0) + b"\0", 12),
    (record(0) + record(1), 12),
]


@ways
@pytest.mark.parametrize(("records", "flaw"), FLAWED)
def test_each_flaw_has_its_number(columns: Any, records: bytes, flaw: int) -> None:
    assert columns.scan(records, 0, len(records), 1, 0)[:2] == (flaw, 0 if flaw < 12 else 1)
    with pytest.raises(KafkaError, match=columns.FLAWS[flaw]):
        columns.measure([section(records, 1)])


@ways
def test_a_timestamp_must_fit_into_64_bits(columns: Any) -> None:
    for base, delta, fits in [
        (INT64_MAX, 0, True),
        (INT64_MAX, 1, False),
        (-INT64_MAX - 1, 0, True),
        (-INT64_MAX - 1, -1, False),
        (-INT64_MAX - 1, INT64_MAX, True),
        (0, -INT64_MAX - 1, True),
        (-1, -INT64_MAX - 1, False),
        (1, INT64_MAX, False),
        (INT64_MAX, -INT64_MAX - 1, True),
    ]:
        records = record(0, timestamp=delta)
        assert columns.scan(records, 0, len(records), 1, base)[0] == (0 if fits else 4)


@ways
def test_a_missing_record_is_a_flaw(columns: Any) -> None:
    assert columns.scan(record(0), 0, len(record(0)), 2, 0)[:2] == (1, 1)
    assert columns.scan(b"", 0, 0, 0, 0)[:2] == (0, 0)


@ways
def test_a_section_outside_its_buffer_is_refused(columns: Any) -> None:
    for start, stop in [(-1, 3), (0, 9), (5, 3)]:
        with pytest.raises(ValueError, match="outside"):
            columns.scan(b"12345678", start, stop, 1, 0)
        with pytest.raises(ValueError, match="outside"):
            columns.measure([section(b"12345678", 1)._replace(start=start, stop=stop)])


@ways
def test_refused_finds_missing_keys_and_timestamps_out_of_range(columns: Any) -> None:
    records = record(0, key=None, timestamp=9) + record(1, timestamp=9) + record(2, timestamp=-1) + record(3)
    assert columns.refused(section(records, 4), True, 0, 5, 10) == (1, 1, [(0, None), (1, 9)])
    assert columns.refused(section(records, 4), False, 0, 5, 10) == (0, 2, [(0, 9), (1, 9)])
    assert columns.refused(section(records, 4), False, 0, 5, 1) == (0, 2, [(0, 9)])
    assert columns.refused(section(records, 4, append_timestamp=3), False, 0, 5, 9) == (0, 0, [])


@ways
def test_rows_that_no_batch_can_hold_are_refused(columns: Any) -> None:
    with pytest.raises(ValueError, match="64 bits apart"):
        columns.encode_rows([(b"", b"", -5, ()), (b"", b"", INT64_MAX, ())], -5)
    with pytest.raises(ValueError, match="64 bits apart"):
        columns.encode_rows([(b"", b"", -5, ())], INT64_MAX)
    assert columns.encode_rows([], 0) == (b"", -1)


def source(columns: Any, values: list[bytes | None], first: int = 0) -> Any:
    offsets, data, bits = [0], b"", bytearray(len(values) // 8 + 1)
    for i, value in enumerate(values):
        data += value or b""
        offsets.append(len(data))
        bits[i >> 3] |= (value is not None) << (i & 7)
    ints = memoryview(struct.pack(f"{len(offsets)}i", *offsets)).cast("i")
    return columns.Source(ints, memoryview(data or b"\0"), memoryview(bits) if None in values else None, first)


@ways
@given(rows=making.row_lists, first=st.integers(0, 9), used=st.none() | st.integers(0, 500))
def test_columns_encode_to_the_same_bytes_as_rows(columns: Any, rows: list[Any], first: int, used: int | None) -> None:
    first = min(first, len(rows) - 1)
    part = rows[first:]
    blocks = [columns.header_block(row[3]) for row in rows]
    stamps = memoryview(struct.pack(f"{len(part)}q", *(row[2] for row in part))).cast("q")
    into = None if used is None else bytearray(b"z" * used)
    encoded, latest = columns.encode_columns(
        len(part),
        source(columns, [row[0] for row in rows], first),
        source(columns, [row[1] for row in rows], first),
        stamps,
        source(columns, blocks, first) if any(row[3] for row in part) else None,
        61,
        into,
    )
    expected, expected_latest = columns.encode_rows(part, part[0][2], 61)
    assert (encoded[61:], latest) == (expected[61:], expected_latest)
    assert into is None or encoded is into


@ways
def test_columns_that_do_not_fit_together_are_refused(columns: Any) -> None:
    stamps = memoryview(bytes(16)).cast("q")
    fine = source(columns, [b"a", b"b"])
    assert columns.encode_columns(2, None, fine, stamps)[0] == record(0, key=None, value=b"a") + record(
        1, key=None, value=b"b"
    )
    for bad in (
        source(columns, [b"a"]),
        fine._replace(first=1),
        fine._replace(first=-1),
        fine._replace(data=memoryview(b"a")),
        fine._replace(offsets=memoryview(struct.pack("3i", 0, 5, 2)).cast("i")),
        fine._replace(offsets=memoryview(struct.pack("3i", -1, 1, 2)).cast("i")),
        fine._replace(validity=memoryview(b"")),
    ):
        with pytest.raises(ValueError):
            columns.encode_columns(2, None, bad, stamps)
    for count in (0, 3, -1):
        with pytest.raises(ValueError, match="timestamp"):
            columns.encode_columns(count, None, None, stamps)
    with pytest.raises(ValueError, match="headers"):
        columns.encode_columns(1, None, None, stamps, source(columns, [None]))


def test_both_ways_say_the_same_of_every_prefix_and_mutation() -> None:
    chance = random.Random(11)
    good = bytes(batch(*(record(i, timestamp=i, headers=[(b"h", b"x"), (b"n", None)] * (i % 2)) for i in range(6))))
    for turn in range(3000):
        bad = bytearray(good)
        for _ in range(chance.randrange(4)):
            bad[chance.randrange(len(bad))] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        stop = len(bad) if turn % 2 else chance.randrange(61, len(bad) + 1)
        results = [columns.scan(bad, 61, stop, 6, making.NOW) for columns in both]
        assert results[0] == results[1]
        assert installed.plain(bad[:stop]) == interpreted.plain(bad[:stop])
        if results[0][0] == 0:
            whole = installed.Section(bad, 61, stop, 6, 5, 0, making.NOW, None, 0, 6)
            rows = [columns.rows(whole, tuple) for columns in both]
            assert rows[0] == rows[1] and len(rows[0]) == 6


PAGE = mmap.PAGESIZE


def guarded(memory: mmap.mmap, data: bytes) -> memoryview:
    """`data` at the very end of a page after which no byte may be read."""
    memory[PAGE - len(data) : PAGE] = data
    return memoryview(memory)[PAGE - len(data) : PAGE]


def test_nothing_is_read_behind_the_end_of_a_buffer() -> None:
    memory = mmap.mmap(-1, 2 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address + PAGE), ctypes.c_size_t(PAGE), 0) == 0
    chance = random.Random(7)
    good = bytes(batch(*(record(i, value=b"v" * i, headers=[(b"h", None)] * (i % 2)) for i in range(5))))
    for _ in range(3000):
        bad = bytearray(good[: chance.randrange(len(good) + 1)])
        for _ in range(chance.randrange(4)):
            if bad:
                bad[chance.randrange(len(bad))] = chance.choice([0x7F, 0x80, 0xFF, chance.randrange(256)])
        if chance.random() < 0.5 and len(bad) >= 61:
            bad[8:12] = struct.pack(">i", len(bad) - 12)
        view = guarded(memory, bytes(bad))
        installed.plain(view)
        if len(bad) < 61:
            continue
        installed.scan(view, 61, len(view), 5, 0)
        whole = installed.Section(view, 61, len(view), 5, 4, 0, 0, None, 1, 4)
        with contextlib.suppress(KafkaError):
            assert installed.decode([whole]).rows == len(installed.rows(whole, tuple)) == 3
        del whole, view
    assert libc.mprotect(ctypes.c_void_p(address + PAGE), ctypes.c_size_t(PAGE), 3) == 0


@ways
@given(st.integers(-(2**31), 2**31 - 1))
def test_lengths_are_read_in_every_width(columns: Any, number: int) -> None:
    """A record whose length is `number` is sound only if that many bytes are there."""
    flaw = columns.scan(varint(number) + bytes(5), 0, len(varint(number)) + 5, 1, 0)[0]
    assert (flaw == 2) == (not 1 <= number <= 5)
