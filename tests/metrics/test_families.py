"""The two text formats: what Prometheus' own parsers read is what was written."""

import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from moldau.metrics.families import (
    Family,
    counter,
    gauge,
    histogram,
    label_value,
    labels,
    number,
    one,
    text_of,
    wants_open_metrics,
)
from moldau.net.durations import Durations, by_label, quantile

HOSTILE = 'a "quoted" \\ name\nof two lines, {braces}=1 # ünïcode'


def durations() -> Family:
    found = Durations()
    for seconds in (0.000_003, 0.004, 0.004, 1.5, 1000.0):
        found.add(seconds)
    return histogram("took_seconds", "How long.", by_label("api", {"Produce": found}))


def all_kinds() -> list[Family]:
    return [
        one("free", "A gauge.", 0.5),
        gauge("sizes", HOSTILE, [(labels(group=HOSTILE, part=1), 1 << 53), (labels(group="b", part=2), -1)]),
        counter("seen", "A counter.", [(labels(topic="t"), 7), ("", 8)]),
        durations(),
        gauge("nobody", "A family without samples.", []),
    ]


@pytest.mark.parametrize("open_metrics", [False, True])
def test_the_parsers_of_prometheus_read_what_was_written(open_metrics: bool) -> None:
    text = text_of(all_kinds(), open_metrics).decode()
    parse = open_metrics_families if open_metrics else text_families
    found = {family.name: family for family in parse(text)}
    assert set(found) == {"free", "sizes", "seen", "took_seconds"}
    assert [(one.labels, one.value) for one in found["sizes"].samples] == [
        ({"group": HOSTILE, "part": "1"}, 1 << 53),
        ({"group": "b", "part": "2"}, -1),
    ]
    assert found["sizes"].documentation == HOSTILE
    assert {(one.name, one.value) for one in found["seen"].samples} == {("seen_total", 7), ("seen_total", 8)}
    assert found["seen"].type == "counter"
    buckets = [one for one in found["took_seconds"].samples if one.name == "took_seconds_bucket"]
    assert [one.value for one in buckets] == sorted(one.value for one in buckets)
    assert buckets[-1].labels == {"api": "Produce", "le": "+Inf"}
    assert buckets[-1].value == 5


def test_an_open_metrics_text_has_its_end_and_the_other_has_none() -> None:
    assert text_of([one("free", "A gauge.", 1)], True).endswith(b"\nfree 1\n# EOF\n")
    assert text_of([one("free", "A gauge.", 1)], False).endswith(b"\nfree 1\n")


def test_numbers_read_back_as_the_same_numbers() -> None:
    for value in (0, -1, 1 << 62, 0.1, 1e300, 5e-324):
        assert float(number(value)) == value
    assert (number(math.inf), number(-math.inf), number(math.nan)) == ("+Inf", "-Inf", "NaN")


def test_a_label_keeps_its_value_in_one_line() -> None:
    assert label_value("plain") == "plain"
    assert label_value('"\\\n') == '\\"\\\\\\n'


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        ("text/plain,application/openmetrics-text;q=0.4", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=many,text/plain", False),
    ],
)
def test_the_client_chooses_the_format(accept: str, wanted: bool) -> None:
    assert wants_open_metrics(accept) is wanted


def test_a_quantile_is_the_bound_that_this_share_did_not_exceed() -> None:
    found = Durations()
    assert quantile(found, 0.99) == 0
    found.add(0.001, times=99)
    found.add(2.0)
    assert 0.001 <= quantile(found, 0.5) <= 0.002
    assert 2.0 <= quantile(found, 0.999) <= 4.2
    assert found.count == 100
    assert found.sum_s == pytest.approx(2.099)
