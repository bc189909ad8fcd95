"""What the comparison says of windows, tiers and producers, on values."""

import random

import pytest

from moldau.client.monitoring import MonitoringEvent
from moldau.errors import ConfigError
from moldau.pipeline.audit.produced import add_up
from moldau.pipeline.audit.reconciling import CHANGED, COMPLETE, DOUBLED, MISSING, OPEN, Books, reconcile
from moldau.pipeline.audit.report import render
from moldau.pipeline.audit.reported import Reported
from moldau.pipeline.audit.windows import Digests, window_ms
from moldau.records.digests import Digest

MINUTE_MS = 60_000
NOON_MS = 1_767_268_800_000
LATER_MS = NOON_MS + 1_000 * MINUTE_MS


def windows(*counts: int) -> Digests:
    """Windows of a minute each with this many records, whose hashes sum up to ten times as much."""
    return {NOON_MS + at * MINUTE_MS: Digest(count, 10 * count) for at, count in enumerate(counts) if count}


def books(produced: Digests, **tiers: Digests) -> Books:
    held = [(name, digests, ()) for name, digests in tiers.items()]
    return Books([reconcile("orders", Reported(produced), held, MINUTE_MS, LATER_MS)], MINUTE_MS)


def test_tiers_that_hold_everything_are_complete() -> None:
    audited = books(windows(3, 4), origin=windows(3, 4), mirror=windows(3, 4))
    assert audited.complete and not list(audited.sentences())
    assert [window.state for window in audited.topics[0].tiers[1].windows] == [COMPLETE, COMPLETE]


def test_each_fault_is_named_with_its_window() -> None:
    found = {**windows(3, 2, 5, 4), NOON_MS + 3 * MINUTE_MS: Digest(4, 41)}
    audited = books(windows(3, 4, 4, 4), origin=windows(3, 4, 4, 4), mirror=found)
    assert [window.state for window in audited.topics[0].tiers[1].windows] == [COMPLETE, MISSING, DOUBLED, CHANGED]
    assert list(audited.sentences()) == [
        "orders: mirror, window 2026-01-01T12:01:00Z: 2 of 4 records missing.",
        "orders: mirror, window 2026-01-01T12:02:00Z: 1 more than the 4 records acknowledged.",
        "orders: mirror, window 2026-01-01T12:03:00Z: 4 records as acknowledged, but with another sum of hashes.",
    ]


def test_a_tier_that_stopped_is_named_once_with_its_last_moment() -> None:
    audited = books(windows(3, 4, 4, 4), origin=windows(3, 4, 4, 4), mirror=windows(3, 3))
    assert list(audited.sentences()) == [
        "orders: mirror has stopped: no record from 2026-01-01T12:02:00Z on, 8 missing.",
        "orders: mirror, window 2026-01-01T12:01:00Z: 1 of 4 records missing.",
    ]
    assert audited.to_tree()["topics"]["orders"]["tiers"]["mirror"]["stopped_at"] == "2026-01-01T12:02:00Z"


def test_one_empty_window_at_the_end_is_not_a_tier_that_stopped() -> None:
    audited = books(windows(3, 4), mirror=windows(3))
    assert list(audited.sentences()) == ["orders: mirror, window 2026-01-01T12:01:00Z: 4 of 4 records missing."]


def test_a_window_that_has_not_ended_is_not_judged() -> None:
    book = reconcile(
        "orders", Reported(windows(3, 4)), [("origin", windows(3), ())], MINUTE_MS, NOON_MS + 2 * MINUTE_MS - 1
    )
    assert [window.state for window in book.tiers[0].windows] == [COMPLETE, OPEN]
    assert Books([book], MINUTE_MS).complete


def test_before_any_window_has_ended_nothing_is_complete() -> None:
    held = [("origin", windows(3, 4), ()), ("warehouse", {}, ())]
    new = reconcile("orders", Reported(windows(3, 4)), held, MINUTE_MS, NOON_MS + MINUTE_MS - 1)
    audited = Books([new], MINUTE_MS)
    sentence = "orders: no window has ended, so nothing can be judged yet; the first one ends at 2026-01-01T12:01:00Z."
    assert not audited.complete and list(audited.sentences()) == [sentence]
    assert audited.to_tree()["faults"] == [sentence] and not audited.to_tree()["complete"]
    page = render(audited)
    assert "Nothing could be judged yet." in page and "The audit found faults." not in page
    old = reconcile("clicks", Reported(windows(3)), [("origin", windows(3), ())], MINUTE_MS, LATER_MS)
    both = Books([old, new], MINUTE_MS)
    assert not both.complete and list(both.sentences()) == [sentence], "one topic says nothing of another one"
    assert "The audit is not complete." in render(both)


def test_without_a_report_nothing_is_complete() -> None:
    audited = books({}, origin=windows(3))
    assert not audited.complete
    assert next(audited.sentences()) == (
        "orders: no producer has reported a record; its producers need the setting audit_topic."
    )


def event(instance: str, sequence: int, count: int = 0, topic: str = "orders", at: int = 0) -> MonitoringEvent:
    start = NOON_MS + at * MINUTE_MS
    return MonitoringEvent(
        instance, sequence, "host", "shop", topic, start, MINUTE_MS, Digest(count, 10 * count), start, not topic, start
    )


def test_events_of_all_instances_are_added_up_in_any_order_and_once() -> None:
    events = [event("a", 0, 3), event("a", 1, 1), event("a", 2, 4, at=1), event("a", 3, topic=""), event("b", 0, 2),
              event("b", 1, 9, topic="others"), event("b", 2, topic="")]  # fmt: skip
    again = [*events, *events[:4]]
    random.Random(1).shuffle(again)
    found = add_up(again, ["orders"], MINUTE_MS)
    assert found.topics == {"orders": Reported(windows(6, 4))}
    assert found.notes() == []


def test_a_missing_event_and_a_producer_that_was_killed_are_noted() -> None:
    events = [event("a", 0, 3), event("a", 2, topic=""), event("b", 0, 1), None]
    found = add_up(events, ["orders"], MINUTE_MS)
    assert found.notes() == [
        "The audit topic has 1 record that cannot be read as an event.",
        "Producer shop on host: 1 monitoring event missing from the audit topic.",
        "Producer shop on host still runs, or ended without its last report.",
    ]


def test_windows_are_widened_to_a_multiple() -> None:
    wide = add_up([event("a", 0, 3), event("a", 1, 4, at=1)], ["orders"], 10 * MINUTE_MS)
    assert wide.topics["orders"].windows == {NOON_MS: Digest(7, 70)}
    with pytest.raises(ConfigError, match="must be a multiple, not 90000 ms"):
        add_up([event("a", 0, 3)], ["orders"], 90_000)


@pytest.mark.parametrize(("text", "length"), [("30s", 30_000), ("10m", 600_000), ("1h", 3_600_000), ("1d", 86_400_000)])
def test_lengths(text: str, length: int) -> None:
    assert window_ms(text) == length


@pytest.mark.parametrize("text", ["", "10", "m", "0m", "-1m", "1.5h", "367d", "9" * 30 + "d", "10 m"])
def test_a_wrong_length_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a length such as 30s"):
        window_ms(text)


def test_the_page_says_what_is_wrong_and_escapes_names() -> None:
    many = {NOON_MS + at * MINUTE_MS: Digest(5, 50, 1, 90_000, ((1, 2), (90_111, 3))) for at in range(400)}
    held = {**many, NOON_MS: Digest(4, 40)}
    book = reconcile(
        "<orders>", Reported(many), [("origin", many, ()), ("mirror", held, ["a <note>"])], MINUTE_MS, 1 << 60
    )
    page = render(Books([book], MINUTE_MS, ["another"]))
    assert "The audit found faults." in page and "window 2026-01-01T12:00:00Z: 1 of 5 records missing." in page
    assert "<orders>" not in page and "&lt;orders&gt;" in page and "a &lt;note&gt;" in page
    assert page.count("var(--bad)") >= 2 and "Windows with late records: 400" in page
    good = render(Books([reconcile("orders", Reported(many), [("origin", many, ())], MINUTE_MS, 1 << 60)], MINUTE_MS))
    assert "Complete: each of the 2,000 acknowledged records is in every tier, once." in good
    assert "Neither a report nor a record" in render(books({}))
