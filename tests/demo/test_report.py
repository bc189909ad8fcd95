"""The report: right numbers, escaped text, a chart's numbers in a table, a verdict that says what differs."""

import re
from html.parser import HTMLParser
from typing import Any

from moldau.demo import findings, streams
from moldau.demo.audit import Book, Count
from moldau.demo.report import Contents, Stage, render
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


class Reader(HTMLParser):
    """Fails on unbalanced tags; keeps text and what would be fetched from elsewhere."""

    VOID = ("meta", "rect", "line", "polyline", "polygon", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def contents(loaded: int = 5) -> Contents:
    whole = Count(5, {1: 2, 2: 3})
    book = Book("flights", whole, whole, whole, Count(loaded, {1: 2, 2: loaded - 2}))
    return Contents(
        books=[book], differences=book.differences(), stages=[Stage("Load", 5, 2.0), Stage("Start Spark", 0, 7.0)],
        seconds=9.0, hours=HOURS, delays=DELAYS, destinations=DESTINATIONS, classes=streams.CLASSES,
        versions="Moldau 1.", warehouse_files=4, warehouse_bytes=1_000_000,
    )  # fmt: skip


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere() -> None:
    page = render(contents())
    reader = Reader()
    reader.feed(page)
    assert reader.open == [] and reader.fetched == []
    assert "url(" not in page and "<script" not in page and "@import" not in page
    assert "A & <B>" in reader.text, "text from data is escaped, once"


def test_every_chart_says_what_it_shows_and_comes_for_both_widths() -> None:
    page = render(contents())
    labels = re.findall(r'<svg class="(wide|narrow)"[^>]* role="img" aria-label="([^"]{20,})"', page)
    assert len(labels) == page.count("<svg") and page.count('class="wide"') == page.count('class="narrow"') >= 8


def test_balanced_books_are_called_balanced_and_others_are_not() -> None:
    assert "The books balance" in render(contents())
    page = render(contents(loaded=4))
    assert "The books do not balance" in page and "flights, month 2: 3 in the source, 2 loaded." in page
    assert '<td class="off">4 ≠</td>' in page


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
    assert findings.without_weather(DELAYS) == 3


def test_axes_end_at_a_round_number_above_the_data() -> None:
    for value, ceiling in ((0, 1), (0.7, 0.8), (1, 1), (75, 80), (1006, 1200), (17283, 20000)):
        assert charts.nice_ceiling(value) == ceiling


def test_a_page_without_answers_still_renders() -> None:
    empty = Contents([], [], [], 1.0, [], [], [], streams.CLASSES, "Moldau.", 0, 0)
    assert "</html>" in render(empty)
