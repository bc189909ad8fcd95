"""The times of a run: the delay of each record from sent to visible, and the lag at every moment."""

import pytest

from moldau.demo.timeline import Moment, Span, Timeline, VisibleOffsets, spans_of
from moldau.names import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


@pytest.fixture
def timeline() -> Timeline:
    """100 records of A are sent at 10 and 12, 50 of B at 14; loads end at 15 (150 of A) and at 20 (all)."""
    spans = [Span(A, 0, 100, 10.0, 11.0), Span(A, 100, 200, 12.0, 13.0), Span(B, 0, 50, 14.0, 16.0)]
    return Timeline(10.0, spans, [VisibleOffsets(15.0, {A: 150}), VisibleOffsets(20.0, {A: 200, B: 50})])


def test_a_records_delay_ends_with_the_first_load_that_has_it(timeline: Timeline) -> None:
    assert timeline.delays() == [(3.0, 50), (5.0, 100), (6.0, 50), (8.0, 50)]
    assert [timeline.delay(share) for share in (0.2, 0.5, 0.8, 0.95, 1.0)] == [3.0, 5.0, 6.0, 8.0, 8.0]


def test_records_that_no_load_has_are_left_out() -> None:
    timeline = Timeline(0.0, [Span(A, 0, 10, 0.0, 1.0), Span(B, 0, 10, 0.0, 1.0)], [VisibleOffsets(4.0, {A: 7})])
    assert timeline.delays() == [(4.0, 7)]
    assert Timeline(0.0, [Span(A, 0, 10, 0.0, 1.0)]).delay(0.5) is None and Timeline().lags() == []


def test_the_lag_is_what_was_acknowledged_and_is_not_visible(timeline: Timeline) -> None:
    lags = timeline.lags(points=6)
    assert lags == [
        Moment(0, 0, 0),
        Moment(2, 100, 0),
        Moment(4, 200, 0),
        Moment(6, 250, 150),
        Moment(8, 250, 150),
        Moment(10, 250, 250),
    ]
    assert [lag.records for lag in lags] == [0, 100, 200, 100, 100, 0]
    assert timeline.records_in() == {A: 200, B: 50}


def test_records_sent_together_are_one_span_for_each_partition() -> None:
    spans = spans_of([(A, 7), (B, 0), (A, 8), (A, 9), (B, 1)], 1.0, 2.0)
    assert spans == [Span(A, 7, 10, 1.0, 2.0), Span(B, 0, 2, 1.0, 2.0)]
