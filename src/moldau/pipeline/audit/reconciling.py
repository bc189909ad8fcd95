"""Compares what producers had acknowledged with what the tiers hold, window by window. Pure: values in, values out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moldau.names import counted
from moldau.pipeline.audit.windows import Digests
from moldau.records.digests import Digest, total

COMPLETE, MISSING, DOUBLED, CHANGED, OPEN = "complete", "missing", "doubled", "changed", "open"
STATES = (COMPLETE, MISSING, DOUBLED, CHANGED, OPEN)
"""`changed`: as many records as were acknowledged, but not the same: at least one is missing and one is doubled or
altered. `open`: the window has not ended, so it is not judged."""
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class WindowBook:
    """One window of one topic in one tier."""

    start_ms: int
    expected: Digest
    found: Digest
    state: str

    @property
    def difference(self) -> int:
        """Records found minus records expected."""
        return self.found.records - self.expected.records


@dataclass(frozen=True)
class TierBook:
    """One topic in one tier. `stopped_ms` is the start of the first of the last windows, all of which are empty."""

    name: str
    windows: Sequence[WindowBook]
    notes: Sequence[str] = ()
    stopped_ms: int | None = None

    @property
    def found(self) -> Digest:
        """Everything that the tier holds; with delays if it knows when records arrived."""
        return total(window.found for window in self.windows)

    @property
    def wrong(self) -> list[WindowBook]:
        return [window for window in self.windows if window.state not in (COMPLETE, OPEN)]


@dataclass(frozen=True)
class TopicBook:
    """One topic: what was acknowledged, in all and by window, and each tier."""

    topic: str
    expected: Digest
    tiers: Sequence[TierBook]
    by_window: Mapping[int, Digest] = field(default_factory=dict)


@dataclass(frozen=True)
class Books:
    """The whole audit."""

    topics: Sequence[TopicBook]
    window_ms: int
    notes: Sequence[str] = ()

    @property
    def complete(self) -> bool:
        """Whether every tier holds every record of every window that has ended, and there is anything to compare."""
        return not any(self.sentences())

    def sentences(self) -> Iterator[str]:
        """A sentence for each fault, the gravest of a tier first."""
        for book in self.topics:
            if not book.expected.records:
                yield f"{book.topic}: no producer has reported a record; its producers need the setting audit_topic."
            for tier in book.tiers:
                yield from self._faults(book, tier)

    def _faults(self, book: TopicBook, tier: TierBook) -> Iterator[str]:
        if tier.stopped_ms is not None:
            lost = sum(-window.difference for window in tier.windows if window.start_ms >= tier.stopped_ms)
            stopped = moment(tier.stopped_ms)
            yield f"{book.topic}: {tier.name} has stopped: no record from {stopped} on, {lost:,} missing."
        for window in tier.wrong:
            if tier.stopped_ms is None or window.start_ms < tier.stopped_ms:
                yield f"{book.topic}: {tier.name}, window {moment(window.start_ms)}: {fault(window)}."

    def to_tree(self) -> dict[str, Any]:
        """The audit for programs."""
        return {
            "complete": self.complete,
            "window_ms": self.window_ms,
            "faults": list(self.sentences()),
            "notes": list(self.notes),
            "topics": {book.topic: _topic_tree(book) for book in self.topics},
        }


def reconcile(
    topic: str, produced: Digests, tiers: Sequence[tuple[str, Digests, Sequence[str]]], window_ms: int, now_ms: int
) -> TopicBook:
    """Compare a topic's tiers with what was acknowledged. Windows that end after `now_ms` stay open."""
    books = []
    for name, held, notes in tiers:
        windows = []
        for start in sorted({*produced, *held}):
            expected, found = produced.get(start, Digest()), held.get(start, Digest())
            state = OPEN if start + window_ms > now_ms else _state(expected, found)
            windows.append(WindowBook(start, expected, found, state))
        books.append(TierBook(name, windows, tuple(notes), _stopped(windows)))
    return TopicBook(topic, total(produced.values()), books, dict(sorted(produced.items())))


def _state(expected: Digest, found: Digest) -> str:
    if expected.same_records(found):
        return COMPLETE
    if found.records == expected.records:
        return CHANGED
    return MISSING if found.records < expected.records else DOUBLED


def _stopped(windows: Sequence[WindowBook]) -> int | None:
    """Where a tier's records end, if at least two windows behind are empty, or all are."""
    judged = [window for window in windows if window.state != OPEN]
    empty = 0
    for window in reversed(judged):
        if window.found.records or not window.expected.records:
            break
        empty += 1
    return judged[-empty].start_ms if empty >= 2 or (empty and empty == len(judged)) else None


def fault(window: WindowBook) -> str:
    """What is wrong with a window, in words."""
    of = f"of {counted(window.expected.records, 'record')}"
    if window.state == MISSING:
        return f"{-window.difference:,} {of} missing"
    if window.state == DOUBLED:
        return f"{window.difference:,} more than the {counted(window.expected.records, 'record')} acknowledged"
    return f"{counted(window.expected.records, 'record')} as acknowledged, but with another sum of hashes"


def moment(start_ms: int) -> str:
    """A time in UTC as text; the number itself where no calendar reaches."""
    try:
        time = datetime.fromtimestamp(start_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{start_ms} ms"
    return time.isoformat(timespec="seconds" if start_ms % 1000 == 0 else "milliseconds").replace("+00:00", "Z")


def delays_tree(digest: Digest) -> dict[str, int | None]:
    """Percentiles of the delays in ms, and the longest."""
    return {**{name: digest.delay_ms(share) for name, share in SHARES.items()}, "max": digest.delay_ms_max}


def _topic_tree(book: TopicBook) -> dict[str, Any]:
    return {
        "acknowledged": book.expected.records,
        "late": book.expected.late,
        "late_windows": [moment(start) for start, digest in book.by_window.items() if digest.late],
        "delay_ms": delays_tree(book.expected),
        "tiers": {
            tier.name: {
                "records": tier.found.records,
                "delay_ms": delays_tree(tier.found) if tier.found.delays else None,
                "windows": {state: sum(w.state == state for w in tier.windows) for state in STATES},
                "stopped_at": None if tier.stopped_ms is None else moment(tier.stopped_ms),
                "notes": list(tier.notes),
                "wrong": [
                    {
                        "window": moment(window.start_ms),
                        "state": window.state,
                        "acknowledged": window.expected.records,
                        "found": window.found.records,
                    }
                    for window in tier.wrong
                ],
            }
            for tier in book.tiers
        },
    }
