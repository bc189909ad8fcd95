"""The rate of throttled replication, in exact numbers: Kafka's window of 11 samples of a second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.replication.quota import ReplicationQuota, is_listed

SAMPLES, SAMPLE_MS = 11, 1000
START_MS = 5_000_000


def limited(limit: int | None) -> ReplicationQuota:
    quota = ReplicationQuota(SAMPLES, SAMPLE_MS)
    quota.limit = limit
    return quota


def test_without_a_limit_nothing_is_exceeded() -> None:
    quota = limited(None)
    quota.record(2**60, START_MS)
    assert not quota.is_exceeded(START_MS)
    assert quota.free_ms(START_MS) == START_MS


def test_a_burst_counts_over_one_sample_at_first_and_over_the_time_since_it_from_then_on() -> None:
    quota = limited(1000)
    quota.record(1000, START_MS)
    assert not quota.is_exceeded(START_MS)
    quota.record(4000, START_MS + 10)
    assert quota.is_exceeded(START_MS + 10)
    assert quota.is_exceeded(START_MS + 4999)
    assert quota.free_ms(START_MS + 10) == START_MS + 5000
    assert not quota.is_exceeded(START_MS + 5000)


def test_more_than_a_window_allows_is_free_when_the_window_has_passed_it() -> None:
    quota = limited(1000)
    quota.record(1_000_000, START_MS)
    assert quota.free_ms(START_MS) == START_MS + 11_000
    assert quota.is_exceeded(START_MS + 10_999)
    assert not quota.is_exceeded(START_MS + 11_000)


def test_a_full_sample_is_followed_by_another_and_dropped_alone() -> None:
    quota = limited(1000)
    quota.record(20_000, START_MS)
    quota.record(3000, START_MS + 1000)
    assert quota.free_ms(START_MS + 1000) == START_MS + 11_000
    assert quota.is_exceeded(START_MS + 10_999)
    assert not quota.is_exceeded(START_MS + 11_000)  # 3000 bytes in 10 s


def test_what_is_recorded_within_a_sample_goes_with_it() -> None:
    quota = limited(1)
    quota.record(10, START_MS)
    quota.record(10, START_MS + 999)
    assert quota.is_exceeded(START_MS + 10_999)
    assert not quota.is_exceeded(START_MS + 11_000)


def test_what_is_about_to_be_sent_counts_if_it_is_named() -> None:
    quota = limited(1000)
    quota.record(600, START_MS)
    assert not quota.is_exceeded(START_MS, 400)
    assert quota.is_exceeded(START_MS, 401)
    assert not quota.is_exceeded(START_MS)


def test_a_limit_of_nothing_lets_pass_what_comes_to_an_empty_window() -> None:
    quota = limited(0)
    assert not quota.is_exceeded(START_MS)
    quota.record(1, START_MS)
    quota.record(1, START_MS + 2000)
    assert quota.is_exceeded(START_MS)
    assert quota.free_ms(START_MS + 2000) == START_MS + 13_000


def test_another_limit_holds_at_once_for_what_was_recorded_before() -> None:
    quota = limited(1000)
    quota.record(5000, START_MS)
    quota.limit = 5000
    assert not quota.is_exceeded(START_MS)
    quota.limit = 100
    assert quota.free_ms(START_MS) == START_MS + 11_000


@given(
    limit=st.integers(0, 50),
    recorded=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 100)), max_size=8),
    samples=st.integers(1, 4),
)
def test_the_time_that_is_named_is_the_first_free_one(
    limit: int, recorded: list[tuple[int, int]], samples: int
) -> None:
    quota = ReplicationQuota(samples, 10)
    quota.limit = limit
    now_ms = 100
    for later_ms, size in recorded:
        now_ms += later_ms
        quota.record(size, now_ms)
    free_ms = quota.free_ms(now_ms)
    for at_ms in range(now_ms, free_ms):
        assert quota.is_exceeded(at_ms)
    assert not quota.is_exceeded(free_ms)


@pytest.mark.parametrize(
    ("listed", "throttled"),
    [
        ((), []),
        (("*",), [0, 1, 2, 10]),
        (("0:1", "2:1", "1:2"), [0, 2]),
        (("01:1",), [1]),
        (("0:11",), []),
    ],
)
def test_a_topic_lists_replicas_by_partition_and_broker_or_all(listed: tuple[str, ...], throttled: list[int]) -> None:
    assert [number for number in (0, 1, 2, 10) if is_listed(listed, number, 1)] == throttled
