"""The contents of the demo's report, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.demo.audit import Book
from moldau.demo.findings import FindingRow
from moldau.demo.inventory import DemoFolders, Preview, StageBytes
from moldau.demo.timeline import Timeline


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
    """The contents of the report. `classes` are the weather classes of each column, in order; `unnamed` are the flights
    to airports that the table of airports does not name, and the codes of these airports."""

    books: Sequence[Book]
    differences: Sequence[str]
    stages: Sequence[Stage]
    seconds: float
    hours: Sequence[FindingRow]
    delays: Sequence[FindingRow]
    destinations: Sequence[FindingRow]
    unnamed: tuple[int, Sequence[str]]
    classes: Mapping[str, Sequence[str]]
    timeline: Timeline
    stored: Sequence[StageBytes]
    previews: Sequence[Preview]
    places: DemoFolders
    versions: str

    @property
    def records(self) -> int:
        """The number of records in the source."""
        return sum(book.source.records for book in self.books)

    @property
    def flights(self) -> int:
        return sum(book.source.records for book in self.books if book.topic == "flights")
