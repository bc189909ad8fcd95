from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.log.files import LazyFile, OpenFiles
from moldau.log.indexes import OFFSET_ENTRY, PAGE_ENTRIES, TIME_ENTRY, CorruptIndex, Index, IndexEntry
from moldau.runtime import RealDisk


def index_at(path: Path, bytes_max: int = 1 << 20) -> Index:
    return Index(LazyFile(path, OpenFiles(RealDisk())), OFFSET_ENTRY, bytes_max)


def filled(path: Path, entries: int) -> Index:
    """Entries (10, 100), (20, 200), ..."""
    index = index_at(path)
    index.create()
    for number in range(1, entries + 1):
        index.append(number * 10, number * 100)
    return index


def test_a_new_index_has_its_full_size_and_a_closed_one_that_of_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    index = index_at(path, bytes_max=1003)
    index.create()
    assert path.stat().st_size == 1000
    index.append(1, 2)
    index.trim()
    assert path.read_bytes() == bytes([0, 0, 0, 1, 0, 0, 0, 2])


@pytest.mark.parametrize("entries", [0, 1, PAGE_ENTRIES - 1, PAGE_ENTRIES, PAGE_ENTRIES + 1, 5 * PAGE_ENTRIES + 3])
def test_floor_finds_the_last_entry_at_or_below_a_key(tmp_path: Path, entries: int) -> None:
    index = filled(tmp_path / "x.index", entries)
    reopened = index_at(tmp_path / "x.index")
    index.trim()
    reopened.load(0, 1 << 30)
    for key in [
        0,
        9,
        10,
        11,
        19,
        20,
        5119,
        5120,
        5121,
        10_240,
        entries * 10 - 1,
        entries * 10,
        entries * 10 + 5,
        1 << 30,
    ]:
        below = min(max(key, 0) // 10, entries)
        expected = IndexEntry(below * 10, below * 100) if below else None
        assert index.floor(key) == expected
        assert reopened.floor(key) == expected


def test_a_closed_index_is_opened_and_goes_on(tmp_path: Path) -> None:
    filled(tmp_path / "x.index", 700).trim()
    index = index_at(tmp_path / "x.index")
    index.load(0, 1 << 30)
    assert (index.entries, index.last) == (700, IndexEntry(7000, 70_000))
    index.append(8000, 80_000)
    assert (tmp_path / "x.index").stat().st_size == 1 << 20
    index.trim()
    again = index_at(tmp_path / "x.index")
    again.load(0, 1 << 30)
    assert [again.entry(699), again.entry(700)] == [IndexEntry(7000, 70_000), IndexEntry(8000, 80_000)]


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 7,
        b"\0" * 800,
        OFFSET_ENTRY.pack(5, 10) + OFFSET_ENTRY.pack(4, 20),
        OFFSET_ENTRY.pack(5, 10) + OFFSET_ENTRY.pack(6, 9),
        OFFSET_ENTRY.pack(-5, 10),
        OFFSET_ENTRY.pack(5, 1001),
    ],
    ids=["half an entry", "zeros of a crash", "keys fall", "values fall", "a negative key", "beyond the segment"],
)
def test_a_file_that_cannot_be_its_segments_index_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.index").write_bytes(content)
    with pytest.raises(CorruptIndex):
        index_at(tmp_path / "x.index").load(0, 1000)


def test_time_entries_have_twelve_bytes(tmp_path: Path) -> None:
    index = Index(LazyFile(tmp_path / "x.timeindex", OpenFiles(RealDisk())), TIME_ENTRY, 1200)
    index.create()
    index.append(1_700_000_000_000, 7)
    index.trim()
    assert (tmp_path / "x.timeindex").read_bytes() == TIME_ENTRY.pack(1_700_000_000_000, 7)


@given(st.sets(st.integers(1, 100_000), min_size=1, max_size=1500), st.lists(st.integers(0, 100_001), max_size=30))
def test_floor_is_that_of_a_sorted_list(
    tmp_path_factory: pytest.TempPathFactory, keys: set[int], asked: list[int]
) -> None:
    index = index_at(tmp_path_factory.mktemp("index") / "x.index")
    index.create()
    for number, key in enumerate(sorted(keys)):
        index.append(key, number)
    for key in asked:
        below = [IndexEntry(k, number) for number, k in enumerate(sorted(keys)) if k <= key]
        assert index.floor(key) == (below[-1] if below else None)


@pytest.mark.parametrize("asked_before", [15, 5_500, 13_000])
def test_near_finds_an_entry_by_its_value_where_nothing_need_be_read(tmp_path: Path, asked_before: int) -> None:
    index = filled(tmp_path / "x.index", 2 * PAGE_ENTRIES + 300)
    index.floor(asked_before)
    number = asked_before // 10
    start = number // PAGE_ENTRIES * PAGE_ENTRIES
    pages = {start: start + PAGE_ENTRIES, 2 * PAGE_ENTRIES: index.entries}
    for value in range(50, 140_000, 777):
        below = min(value // 100, index.entries)
        at_hand = any(first < below < last for first, last in pages.items()) or below == index.entries
        if at_hand:
            assert index.near(value) == IndexEntry(below * 10, below * 100)
        else:
            assert index.near(value) in (None, IndexEntry(below * 10, below * 100))
    assert index.near(99) is None
