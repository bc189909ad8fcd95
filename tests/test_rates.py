"""Rates over Kafka's window, in exact numbers: those that Apache Kafka 4.3.1 has answered with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.rates import RateWindow, SampledRate

MB = 1_000_000
START_MS = 7_000_000


def test_a_new_rate_is_measured_over_ten_seconds() -> None:
    rate = SampledRate(RateWindow())
    rate.record(5 * MB, START_MS)
    assert rate.throttle_ms(MB, START_MS) == 0
    rate.record(5 * MB, START_MS)
    assert rate.throttle_ms(MB, START_MS) == 0
    rate.record(1, START_MS)
    assert rate.throttle_ms(MB, START_MS) == 0  # 0.001 ms
    rate.record(MB, START_MS)
    assert rate.throttle_ms(MB, START_MS) == 1000


@pytest.mark.parametrize(("after_ms", "expected_ms"), [(0, 30_000), (185, 29_815), (1000, 30_000), (1500, 29_500)])
def test_20_mb_and_20_mb_more_are_throttled_as_by_kafka(after_ms: int, expected_ms: int) -> None:
    rate = SampledRate(RateWindow())
    rate.record(20 * MB, START_MS)
    assert rate.throttle_ms(MB, START_MS) == 10_000
    rate.record(20 * MB, START_MS + after_ms)
    assert rate.throttle_ms(MB, START_MS + after_ms) == expected_ms


def test_a_client_that_waits_as_long_as_it_is_told_is_at_its_limit() -> None:
    rate, now_ms = SampledRate(RateWindow()), START_MS
    for _ in range(100):
        rate.record(3 * MB, now_ms)
        waits_ms = rate.throttle_ms(MB, now_ms)
        now_ms += max(waits_ms, 1)
    assert abs(300 * MB / ((now_ms - START_MS) / 1000) / MB - 1) < 0.1


def test_what_is_older_than_the_window_does_not_count() -> None:
    rate = SampledRate(RateWindow())
    rate.record(20 * MB, START_MS)
    assert rate.throttle_ms(MB, START_MS + 10_999) > 0
    assert not rate.is_empty(START_MS + 10_999)
    assert rate.is_empty(START_MS + 11_000)
    assert rate.throttle_ms(MB, START_MS + 11_000) == 0


def test_a_sample_is_kept_as_long_as_its_last_value_is_within_the_window() -> None:
    rate = SampledRate(RateWindow())
    rate.record(MB, START_MS)
    rate.record(20 * MB, START_MS + 999)
    assert rate.throttle_ms(MB, START_MS + 11_500) == round((21 / 11.5 - 1) * 11_500)
    assert rate.is_empty(START_MS + 11_999)


def test_what_is_taken_back_does_not_count() -> None:
    rate = SampledRate(RateWindow())
    rate.record(9 * MB, START_MS)
    rate.record(5 * MB, START_MS + 10)
    rate.record(-5 * MB, START_MS + 10)
    assert rate.throttle_ms(MB, START_MS + 20) == 0
    rate.record(2 * MB, START_MS + 30)
    assert rate.throttle_ms(MB, START_MS + 30) == 970


def test_without_any_allowance_the_window_is_waited_for() -> None:
    rate = SampledRate(RateWindow())
    rate.record(1, START_MS)
    assert rate.throttle_ms(0, START_MS) == 10_000


def test_the_most_that_fits_into_an_empty_window_is_not_throttled() -> None:
    window = RateWindow(5, 2000)
    rate = SampledRate(window)
    rate.record(window.most(100), START_MS)
    assert rate.throttle_ms(100, START_MS) == 0
    rate.record(1, START_MS)
    assert rate.throttle_ms(100, START_MS) == 10


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 1000)), max_size=60),
    st.integers(1, 50),
)
def test_it_is_the_sum_over_the_window_of_a_plain_model(steps: list[tuple[int, int]], limit: int) -> None:
    """The model keeps all samples, as (begin, last, sum), and measures anew each time."""
    rate, now_ms, model = SampledRate(RateWindow()), START_MS, list[list[int]]()
    for wait_ms, value in steps:
        now_ms += wait_ms
        rate.record(value, now_ms)
        if not model or now_ms - model[-1][0] >= 1000:
            model.append([now_ms, now_ms, 0])
        model[-1][1:] = [now_ms, model[-1][2] + value]
        live = [one for one in model if now_ms - one[1] < 11_000]
        elapsed_ms = now_ms - live[0][0]
        window_ms = max(elapsed_ms, 10_000 + elapsed_ms % 1000)
        measured = sum(one[2] for one in live) / (window_ms / 1000)
        expected = round((measured - limit) / limit * window_ms) if measured > limit else 0
        assert abs(rate.throttle_ms(limit, now_ms) - expected) <= 1
