"""Lag in seconds by hand-made batches: the age of the oldest record that the group has yet to read."""

from moldau.records.lag import BatchSpan, first_waiting, lag_records, lag_seconds

FIRST = BatchSpan(0, 9, 1_000, 1_900)
MARKER = BatchSpan(10, 10, 2_000, 2_000, is_hidden=True)
LATER = BatchSpan(20, 29, 5_000, 5_900)


def since(committed: int, end: int = 30) -> int | None:
    found = first_waiting([FIRST, MARKER, LATER], committed, end)
    return None if found is None else found.waiting_ms


def test_the_record_at_the_committed_offset_waits() -> None:
    assert since(0) == 1_000
    assert since(5) == 1_500
    assert since(9) == 1_900


def test_markers_and_gaps_do_not_wait() -> None:
    assert since(10) == 5_000
    assert since(15) == 5_000
    assert since(10, end=11) is None


def test_nothing_waits_at_or_behind_the_end() -> None:
    assert since(30) is None
    assert since(20, end=20) is None
    assert lag_records(30, 0, 30) == lag_records(31, 0, 30) == 0
    assert (lag_records(0, 0, 30), lag_records(0, 20, 30)) == (30, 10)


def test_seconds_are_counted_from_the_records_timestamp() -> None:
    assert lag_seconds(7_500, 5_000) == 2.5
    assert lag_seconds(7_500, None) == lag_seconds(7_500, -1) == lag_seconds(1_000, 5_000) == 0


def test_the_time_of_an_append_is_that_of_all_records_of_the_batch() -> None:
    assert BatchSpan(0, 9, 1_000, 1_900, same_time=True).timestamp_at(0) == 1_900
    assert BatchSpan(0, 9, -1, 1_900).timestamp_at(3) == 1_900
    assert FIRST.timestamp_at(-5) == 1_000
    assert FIRST.timestamp_at(50) == 1_900
