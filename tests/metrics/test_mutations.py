"""Bugs of lag, and of the texts that Prometheus reads, put in on purpose: the tests of each rule find them."""

from collections.abc import Callable

import pytest

from tests.metrics import test_families as families
from tests.records import test_lag as lag
from tests.replacing import Instead, assert_found

LAG = "moldau.records.lag"
FAMILIES = "moldau.metrics.families"

BUGS: dict[str, tuple[Instead, Callable[[], None]]] = {
    "deleted records count as lag": (
        Instead(f"{LAG}:lag_records", lambda of, committed, _, end: of(committed, 0, end)),
        lag.test_nothing_waits_at_or_behind_the_end,
    ),
    "a commit beyond the end is a negative lag": (
        Instead(f"{LAG}:lag_records", lambda _, committed, start, end: end - max(committed, start)),
        lag.test_nothing_waits_at_or_behind_the_end,
    ),
    "markers and aborted records wait": (
        Instead(
            f"{LAG}:first_waiting", lambda of, spans, *at: of((one._replace(is_hidden=False) for one in spans), *at)
        ),
        lag.test_markers_and_gaps_do_not_wait,
    ),
    "the age is that of the batch": (
        Instead(f"{LAG}:BatchSpan.timestamp_at", lambda _, self, __: self.last_ms),
        lag.test_the_record_at_the_committed_offset_waits,
    ),
    "a record of the future has a negative age": (
        Instead(f"{LAG}:lag_seconds", lambda _, now_ms, waiting_ms: (now_ms - (waiting_ms or now_ms)) / 1000),
        lag.test_seconds_are_counted_from_the_records_timestamp,
    ),
    "a quote ends a label's value": (
        Instead(f"{FAMILIES}:label_value", lambda _, text: text),
        families.test_a_label_keeps_its_value_in_one_line,
    ),
    "numbers are rounded": (
        Instead(f"{FAMILIES}:number", lambda _, value: f"{value:g}"),
        families.test_numbers_read_back_as_the_same_numbers,
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert_found(*BUGS[name])
