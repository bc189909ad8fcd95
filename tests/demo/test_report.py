"""The report: right numbers, escaped text, a chart's numbers in a table, a verdict that says what differs."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from moldau.demo import findings, streams
from moldau.demo.audit import Book, Count
from moldau.demo.inventory import Preview, StageBytes, places
from moldau.demo.report.contents import Contents, Stage
from moldau.demo.report.page import render
from moldau.demo.timeline import Span, Timeline, VisibleOffsets
from moldau.names import TopicPartition
from moldau.pipeline.pages import charts

HOURS = [
    {"start": "2013-01-01T10:00:00Z", "day": "2013-01-01", "hour": 5, "origin": "EWR", "departures": 6, "cancelled": 1},
    {"start": "2013-01-02T10:00:00Z", "day": "2013-01-02", "hour": 5, "origin": "EWR", "departures": 2, "cancelled": 0},
    {"start": "2013-01-02T10:00:00Z", "day": "2013-01-02", "hour": 5, "origin": "JFK", "departures": 3, "cancelled": 3},
]


def delays(
    airline: str, visibility: str | None, flights: int, departed: int, minutes: float | None, delayed: int
) -> dict[str, Any]:
    rest = dict.fromkeys(("rain", "wind")) if visibility is None else {"rain": "dry", "wind": "below 10 mph"}
    return {
        "carrier": "XX", "airline": airline, "visibility": visibility, **rest,
        "flights": flights, "departed": departed, "delay_minutes": minutes, "delayed": delayed,
    }  # fmt: skip


DELAYS = [
    delays("A & <B>", "10 miles", 10, 8, 80.0, 2),
    delays("C", "below 2 miles", 2, 0, None, 0),
    delays("C", None, 3, 2, -4.0, 0),
]
DESTINATIONS = [{"dest": "ORD", "airport": None, "flights": 7, "arrival_delay_minutes": None}]


TIMELINE = Timeline(
    0.0,
    [Span(TopicPartition("flights", 2), 0, 15, 1.0, 2.0)],
    [VisibleOffsets(4.5, {TopicPartition("flights", 2): 15})],
)
PREVIEW = Preview("flights", 15, 1, [("carrier", "string"), ("_offset", "int64")], [["<B6>", "0"], ["UA", "1"]])


class Reader(HTMLParser):
    """Fails on unbalanced tags; keeps text, places, and what would be fetched from elsewhere."""

    VOID = ("meta", "rect", "line", "polyline", "polygon", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.fetched: list[str] = []
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        self.places += [f"#{value}" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def contents(decoded: int = 15) -> Contents:
    whole = Count(15, {1: 6, 2: 9})
    book = Book("flights", whole, whole, whole, whole, Count(decoded, {1: 6, 2: decoded - 6}))
    return Contents(
        books=[book], differences=book.differences(), stages=[Stage("Load", 15, 2.0), Stage("Start Spark", 0, 7.0)],
        seconds=9.0, hours=HOURS, delays=DELAYS, destinations=DESTINATIONS, unnamed=(7, ["ORD"]),
        classes=streams.CLASSES, timeline=TIMELINE,
        stored=[StageBytes("Produced", 3000), StageBytes("Decoded", 1000, 2)],
        previews=[PREVIEW], places=places(Path("/tmp/a folder")), versions="Moldau 1.",
    )  # fmt: skip


def text_of(page: str) -> str:
    reader = Reader()
    reader.feed(page)
    return " ".join(reader.text)


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere() -> None:
    page = render(contents())
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert "url(" not in page and "<script" not in page and "@import" not in page
    assert sorted({*reader.fetched} - {*reader.places}) == ["audit.html"], "links stay on the page, or lead beside it"
    assert "A & <B>" in reader.text and "<B6>" in reader.text, "text from data is escaped, once"
    assert reader.places and page.count("<h1>") == 1 and "<main>" in page and '<html lang="en">' in page


def test_every_chart_says_what_it_shows_and_comes_for_both_widths() -> None:
    page = render(contents())
    labels = re.findall(r'<svg class="(wide|narrow)"[^>]* role="img" aria-label="([^"]{20,})"', page)
    assert len(labels) == page.count("<svg") and page.count('class="wide"') == page.count('class="narrow"') >= 8


def test_balanced_books_are_called_balanced_and_others_are_not() -> None:
    assert "The books balance" in render(contents())
    page = render(contents(decoded=14))
    assert "The books do not balance" in page and "flights, month 2: 9 in the source, 8 decoded." in page
    assert '<td class="off">14 ≠</td>' in page


def test_findings_are_sums_and_means_over_what_departed() -> None:
    assert findings.departures_by_hour(HOURS)["EWR"][5] == 4 and findings.departures_by_hour(HOURS)["JFK"][5] == 1.5
    assert findings.departures_by_day(HOURS) == [("2013-01-01", 6, 1), ("2013-01-02", 5, 3)]
    by_airline = findings.delays_by(DELAYS, "airline")
    assert [(d.name, d.flights, d.departed, d.mean_minutes, d.delayed_share) for d in by_airline] == [
        ("A & <B>", 10, 8, 10.0, 0.25),
        ("C", 5, 2, -2.0, 0.0),
    ]
    order = streams.CLASSES["visibility"]
    assert [d.name for d in findings.delays_by(DELAYS, "visibility", order)] == ["below 2 miles", "10 miles"]
    assert findings.without(DELAYS, "visibility") == 3


def test_what_joins_and_windows_left_out_is_said() -> None:
    text = text_of(render(contents()))
    assert "4 flights came later than that and were left out" in text, "11 of 15 are in a window"
    assert "left out of these bars: 3 of visibility, 3 of rain, 3 of wind." in text
    assert "7 went to 1 airport that it does not name (ORD)" in text


def test_cancellations_are_drawn_where_the_text_speaks_of_them() -> None:
    page = render(contents())
    year = page[page.index("Through the year") : page.index("Delay by carrier")]
    assert "4 flights were cancelled in the year; most on one day: 3 of 5 on 2013-01-02." in year
    assert year.count('class="line thin"') == 4, "departures and cancellations, wide and narrow"
    assert "</span>cancelled</li>" in year


def test_delay_lag_bytes_partitions_and_columns_are_there() -> None:
    text = text_of(render(contents()))
    assert "beside the replay, in 1 load." in text and "delay, at most 3.5 s 3.5 s 3.5 s 3.5 s" in text
    assert "The lag was 15 records at most" in text
    assert "flights-2 15 100%" in text and "Decoded 1,000 2 66.7" in text
    assert "_offset int64" in text and "rows/s" not in text


def test_commands_quote_their_paths() -> None:
    text = text_of(render(contents()))
    assert "server start --data-dir '/tmp/a folder/mirror' --registry-port 8081" in text
    assert "--decode avro --schema-registry http://localhost:8081 --event-time time_hour" in text
    assert "pipeline history '/tmp/a folder/decoded/flights'" in text


def test_axes_end_at_a_round_number_above_the_data() -> None:
    for value, ceiling in ((0, 1), (0.7, 0.8), (1, 1), (75, 80), (1006, 1200), (17283, 20000)):
        assert charts.nice_ceiling(value) == ceiling


def test_a_page_without_answers_still_renders() -> None:
    empty = Contents(
        [], [], [], 1.0, [], [], [], (0, []), streams.CLASSES, Timeline(), [], [], places(Path("/tmp/x")), "Moldau."
    )
    assert "</html>" in render(empty)
