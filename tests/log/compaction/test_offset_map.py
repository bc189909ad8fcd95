import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.log.compaction.offset_map import ENTRY_BYTES, OffsetMap
from moldau.records.columns import Section
from tests.records.making import record


def section(keys: list[bytes], base_offset: int = 0) -> Section:
    data = b"".join(record(at, key=key) for at, key in enumerate(keys))
    return Section(data, 0, len(data), len(keys), len(keys) - 1, base_offset, 0, None, 0, len(keys))


def stays(offsets: OffsetMap, what: Section) -> list[bool]:
    chosen = bytearray(what.count)
    offsets.choose(what, True, chosen)
    return [bool(mark) for mark in chosen]


def test_an_entry_takes_as_much_as_one_of_kafkas() -> None:
    assert OffsetMap(24 * 1000, 0.9, 10**9, 1).entries_max == 900
    assert ENTRY_BYTES == 24


def test_the_buffer_is_no_larger_than_the_records_could_fill() -> None:
    assert OffsetMap(1 << 40, 0.9, 100, 1).entries_max >= 100
    assert OffsetMap(1 << 40, 0.5, 100, 1).entries_max >= 100


@pytest.mark.parametrize("load_factor", [-1.0, 0.0, 1.0, 7.0])
@pytest.mark.parametrize("bytes_max", [0, 1, 24, 240])
def test_any_size_and_load_leave_room_for_an_entry_and_a_free_slot(bytes_max: int, load_factor: float) -> None:
    offsets = OffsetMap(bytes_max, load_factor, 10**9, 1)
    assert offsets.note(section([b"a"]), 0)
    what = section([b"%d" % number for number in range(100)])
    assert not offsets.note(what, 99)
    assert len(offsets) == offsets.entries_max
    assert all(stays(offsets, what))


def test_a_map_that_is_full_ends_before_the_first_key_that_did_not_fit() -> None:
    offsets = OffsetMap(0, 0.25, 10**9, 1)
    assert offsets.entries_max == 2
    what = section([b"a", b"b", b"a", b"c", b"a"], base_offset=50)
    assert not offsets.note(what, 54)
    assert offsets.latest_offset == 52
    assert stays(offsets, what) == [False, True, True, True, True]


def test_what_has_no_key_to_note_is_passed_over() -> None:
    offsets = OffsetMap(0, 0.9, 10, 1)
    offsets.pass_over(7)
    offsets.pass_over(3)
    assert offsets.latest_offset == 7
    assert stays(offsets, section([b"a"])) == [True]


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=200), st.integers(0, 2**128 - 1))
def test_it_knows_what_a_dict_knows(keys: list[bytes], secret: int) -> None:
    offsets = OffsetMap(1 << 20, 0.9, len(keys), secret)
    what = section(keys)
    assert offsets.note(what, len(keys) - 1)
    last = {key: at for at, key in enumerate(keys)}
    assert len(offsets) == len(last)
    assert stays(offsets, what) == [last[key] == at for at, key in enumerate(keys)]
