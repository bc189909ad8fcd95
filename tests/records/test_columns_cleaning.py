from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.records.columns import Section
from tests.records.columns_both_ways import both, each
from tests.records.making import record

ways = pytest.mark.parametrize("columns", each)
SECRET = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


def table(slots: int) -> memoryview:
    return memoryview(bytearray(24 * slots)).cast("Q")


def section(*records: bytes, base_offset: int = 0, low: int = 0, last: int | None = None) -> Section:
    data = b"".join(records)
    last = len(records) - 1 if last is None else last
    return Section(data, 0, len(data), len(records), last, base_offset, 0, None, low, last + 1)


def chosen_by(columns: Any, what: Section, known: memoryview, latest: int, tombstones: bool = True) -> Any:
    marks = bytearray(what.count)
    return columns.choose(what, known, latest, SECRET, tombstones, marks), list(marks)


@ways
@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        (63, "5150d1772f50834a503e069a973fbd7c"),
    ],
)
def test_the_hash_is_the_one_its_authors_publish(columns: Any, length: int, expected: str) -> None:
    halves = columns.keyed_hash(bytes(range(length)), SECRET)
    assert b"".join(half.to_bytes(8, "little") for half in halves).hex() == expected


@ways
def test_the_last_record_of_a_key_stays(columns: Any) -> None:
    known = table(16)
    what = section(record(0, key=b"a"), record(1, key=b"b"), record(2, key=b"a"), base_offset=40)
    assert columns.note_keys(what, known, 0, 10, SECRET) == (2, -1)
    (kept, tombstones, size, largest, smallest), marks = chosen_by(columns, what, known, 42)
    assert marks == [0, 1, 1]
    assert (kept, tombstones, largest, smallest) == (2, 0, 0, 0)
    assert size == len(record(1, key=b"b")) + len(record(2, key=b"a"))


@ways
def test_what_lies_behind_the_map_stays_whatever_it_is(columns: Any) -> None:
    known = table(16)
    what = section(record(0, key=b"a"), record(1, key=None), record(2, key=b"a", value=None))
    columns.note_keys(what, known, 0, 10, SECRET)
    assert chosen_by(columns, what, known, 0, tombstones=False)[1] == [0, 1, 1]
    assert chosen_by(columns, what, known, 2, tombstones=False)[1] == [0, 0, 0]
    assert chosen_by(columns, what, known, 2, tombstones=True) == ((1, 1, len(record(2, key=b"a", value=None)), 0, 0),
                                                                  [0, 0, 1])  # fmt: skip


@ways
def test_a_full_map_says_where_it_ends_and_still_takes_in_keys_it_has(columns: Any) -> None:
    known = table(4)
    what = section(*(record(at, key=key) for at, key in enumerate([b"a", b"b", b"a", b"c", b"b"])), base_offset=7)
    assert columns.note_keys(what, known, 0, 2, SECRET) == (2, 10)
    assert chosen_by(columns, what, known, 9)[1] == [0, 1, 1, 1, 1]


@ways
def test_only_the_records_that_are_wanted_are_noted(columns: Any) -> None:
    known = table(8)
    what = section(record(0, key=b"a"), record(1, key=b"b"), low=1)
    assert columns.note_keys(what, known, 0, 5, SECRET) == (1, -1)


@ways
def test_an_empty_key_is_a_key(columns: Any) -> None:
    known = table(8)
    what = section(record(0, key=b""), record(1, key=b""))
    assert columns.note_keys(what, known, 0, 5, SECRET) == (1, -1)
    assert chosen_by(columns, what, known, 1)[1] == [0, 1]


@ways
@pytest.mark.parametrize("shift", [0, 1, -1, -300, 1 << 40, -(1 << 62)])
def test_chosen_records_are_copied_with_their_timestamps_moved(columns: Any, shift: int) -> None:
    headers = [(b"name", b"x" * 200), (b"other", None)]
    stamps = [0, 5, 1000]
    what = section(*(record(at, timestamp=stamp, headers=headers) for at, stamp in enumerate(stamps)))
    out = bytearray(3 + what.stop + 3 * 14)
    end = columns.copy_chosen(what, b"\1\0\1", shift, out, 3)
    expected = [record(at, timestamp=stamps[at] + shift, headers=headers) for at in (0, 2)]
    assert bytes(out[3:end]) == b"".join(expected)


@ways
def test_too_little_room_for_marks_is_refused(columns: Any) -> None:
    with pytest.raises(ValueError, match="no room"):
        columns.choose(section(record(0), record(1)), table(8), 9, SECRET, True, bytearray(1))


keys = st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=70)
record_lists = st.lists(st.tuples(keys, st.none() | st.binary(max_size=4), st.integers(-(2**40), 2**40)), max_size=40)


@given(record_lists, st.integers(-1, 45), st.booleans(), st.integers(0, 2**128 - 1))
def test_both_ways_choose_what_a_plain_dict_would(
    rows: list[tuple[bytes | None, bytes | None, int]], latest: int, tombstones: bool, secret: int
) -> None:
    secrets = (secret & 2**64 - 1, secret >> 64)
    records = [record(at, key=key, value=value, timestamp=stamp) for at, (key, value, stamp) in enumerate(rows)]
    if not records:
        return
    what = section(*records)
    noted = what._replace(high=latest + 1)
    last = {key: at for at, (key, _, _) in enumerate(rows) if key is not None and at <= latest}
    stay = [
        at > latest or (key is not None and last[key] == at and (value is not None or tombstones))
        for at, (key, value, _) in enumerate(rows)
    ]
    stamps = [stamp for (_, _, stamp), stays in zip(rows, stay, strict=True) if stays]
    expected = (
        sum(stay),
        sum(stays and value is None for (_, value, _), stays in zip(rows, stay, strict=True)),
        sum(len(data) for data, stays in zip(records, stay, strict=True) if stays),
        max(stamps, default=0),
        min(stamps, default=0),
    )
    for columns in both:
        known = table(len(rows) + 1)
        assert columns.note_keys(noted, known, 0, len(rows), secrets) == (len(last), -1)
        marks = bytearray(len(rows))
        assert columns.choose(what, known, latest, secrets, tombstones, marks) == expected
        assert list(marks) == stay
