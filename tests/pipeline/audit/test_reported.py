"""What counts as late and what as replayed, on values."""

import random

import pytest

from moldau.client.monitoring import MonitoringEvent
from moldau.pipeline.audit.produced import add_up
from moldau.pipeline.audit.reconciling import Books, reconcile
from moldau.pipeline.audit.report import render
from moldau.pipeline.audit.reported import ReplayReport, Reported
from moldau.records.digests import Digest

MINUTE_MS = 60_000
STARTED_MS = 1_767_268_800_000
YEAR_MS = 365 * 24 * 60 * MINUTE_MS


def event(
    sequence: int, age_ms: int, records: int, instance: str = "a", delay_ms: int | None = None, started: bool = True
) -> MonitoringEvent:
    """A report of records whose window began this long before the producer started; sent a second after its start, or
    when the window ended."""
    start = STARTED_MS - age_ms
    sent = max(STARTED_MS + 1_000, start + MINUTE_MS)
    delay = sent - start if delay_ms is None else delay_ms
    late = records if delay >= 2 * MINUTE_MS else 0
    digest = Digest(records, 10 * records, late, delay, ((delay, records),))
    return MonitoringEvent(
        instance, sequence, "host", "shop", "orders", start, MINUTE_MS, digest, sent,
        started_ms=STARTED_MS if started else None,
    )  # fmt: skip


def reported(*events: MonitoringEvent, window_ms: int = MINUTE_MS) -> Reported:
    shuffled = [*events, *events[:1]]
    random.Random(3).shuffle(shuffled)
    return add_up(shuffled, ["orders"], window_ms).topics["orders"]


@pytest.mark.parametrize("started", [True, False], ids=["format 2", "format 1"])
def test_a_producer_of_old_events_replays_and_has_no_delays(started: bool) -> None:
    events = [event(n, YEAR_MS - n * MINUTE_MS, 10, started=started) for n in range(50)]
    found = reported(*events)
    first = STARTED_MS - YEAR_MS
    at = STARTED_MS if started else STARTED_MS + 1_000
    assert found.replays == (ReplayReport("shop", "host", at, 500, first, first + 50 * MINUTE_MS),)
    assert found.replayed == {first + n * MINUTE_MS: 10 for n in range(50)}
    assert found.delays == () and sum(digest.late for digest in found.windows.values()) == 0
    assert {digest.delay_ms_max for digest in found.windows.values()} == {0}
    assert found.windows[first] == Digest(10, 100), "it counts all the same"


def test_some_late_records_of_a_producer_that_runs_are_late() -> None:
    now = [event(n, -n * MINUTE_MS, 10, delay_ms=5) for n in range(10)]
    found = reported(*now, event(10, YEAR_MS, 30))
    assert found.replays == () and found.replayed == {}
    assert found.windows[STARTED_MS - YEAR_MS].late == 30
    assert found.delays == ((5, 100), (YEAR_MS + 1_000, 30))


def test_a_replay_that_has_arrived_at_the_present_leaves_out_the_past_alone() -> None:
    found = reported(event(0, YEAR_MS, 90), event(1, 0, 10, delay_ms=7))
    assert [replay.records for replay in found.replays] == [90]
    assert found.delays == ((7, 10),)


def test_a_producer_whose_records_are_always_hours_late_is_no_replay() -> None:
    """Its clock or its source is slow: the records are of the time in which it runs."""
    hour_ms = 60 * MINUTE_MS
    found = reported(*(event(n, hour_ms - n * MINUTE_MS, 1, delay_ms=hour_ms) for n in range(300)))
    assert found.replays == () and sum(digest.late for digest in found.windows.values()) == 300


def test_each_instance_is_judged_by_itself_and_windows_are_widened() -> None:
    live = [event(n, -n * MINUTE_MS, 10, "live", delay_ms=5) for n in range(3)]
    found = reported(*live, event(3, YEAR_MS, 2, "live"), event(0, YEAR_MS, 40, "replay"), window_ms=10 * MINUTE_MS)
    old = (STARTED_MS - YEAR_MS) // (10 * MINUTE_MS) * 10 * MINUTE_MS
    assert [replay.records for replay in found.replays] == [40] and found.replayed == {old: 40}
    assert (found.windows[old].records, found.windows[old].late) == (42, 2)


def test_the_audit_says_replayed_and_measures_no_delay_of_a_tier_that_was_filled_by_a_replay() -> None:
    found = reported(event(0, YEAR_MS, 40))
    start = STARTED_MS - YEAR_MS
    tiers = [("origin", {start: Digest(40, 400)}, ()), ("warehouse", {start: Digest(40, 400, 0, 9, ((9, 40),))}, ())]
    audited = Books([reconcile("orders", found, tiers, MINUTE_MS, STARTED_MS + YEAR_MS)], MINUTE_MS)
    tree = audited.to_tree()["topics"]["orders"]
    assert audited.complete and (tree["late"], tree["replayed"]) == (0, 40)
    assert tree["delay_ms"]["p99"] is None and tree["tiers"]["warehouse"]["delay_ms"] is None
    assert tree["replays"][0]["from"] == "2025-01-01T12:00:00Z"
    page = render(audited)
    assert "40 were replayed" in page and "<h3>Replayed</h3>" in page and "<h3>Delays</h3>" not in page
