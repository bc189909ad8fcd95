"""The audit's report: one self-contained HTML page. Pure: it turns values into text."""

from moldau.names import counted
from moldau.pipeline.audit.reconciling import (
    CHANGED,
    COMPLETE,
    DOUBLED,
    MISSING,
    OPEN,
    SHARES,
    Books,
    TierBook,
    TopicBook,
    fault,
    moment,
)
from moldau.pipeline.pages import charts, parts
from moldau.pipeline.pages.parts import Figure
from moldau.records.digests import Digest, total

ROWS_SHOWN = 500
CELLS_MAX = 120
COLOURS = {
    COMPLETE: "var(--good)",
    MISSING: "var(--bad)",
    DOUBLED: "var(--c2)",
    CHANGED: "var(--c4)",
    OPEN: "var(--rule)",
}
GRAVEST = (MISSING, DOUBLED, CHANGED, OPEN, COMPLETE)


def render(books: Books) -> str:
    """The whole page."""
    sections = [_topic(book, books.window_ms) for book in books.topics]
    notes = [*books.notes, *(note for book in books.topics for tier in book.tiers for note in tier.notes)]
    if notes:
        sections.append(parts.section("Notes", "What else the audit found.", parts.items(notes)))
    footer = (
        "Times are in UTC. A window is complete if a tier holds as many records as were acknowledged and the sum of "
        "their 64-bit hashes is the same, so that a lost and a doubled record do not balance."
    )
    return parts.page("Moldau: audit", _opening(books), sections, parts.paragraph(footer))


def _opening(books: Books) -> str:
    acknowledged = total(book.expected for book in books.topics)
    windows = [window for book in books.topics for tier in book.tiers for window in tier.windows]
    complete, still_open = (sum(window.state == state for window in windows) for state in (COMPLETE, OPEN))
    more = f"; {still_open:,} are open" if still_open else ""
    tiers = list(dict.fromkeys(tier.name for book in books.topics for tier in book.tiers))
    figures = [
        Figure("Acknowledged records", f"{acknowledged.records:,}", f"in {counted(len(books.topics), 'topic')}"),
        Figure("Tiers", f"{len(tiers)}", ", ".join(tiers)),
        Figure("Complete windows", f"{complete:,}", f"of {len(windows) - still_open:,} that have ended{more}"),
        Figure("Late records", f"{acknowledged.late:,}", _late_note(acknowledged, books)),
    ]
    good = f"Complete: each of the {acknowledged.records:,} acknowledged records is in every tier, once."
    topics = ", ".join(book.topic for book in books.topics)
    lead = (
        "What producers had acknowledged, compared with what each tier holds, in windows of "
        f"{_length(books.window_ms)} of event time: "
    )
    faults = any(tier.wrong for book in books.topics for tier in book.tiers)
    bad = "The audit found faults." if faults else "The audit is not complete."
    return parts.opening(
        "Moldau audit", "Is every record where it should be?", f"{lead}{topics}.",
        parts.verdict(good, bad if books.judged else "Nothing could be judged yet.", list(books.sentences())), figures,
    )  # fmt: skip


def _late_note(acknowledged: Digest, books: Books) -> str:
    replayed = sum(book.replayed for book in books.topics)
    notes = [f"99% within {_delay(acknowledged.delay_ms(0.99))}"] if acknowledged.delays else []
    notes += [f"{replayed:,} were replayed"] if replayed else []
    return "; ".join(notes) or "no delay is known"


def _topic(book: TopicBook, window_ms: int) -> str:
    starts = sorted({*book.by_window, *(window.start_ms for tier in book.tiers for window in tier.windows)})
    if not starts:
        return parts.section(book.topic, "Neither a report nor a record.", "")
    ends = moment(starts[0]), moment(starts[-1] + window_ms)
    cells = {tier.name: [COLOURS[state] for state in _cells(tier)] for tier in book.tiers}
    said = "; ".join(f"{tier.name}: {len(tier.wrong)} of {len(tier.windows)} windows are wrong" for tier in book.tiers)
    body = charts.strips(f"Windows of {book.topic}", said, cells, ends) + charts.legend(COLOURS)
    numbers = [book.by_window.get(start, Digest()).records for start in starts]
    if len(starts) > 1:
        title, marks = "Acknowledged records in each window", {0: ends[0], len(starts) - 1: ""}
        body += parts.heading(title)
        body += charts.areas(title, f"{sum(numbers):,} in all.", {"records": numbers}, marks, "records")
    heads = ["Tier", "Records", "Complete windows", "Wrong windows", "Open windows", "Stopped at"]
    body += parts.table("Tiers", heads, [_tier_row(tier) for tier in book.tiers])
    wrong = [
        [moment(window.start_ms), tier.name, f"{window.expected.records:,}", f"{window.found.records:,}", fault(window)]
        for tier in book.tiers
        for window in tier.wrong
    ]
    if wrong:
        caption = f"{counted(len(wrong), 'wrong window')}; at most {ROWS_SHOWN} are shown"
        heads = ["Window", "Tier", "Acknowledged", "Found", "Fault"]
        table = parts.table(caption, heads, wrong[:ROWS_SHOWN], of_text=True)
        body += parts.heading("What is wrong") + table + _named(book)
    text = f"{counted(book.expected.records, 'acknowledged record')}, with event times from {ends[0]} to {ends[1]}."
    return parts.section(book.topic, text, body + _replays(book) + _delays(book))


def _named(book: TopicBook) -> str:
    """The places of the records that are missing or doubled."""
    named = [
        (window, tier, difference) for tier in book.tiers for window in tier.wrong for difference in window.differences
    ]
    if not named:
        return ""
    rows = [
        [moment(window.start_ms), tier.name, difference.kind, difference.tier, str(partition), str(offset)]
        for window, tier, difference in named
        for partition, offset in difference.places
    ]
    total = sum(difference.records for _, _, difference in named)
    caption = f"{min(len(rows), ROWS_SHOWN):,} of {counted(total, 'record')}"
    heads = ["Window", "Tier", "Record is", "Place in", "Partition", "Offset"]
    return parts.heading("Where the records are") + parts.table(caption, heads, rows[:ROWS_SHOWN], of_text=True)


def _replays(book: TopicBook) -> str:
    """The producers that replayed old records."""
    if not book.replays:
        return ""
    text = (
        "More than half of the records that each of these producers sent to this topic are older than the producer's "
        "start. They do not count as late, and the delays are without them."
    )
    heads = ["Producer", "Server", "Records", "From", "To", "Producer started"]
    rows = [
        [one.producer, one.server, f"{one.records:,}", moment(one.first_ms), moment(one.end_ms), moment(one.started_ms)]
        for one in book.replays
    ]
    caption = f"{counted(len(rows), 'replay')}; at most {ROWS_SHOWN} are shown"
    return (
        parts.heading("Replayed") + parts.paragraph(text) + parts.table(caption, heads, rows[:ROWS_SHOWN], of_text=True)
    )


def _delays(book: TopicBook) -> str:
    """Delays of the acknowledgements, and the windows that had late records."""
    heads = ["Delay", *SHARES, "longest"]
    measured = [("event time to acknowledgement", book.expected)] if book.expected.delays else []
    measured += [(f"event time to {tier.name}", tier.arrivals) for tier in book.tiers if tier.arrivals]
    rows = [
        [name, *(_delay(digest.delay_ms(share)) for share in SHARES.values()), _delay(digest.delay_ms_max)]
        for name, digest in measured
    ]
    body = parts.heading("Delays") + parts.table("At most this long", heads, rows) if rows else ""
    late = [
        [moment(start), f"{digest.records:,}", f"{digest.late:,}", _delay(digest.delay_ms_max)]
        for start, digest in book.by_window.items()
        if digest.late
    ]
    if late:
        title, heads = "Windows with late records", ["Window", "Records", "Late", "Longest delay"]
        body += parts.folded(f"{title}: {len(late):,}", parts.table(title, heads, late[:ROWS_SHOWN]))
    return body


def _cells(tier: TierBook) -> list[str]:
    """The states of the windows; several windows share a cell if there are many, and the gravest state shows."""
    states = [window.state for window in tier.windows]
    size = -(-len(states) // CELLS_MAX) or 1
    return [min(states[at : at + size], key=GRAVEST.index) for at in range(0, len(states), size)]


def _tier_row(tier: TierBook) -> list[str]:
    states = [window.state for window in tier.windows]
    return [
        tier.name,
        f"{tier.found:,}",
        f"{states.count(COMPLETE):,}",
        f"{len(tier.wrong):,}",
        f"{states.count(OPEN):,}",
        "" if tier.stopped_ms is None else moment(tier.stopped_ms),
    ]


def _length(window_ms: int) -> str:
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if window_ms % length == 0:
            return f"{window_ms // length} {unit}"
    return f"{window_ms} ms"


def _delay(ms: int | None) -> str:
    if ms is None:
        return "unknown"
    if ms < 1_000:
        return f"{ms} ms"
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= 2 * length:
            return f"{ms / length:,.1f} {unit}"
    return f"{ms / 1_000:.1f} s"
