"""Records found by their time, and batches by their header: compiled and interpreted, against a slow search."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moldau.errors import KafkaError
from moldau.records.columns import Section
from tests.records.columns_both_ways import each
from tests.records.making import NOW, batch, record, varint

INT64_MAX = 2**63 - 1
deltas = st.integers(-3, 3)


def section(
    records: bytes, count: int, low: int = 0, append_timestamp: int | None = None, last: int | None = None
) -> Section:
    last = count - 1 if last is None else last
    return Section(records, 0, len(records), count, last, 100, NOW, append_timestamp, low, last + 1)


@pytest.mark.parametrize("columns", each)
@given(
    times=st.lists(deltas, min_size=1, max_size=8),
    gap=st.integers(1, 3),
    low=st.integers(0, 9),
    bounds=st.tuples(deltas, deltas),
)
def test_the_first_record_within_times_is_found(
    columns: Any, times: list[int], gap: int, low: int, bounds: tuple[int, int]
):
    records = b"".join(record(at * gap, timestamp=time) for at, time in enumerate(times))
    there = (
        (NOW + time, 100 + at * gap)
        for at, time in enumerate(times)
        if at * gap >= low and bounds[0] <= time <= bounds[1]
    )
    found = columns.first_timed(
        section(records, len(times), low, last=(len(times) - 1) * gap), NOW + bounds[0], NOW + bounds[1]
    )
    assert found == next(there, None)


@pytest.mark.parametrize("columns", each)
def test_where_the_log_stamped_any_record_will_do(columns: Any):
    records = b"".join(record(at * 2, timestamp=at) for at in range(4))
    stamped = section(records, 4, 3, append_timestamp=NOW + 50, last=6)
    assert columns.first_timed(stamped, NOW + 50, NOW + 50) == (NOW + 50, 104)
    assert columns.first_timed(stamped, NOW + 51, INT64_MAX) is None


@pytest.mark.parametrize("columns", each)
def test_nothing_behind_the_record_is_looked_at(columns: Any):
    records = record(0) + record(1, timestamp=5) + b"\xff" * 20
    assert columns.first_timed(section(records, 9), NOW + 5, INT64_MAX) == (NOW + 5, 101)


@pytest.mark.parametrize("columns", each)
@pytest.mark.parametrize(
    "records",
    [
        b"",
        b"\xff" * 11,
        record(0)[:-1],
        record(0, length=1),
        record(0, length=2**31 - 1),
        record(0, length=0),
        record(0, timestamp=2**62),
        b"\x06\x00\xff\xff",
        bytes(30),
    ],
)
def test_what_is_no_record_is_corrupt(columns: Any, records: bytes):
    bad = section(records, 1)._replace(base_timestamp=2**62 + 5)
    with pytest.raises(KafkaError, match="record 0 of the batch at offset 100 is bad"):
        columns.first_timed(bad, INT64_MAX, INT64_MAX)


@pytest.mark.parametrize("columns", each)
@given(data=st.binary(max_size=60), count=st.integers(0, 2**31 - 1))
def test_no_bytes_lead_outside_the_section(columns: Any, data: bytes, count: int):
    around = Section(b"\xff" * 8 + data + b"\xff" * 8, 8, 8 + len(data), count, count, 0, 0, None, 0, 2**31)
    try:
        found = columns.first_timed(around, 3, INT64_MAX)
    except KafkaError:
        return
    assert found is None or found[0] >= 3


@pytest.mark.parametrize("columns", each)
def test_a_section_outside_its_buffer_is_refused(columns: Any):
    with pytest.raises(ValueError, match="outside"):
        columns.first_timed(section(record(0), 1)._replace(stop=1000), 0, INT64_MAX)


def log_of(*times: int) -> bytes:
    """Batches of two records, at offsets 0, 2, 4 ..."""
    return b"".join(
        bytes(batch(record(0), record(1), base_offset=2 * at, max_timestamp=time)) for at, time in enumerate(times)
    )


@pytest.mark.parametrize("columns", each)
@given(times=st.lists(st.integers(-1, 4), max_size=6), start=st.integers(0, 12), bounds=st.tuples(deltas, deltas))
def test_the_first_batch_that_can_have_such_a_record_is_found(
    columns: Any, times: list[int], start: int, bounds: tuple[int, int]
):
    data = log_of(*times)
    size = len(data) // len(times) if times else 0
    there = (at * size for at, time in enumerate(times) if bounds[0] <= time <= bounds[1] and 2 * at + 1 >= start)
    place = next(there, None)
    assert columns.seek(data, *bounds, start) == ((False, len(data)) if place is None else (True, place))


@pytest.mark.parametrize("columns", each)
def test_batches_without_records_and_times_of_64_bits(columns: Any):
    empty = bytes(batch(count=0, last=1, max_timestamp=9))
    largest = bytes(batch(record(0), base_offset=2**62, max_timestamp=INT64_MAX))
    data = empty + largest
    assert columns.seek(data, 9, INT64_MAX, 0) == (True, len(empty))
    assert columns.seek(data, INT64_MAX, INT64_MAX, 2**62) == (True, len(empty))
    assert columns.seek(data, 9, INT64_MAX, 2**62 + 1) == (False, len(data))


@pytest.mark.parametrize("columns", each)
def test_a_seek_goes_on_behind_what_it_was_given(columns: Any):
    data = log_of(1, 1)
    size = len(data) // 2
    assert columns.seek(data[: size + 60], 5, 5, 0) == (False, size)
    assert columns.seek(data[: size + 61], 5, 5, 0) == (False, 2 * size)
    assert columns.seek(data[:61], 5, 5, 0) == (False, size)
    assert columns.seek(b"", 5, 5, 0) == (False, 0)


@pytest.mark.parametrize("columns", each)
def test_what_is_no_batch_ends_a_seek(columns: Any):
    for bad in (batch(record(0), length=48), batch(record(0), length=-1), batch(record(0), magic=1), bytes(61)):
        assert columns.seek(log_of(1) + bytes(bad), 5, 5, 0) == (False, -1)


@pytest.mark.parametrize("columns", each)
@pytest.mark.parametrize("sizes", [[], [0], [5, 300, 7], [70_000, 3], [0, 0, 2_100_000]])
def test_the_largest_record_is_found_by_the_lengths_alone(columns: Any, sizes: list[int]):
    bare = [record(number, value=bytes(size))[len(varint(size)) :] for number, size in enumerate(sizes)]
    records = b"".join(record(number, value=bytes(size)) for number, size in enumerate(sizes))
    found = columns.largest(b"before" + records + b"behind", 6, 6 + len(records))
    # A varint of the size and one of the slightly larger length have the same width for these sizes.
    assert found == max(map(len, bare), default=0)


@pytest.mark.parametrize("columns", each)
def test_the_search_for_the_largest_record_ends_where_its_bytes_end(columns: Any):
    for bytes_ in (b"\xff" * 9, b"\xff\xff\xff\xff\x0f", b"\x80"):
        assert columns.largest(bytes_, 0, len(bytes_)) >= 0
    with pytest.raises(ValueError):
        columns.largest(b"abc", 2, 4)
