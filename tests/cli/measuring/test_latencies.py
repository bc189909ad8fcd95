"""Percentiles of a bounded sample, and the pace of a load."""

import pytest

from moldau.cli.measuring import latencies
from moldau.cli.measuring.latencies import LoadPace, RecordLatencies


def test_percentiles_are_those_of_all_records_while_they_are_few() -> None:
    found = RecordLatencies(1000)
    for number in range(1000, 0, -1):
        found.add(number)
    assert found.percentiles() == {50.0: 501, 95.0: 951, 99.0: 991, 99.9: 1000}
    assert (found.count, found.average_ms, found.max_ms) == (1000, 500.5, 1000)


def test_many_records_are_sampled_and_the_largest_is_known_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "SAMPLE_MAX", 10)
    found = RecordLatencies(100)
    for number in range(100):
        found.add(number)
    assert len(found._sample) == 10
    assert found.max_ms == 99 and found.percentiles()[50.0] == 50


def test_nothing_measured_is_zero() -> None:
    assert RecordLatencies(1).percentiles()[99.0] == RecordLatencies(1).average_ms == 0


def test_a_pace_says_how_long_to_wait() -> None:
    assert LoadPace(100, 5.0).wait_s(10, 5.0) == pytest.approx(0.1)
    assert LoadPace(100, 5.0).wait_s(10, 5.2) < 0
    assert LoadPace(-1, 5.0).wait_s(10, 0.0) == 0
