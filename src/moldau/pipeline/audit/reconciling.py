"""Compares what producers had acknowledged with what the tiers hold, window by window. Pure: values in, values out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moldau.names import counted
from moldau.pipeline.audit.comparing import Difference
from moldau.pipeline.audit.reported import ReplayReport, Reported
from moldau.pipeline.audit.windows import Digests
from moldau.records.digests import Delays, Digest, added, total

COMPLETE, MISSING, DOUBLED, CHANGED, OPEN = "complete", "missing", "doubled", "changed", "open"
STATES = (COMPLETE, MISSING, DOUBLED, CHANGED, OPEN)
"""`changed`: as many records as were acknowledged, but not the same: at least one is missing and one is doubled or
altered. `open`: the window has not ended, so it is not judged."""
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class WindowBook:
    """One window of one topic in one tier. `differences` has the records that are missing or doubled, if they could be
    named."""

    start_ms: int
    expected: Digest
    found: Digest
    state: str
    differences: Sequence[Difference] = ()

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
    delays: Delays = ()
    delay_ms_max: int = 0

    @property
    def found(self) -> int:
        """The number of records that the tier holds."""
        return sum(window.found.records for window in self.windows)

    @property
    def wrong(self) -> list[WindowBook]:
        return [window for window in self.windows if window.state not in (COMPLETE, OPEN)]

    @property
    def wrong_before_stop(self) -> list[WindowBook]:
        """The wrong windows without those from `stopped_ms` on."""
        return [window for window in self.wrong if self.stopped_ms is None or window.start_ms < self.stopped_ms]

    @property
    def arrivals(self) -> Digest | None:
        """The delays of the tier's records, without windows that were replayed. None if it does not know when they
        arrived."""
        records = sum(count for _, count in self.delays)
        return Digest(records, delay_ms_max=self.delay_ms_max, delays=self.delays) if records else None


@dataclass(frozen=True)
class TopicBook:
    """One topic: what was acknowledged, in all and by window, what of it was replayed, and each tier. Late records and
    delays are without what was replayed."""

    topic: str
    expected: Digest
    tiers: Sequence[TierBook]
    by_window: Mapping[int, Digest] = field(default_factory=dict)
    replays: Sequence[ReplayReport] = ()

    @property
    def replayed(self) -> int:
        """The number of records that were replayed."""
        return sum(replay.records for replay in self.replays)

    def first_end_ms(self, window_ms: int) -> int | None:
        """When the first window ends, if none has ended. None if one has, or if no record was reported."""
        windows = [window for tier in self.tiers for window in tier.windows]
        if not windows or not self.expected.records or any(window.state != OPEN for window in windows):
            return None
        return min(window.start_ms for window in windows) + window_ms


@dataclass(frozen=True)
class Books:
    """The whole audit."""

    topics: Sequence[TopicBook]
    window_ms: int
    notes: Sequence[str] = ()

    @property
    def complete(self) -> bool:
        """Whether every tier holds every record of every window that has ended, and every topic has such a window."""
        return not any(self.sentences())

    @property
    def judged(self) -> bool:
        """Whether there is a topic with a window that has ended, or without any report."""
        return any(book.first_end_ms(self.window_ms) is None for book in self.topics)

    def sentences(self) -> Iterator[str]:
        """A sentence for each fault, the gravest of a tier first."""
        for book in self.topics:
            if not book.expected.records:
                yield f"{book.topic}: no producer has reported a record; its producers need the setting audit_topic."
            end_ms = book.first_end_ms(self.window_ms)
            if end_ms is not None:
                ends = f"the first one ends at {moment(end_ms)}"
                yield f"{book.topic}: no window has ended, so nothing can be judged yet; {ends}."
            for tier in book.tiers:
                yield from self._faults(book, tier)

    def _faults(self, book: TopicBook, tier: TierBook) -> Iterator[str]:
        if tier.stopped_ms is not None:
            lost = sum(-window.difference for window in tier.windows if window.start_ms >= tier.stopped_ms)
            stopped = moment(tier.stopped_ms)
            yield f"{book.topic}: {tier.name} has stopped: no record from {stopped} on, {lost:,} missing."
        for window in tier.wrong_before_stop:
            yield f"{book.topic}: {tier.name}, window {moment(window.start_ms)}: {fault(window)}{_named(window)}."

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
    topic: str, produced: Reported, tiers: Sequence[tuple[str, Digests, Sequence[str]]], window_ms: int, now_ms: int
) -> TopicBook:
    """Compare a topic's tiers with what was acknowledged. Windows that end after `now_ms` stay open."""
    books = []
    for name, held, notes in tiers:
        windows = []
        for start in sorted({*produced.windows, *held}):
            expected, found = produced.windows.get(start, Digest()), held.get(start, Digest())
            state = OPEN if start + window_ms > now_ms else _state(expected, found)
            windows.append(WindowBook(start, expected, found._replace(delays=()), state))
        measured = [digest for start, digest in held.items() if start not in produced.replayed]
        delays = added(digest.delays for digest in measured)
        longest = max((digest.delay_ms_max for digest in measured), default=0)
        books.append(TierBook(name, windows, tuple(notes), _stopped(windows), delays, longest))
    expected = total(produced.windows.values())._replace(delays=produced.delays)
    return TopicBook(topic, expected, books, dict(sorted(produced.windows.items())), produced.replays)


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


def _named(window: WindowBook) -> str:
    """The places of the records that are missing or doubled, in words; nothing if they are not known."""
    kinds = [difference.kind for difference in window.differences]
    if kinds == [window.state]:
        return f": {window.differences[0].where}"
    return f" ({'; '.join(f'{one.kind}: {one.where}' for one in window.differences)})" if kinds else ""


def moment(start_ms: int) -> str:
    """A time in UTC as text; the number itself where no calendar reaches."""
    try:
        time = datetime.fromtimestamp(start_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{start_ms} ms"
    return time.isoformat(timespec="seconds" if start_ms % 1000 == 0 else "milliseconds").replace("+00:00", "Z")


def delays_tree(digest: Digest) -> dict[str, int | None]:
    """Percentiles of the delays in ms, and the longest."""
    longest = digest.delay_ms_max if digest.delays else None
    return {**{name: digest.delay_ms(share) for name, share in SHARES.items()}, "max": longest}


def _topic_tree(book: TopicBook) -> dict[str, Any]:
    return {
        "acknowledged": book.expected.records,
        "late": book.expected.late,
        "late_windows": [moment(start) for start, digest in book.by_window.items() if digest.late],
        "replayed": book.replayed,
        "replays": [
            {
                "producer": replay.producer,
                "server": replay.server,
                "started": moment(replay.started_ms),
                "records": replay.records,
                "from": moment(replay.first_ms),
                "to": moment(replay.end_ms),
            }
            for replay in book.replays
        ],
        "delay_ms": delays_tree(book.expected),
        "tiers": {tier.name: _tier_tree(tier) for tier in book.tiers},
    }


def _tier_tree(tier: TierBook) -> dict[str, Any]:
    return {
        "records": tier.found,
        "delay_ms": delays_tree(tier.arrivals) if tier.arrivals else None,
        "windows": {state: sum(w.state == state for w in tier.windows) for state in STATES},
        "stopped_at": None if tier.stopped_ms is None else moment(tier.stopped_ms),
        "notes": list(tier.notes),
        "wrong": [
            {
                "window": moment(window.start_ms),
                "state": window.state,
                "acknowledged": window.expected.records,
                "found": window.found.records,
                "differences": [difference.to_tree() for difference in window.differences],
            }
            for window in tier.wrong
        ],
    }
