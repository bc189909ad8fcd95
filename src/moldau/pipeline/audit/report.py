"""The audit's report: one self-contained HTML page. Pure: it turns values into text, and escapes all text from data."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

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
from moldau.pipeline.pages import charts
from moldau.pipeline.pages.style import STYLE
from moldau.records.digests import Digest, total

FAULTS_SHOWN, ROWS_SHOWN = 20, 500
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
    sections = "".join(_topic(book, books.window_ms) for book in books.topics)
    notes = [*books.notes, *(note for book in books.topics for tier in book.tiers for note in tier.notes)]
    if notes:
        listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        sections += f"<section><h2>Notes</h2><ul>{listed}</ul></section>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Moldau: audit</title><style>{STYLE}</style></head><body>"
        f"<header>{_opening(books)}</header><main>{sections}</main>"
        "<footer><p>Times are in UTC. A window is complete if a tier holds as many records as were acknowledged and "
        "the sum of their 64-bit hashes is the same, so that a lost and a doubled record do not balance.</p></footer>"
        "</body></html>\n"
    )


def _opening(books: Books) -> str:
    faults = list(books.sentences())
    acknowledged = total(book.expected for book in books.topics)
    windows = [window for book in books.topics for tier in book.tiers for window in tier.windows]
    complete = sum(window.state == COMPLETE for window in windows)
    if faults:
        more = len(faults) - FAULTS_SHOWN
        listed = "".join(f"<li>{html.escape(one)}</li>" for one in faults[:FAULTS_SHOWN])
        listed += f"<li>and {more:,} more</li>" if more > 0 else ""
        verdict = f'<div class="verdict bad" role="alert">The audit found faults.<ul>{listed}</ul></div>'
    else:
        verdict = (
            f'<div class="verdict good">Complete: each of the {acknowledged.records:,} acknowledged records is in '
            "every tier, once.</div>"
        )
    tiers = list(dict.fromkeys(tier.name for book in books.topics for tier in book.tiers))
    figures = [
        ("Acknowledged records", f"{acknowledged.records:,}", f"in {counted(len(books.topics), 'topic')}"),
        ("Tiers", f"{len(tiers)}", ", ".join(tiers)),
        ("Complete windows", f"{complete:,}", f"of {len(windows):,}, each of {_length(books.window_ms)}"),
        ("Late records", f"{acknowledged.late:,}", f"99% within {_delay(acknowledged.delay_ms(0.99))}"),
    ]
    tiles = "".join(f"<div><dt>{a}</dt><dd>{b}<small>{html.escape(c)}</small></dd></div>" for a, b, c in figures)
    names = html.escape(", ".join(book.topic for book in books.topics))
    return (
        f'<p class="kicker">Moldau audit</p><h1>Is every record where it should be?</h1><p class="lead">What producers '
        f"had acknowledged, compared with what each tier holds, window by window of event time: {names}.</p>"
        f'{verdict}<dl class="figures">{tiles}</dl>'
    )


def _topic(book: TopicBook, window_ms: int) -> str:
    starts = sorted({*book.by_window, *(window.start_ms for tier in book.tiers for window in tier.windows)})
    if not starts:
        return f"<section><h2>{html.escape(book.topic)}</h2><p>Neither a report nor a record.</p></section>"
    ends = moment(starts[0]), moment(starts[-1] + window_ms)
    cells = {tier.name: [COLOURS[state] for state in _cells(tier)] for tier in book.tiers}
    said = "; ".join(f"{tier.name}: {len(tier.wrong)} of {len(tier.windows)} windows are wrong" for tier in book.tiers)
    parts = [charts.strips(f"Windows of {book.topic}", said, cells, ends), _legend()]
    numbers = [book.by_window.get(start, Digest()).records for start in starts]
    if len(starts) > 1:
        marks = {0: ends[0], len(starts) - 1: ""}
        parts.append("<h3>Acknowledged records in each window</h3>")
        parts.append(charts.area("Acknowledged records", f"{sum(numbers):,} in all.", numbers, marks, "records"))
    heads = ["Tier", "Records", "Complete windows", "Wrong windows", "Open windows", "Stopped at"]
    rows = [_tier_row(tier) for tier in book.tiers]
    parts.append(_scroll(_table("Tiers", heads, rows)))
    wrong = [
        [moment(window.start_ms), tier.name, f"{window.expected.records:,}", f"{window.found.records:,}", fault(window)]
        for tier in book.tiers
        for window in tier.wrong
    ]
    if wrong:
        caption = f"{counted(len(wrong), 'wrong window')}; at most {ROWS_SHOWN} are shown"
        heads = ["Window", "Tier", "Acknowledged", "Found", "Fault"]
        parts.append(f"<h3>What is wrong</h3>{_scroll(_table(caption, heads, wrong[:ROWS_SHOWN]))}")
    parts.append(_delays(book))
    text = f"{book.expected.records:,} records were acknowledged between {ends[0]} and {ends[1]}."
    return f"<section><h2>{html.escape(book.topic)}</h2><p>{html.escape(text)}</p>{''.join(parts)}</section>"


def _delays(book: TopicBook) -> str:
    """Delays of the acknowledgements, and the windows that had late records."""
    heads = ["Delay", *SHARES, "longest"]
    measured = [("event time to acknowledgement", book.expected)]
    measured += [(f"event time to {tier.name}", tier.found) for tier in book.tiers if tier.found.delays]
    rows = [
        [name, *(_delay(digest.delay_ms(share)) for share in SHARES.values()), _delay(digest.delay_ms_max)]
        for name, digest in measured
    ]
    table = _scroll(_table("At most this long", heads, rows))
    late = [
        [moment(start), f"{digest.records:,}", f"{digest.late:,}", _delay(digest.delay_ms_max)]
        for start, digest in book.by_window.items()
        if digest.late
    ]
    if late:
        heads = ["Window", "Records", "Late", "Longest delay"]
        shown = _scroll(_table("Windows with late records", heads, late[:ROWS_SHOWN]))
        table += f"<details><summary>Windows with late records: {len(late):,}</summary>{shown}</details>"
    return f"<h3>Delays</h3>{table}"


def _cells(tier: TierBook) -> list[str]:
    """The states of the windows; several windows share a cell if there are many, and the gravest state shows."""
    states = [window.state for window in tier.windows]
    size = -(-len(states) // CELLS_MAX) or 1
    return [min(states[at : at + size], key=GRAVEST.index) for at in range(0, len(states), size)]


def _tier_row(tier: TierBook) -> list[str]:
    states = [window.state for window in tier.windows]
    return [
        tier.name,
        f"{tier.found.records:,}",
        f"{states.count(COMPLETE):,}",
        f"{len(tier.wrong):,}",
        f"{states.count(OPEN):,}",
        "" if tier.stopped_ms is None else moment(tier.stopped_ms),
    ]


def _legend() -> str:
    items = "".join(
        f'<li><span class="key" style="background:{colour}"></span>{state}</li>' for state, colour in COLOURS.items()
    )
    return f'<ul class="legend">{items}</ul>'


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


def _scroll(table: str) -> str:
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{html.escape(str(row[0]))}</th>'
        + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
