"""The answers of the streams: departures, cancellations, delays by carrier and weather, destinations."""

from collections.abc import Sequence

from moldau.demo import findings
from moldau.demo.findings import Delay
from moldau.demo.report.contents import Contents
from moldau.names import counted
from moldau.pipeline.pages import charts, parts
from moldau.pipeline.pages.charts import Bar

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NUMBERS = "Show the numbers"
CODES_SHOWN = 6


def departures(contents: Contents) -> str:
    """Departures by hour of the day, and departures and cancellations through the year."""
    hours = findings.departures_by_hour(contents.hours)
    all_hours = [sum(values[hour] for values in hours.values()) for hour in range(24)]
    peak = max(range(24), key=lambda hour: all_hours[hour])
    text = (
        f"The busiest hour begins at {peak}:00, with {all_hours[peak]:.0f} scheduled departures on a mean day. Counted "
        f"in one-hour windows of event time over the stream of flights. {_too_late(contents)}"
    )
    labels = [f"{hour}:00" for hour in range(24)]
    described = f"Mean scheduled departures by hour. {text}"
    by_hour = charts.lines("Departures per hour", described, hours, labels, "departures per hour")
    table = parts.table(
        "Mean scheduled departures per hour of the day", ["Hour", *hours, "All"],
        [[labels[h], *(f"{hours[o][h]:.1f}" for o in hours), f"{all_hours[h]:.1f}"] for h in range(24)],
    )  # fmt: skip
    body = by_hour + parts.folded(NUMBERS, table) + _through_the_year(contents)
    return parts.section("Departures per hour", text, body, "answers")


def _too_late(contents: Contents) -> str:
    """What the watermark of the windows dropped."""
    late = contents.flights - sum(row["departures"] for row in contents.hours)
    return f"The watermark is one day behind; {counted(late, 'flight')} came later than that and were left out."


def _through_the_year(contents: Contents) -> str:
    days = findings.departures_by_day(contents.hours)
    worst = max(days, key=lambda day: day[2]) if days else ("", 0, 0)
    cancelled = sum(day[2] for day in days)
    text = (
        f"{counted(cancelled, 'flight')} were cancelled in the year; most on one day: {worst[2]:,} of {worst[1]:,} on "
        f"{worst[0]}."
    )
    marks = {at: MONTHS[int(day[5:7]) - 1] for at, (day, _, _) in enumerate(days) if day.endswith("-01")}
    series = {"scheduled departures": [day[1] for day in days], "cancelled": [day[2] for day in days]}
    chart = charts.areas("Departures and cancellations per day", text, series, marks, "flights per day")
    rows = [[day, f"{flights:,}", f"{gone:,}", f"{gone / max(1, flights):.1%}"] for day, flights, gone in _worst(days)]
    table = parts.table("The ten days with the most cancellations", ["Day", "Scheduled", "Cancelled", "Share"], rows)
    return parts.heading("Through the year") + parts.paragraph(text) + chart + parts.folded(NUMBERS, table)


def _worst(days: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    return sorted(days, key=lambda day: (-day[2], day[0]))[:10]


def carriers(contents: Contents) -> str:
    """Delay by carrier."""
    delays = [d._replace(name=d.name or "unknown") for d in findings.delays_by(contents.delays, "airline")]
    joined = sum(row["flights"] for row in contents.delays)
    unnamed = sum(row["flights"] for row in contents.delays if row["airline"] is None)
    text = (
        "Mean departure delay of each airline; the names come from a left join of the stream with the table of "
        f"airlines. The join kept {joined:,} of {contents.flights:,} flights, {unnamed:,} of them without a name. A "
        "cancelled flight has no delay."
    )
    return _delay_section("Delay by carrier", text, [("", delays)], "Airline")


def weather(contents: Contents) -> str:
    """Delay by class of visibility, rain and wind."""
    groups = [
        (name.capitalize(), findings.delays_by(contents.delays, name, order))
        for name, order in contents.classes.items()
    ]
    left_out = ", ".join(f"{findings.without(contents.delays, name):,} of {name}" for name in contents.classes)
    text = (
        "Mean departure delay by the weather at the airport in the scheduled hour, from a left join of the stream of "
        "flights with the weather table on airport and hour. Flights whose hour has no weather record, or none of the "
        f"measurement, are left out of these bars: {left_out}."
    )
    return _delay_section("Delay against weather", text, groups, "Weather")


def _delay_section(title: str, text: str, groups: Sequence[tuple[str, Sequence[Delay]]], first: str) -> str:
    body, rows = "", []
    for colour, (name, delays) in zip(charts.COLOURS, groups, strict=False):
        drawn = [Bar(d.name, d.mean_minutes, f"{d.mean_minutes:.1f} min") for d in delays]
        chart = charts.bars(f"{title} {name}".strip(), _said(drawn), drawn, colour)
        body += (parts.heading(name) if name else "") + chart
        prefix = f"{name}: " if name else ""
        rows += [
            [prefix + d.name, f"{d.flights:,}", f"{d.departed:,}", f"{d.mean_minutes:.1f}", f"{d.delayed_share:.1%}"]
            for d in delays
        ]
    heads = [first, "Flights", "Departed", "Mean delay, min", "15 min late or more"]
    return parts.section(title, text, body + parts.folded(NUMBERS, parts.table(title, heads, rows)))


def destinations(contents: Contents) -> str:
    """The destinations with the most flights."""
    rows = [
        [
            f"{row['airport'] or row['dest']} ({row['dest']})",
            f"{row['flights']:,}",
            "" if row["arrival_delay_minutes"] is None else f"{row['arrival_delay_minutes']:.1f}",
        ]
        for row in contents.destinations
    ]
    drawn = [Bar(row["airport"] or row["dest"], row["flights"], f"{row['flights']:,}") for row in contents.destinations]
    table = parts.table("Top destinations", ["Destination", "Flights", "Mean arrival delay, min"], rows)
    flights, codes = contents.unnamed
    text = (
        f"The {len(rows)} destinations with the most flights, kept as a top-k over the stream. The left join with the "
        "table of airports drops no flight"
    )
    if codes:
        named = ", ".join([*codes[:CODES_SHOWN], *(["..."] if len(codes) > CODES_SHOWN else [])])
        text += f"; {flights:,} went to {counted(len(codes), 'airport')} that it does not name ({named})"
    text += "."
    chart = charts.bars("Top destinations", _said(drawn), drawn, charts.COLOURS[2])
    return parts.section("Top destinations", text, chart + parts.folded(NUMBERS, table))


def _said(drawn: Sequence[Bar]) -> str:
    return "; ".join(f"{bar.name}: {bar.note}" for bar in drawn)
