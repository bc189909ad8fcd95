"""The measures of the run: delay from end to end, lag, bytes, records of each partition, stages, books."""

from collections.abc import Sequence

from moldau.demo.audit import COLUMNS
from moldau.demo.report.answers import MONTHS, NUMBERS
from moldau.demo.report.contents import Contents
from moldau.names import counted
from moldau.pipeline.pages import charts, parts
from moldau.pipeline.pages.charts import Bar

SHARES = {"half": 0.5, "95%": 0.95, "99%": 0.99, "all": 1.0}


def delay(contents: Contents) -> str:
    """The time from produced to visible, and the lag of the tables over the run."""
    timeline = contents.timeline
    measured = [timeline.delay(share) for share in SHARES.values()]
    row = ["delay, at most", *("" if seconds is None else f"{seconds:.1f} s" for seconds in measured)]
    lags = timeline.lags()
    most = max((lag.records for lag in lags), default=0)
    text = (
        f"The tables were loaded beside the replay, in {counted(len(timeline.commits), 'load')}. A record is "
        "visible when the load that committed it has returned; its delay counts from the moment at which its group of "
        f"at most 4,096 records began to be sent. The lag was {counted(most, 'record')} at most, and 0 at the end."
    )
    series = {
        "acknowledged by the broker": [lag.acknowledged for lag in lags],
        "visible in the tables": [lag.visible for lag in lags],
        "lag": [lag.records for lag in lags],
    }
    labels = [f"{lag.seconds:.0f} s" for lag in lags]
    chart = charts.lines("Records over the run", text, series, labels, "records") if lags else ""
    heads = ["Seconds", "Acknowledged", "Visible", "Lag"]
    numbers = parts.table(
        "Records over the run", heads,
        [[f"{lag.seconds:.1f}", f"{lag.acknowledged:,}", f"{lag.visible:,}", f"{lag.records:,}"] for lag in lags],
    )  # fmt: skip
    delays = parts.table("From produced to visible in the table", ["Of the records", *SHARES], [row])
    body = parts.heading("Delay from end to end") + delays + parts.heading("Lag over the run") + chart
    return parts.section("Delay and lag", text, body + parts.folded(NUMBERS, numbers), "delay")


def stored(contents: Contents) -> str:
    """The bytes of each stage, and the records of each partition."""
    drawn = [Bar(one.name, one.bytes, f"{one.bytes / 1e6:,.1f} MB") for one in contents.stored]
    said = "; ".join(f"{bar.name}: {bar.note}" for bar in drawn)
    text = (
        "The same records at each stage. The producer compresses batches with LZ4, and the broker stores them as they "
        "came. A table of decoded columns holds each field once as a column, beside key, partition, offset and time."
    )
    each = max(1, contents.records)
    heads = ["Stage", "Bytes", "Files", "Bytes a record"]
    rows = [
        [one.name, f"{one.bytes:,}", f"{one.files:,}" if one.files else "", f"{one.bytes / each:.1f}"]
        for one in contents.stored
    ]
    shares = [
        [f"{tp.topic}-{tp.partition}", f"{records:,}", _share(contents, tp.topic, records)]
        for tp, records in sorted(contents.timeline.records_in().items())
    ]
    table = parts.table("Records of each partition", ["Partition", "Records", "Share of the topic"], shares)
    body = charts.bars("Bytes of each stage", said, drawn, charts.COLOURS[3]) if drawn else ""
    body += parts.folded(NUMBERS, parts.table("Bytes of each stage", heads, rows))
    note = "The key decides: equal keys meet in one partition, in the order in which they were sent."
    body += parts.heading("Records of each partition") + parts.paragraph(note) + table
    return parts.section("Bytes and partitions", text, body, "bytes")


def _share(contents: Contents, topic: str, records: int) -> str:
    total = sum(book.produced.records for book in contents.books if book.topic == topic)
    return f"{records / max(1, total):.0%}"


def stages(contents: Contents) -> str:
    """The seconds of each stage."""
    drawn = [Bar(stage.name, stage.seconds, f"{stage.seconds:.1f} s") for stage in contents.stages]
    said = "; ".join(f"{bar.name}: {bar.note}" for bar in drawn)
    rows = [
        [
            stage.name,
            f"{stage.seconds:.1f}",
            f"{stage.records:,}" if stage.records else "",
            f"{stage.records_per_second:,.0f}" if stage.records else "",
        ]
        for stage in contents.stages
    ]
    table = parts.table("Stages", ["Stage", "Seconds", "Records", "Records per second"], rows)
    text = (
        "Seconds of each stage on this machine. A Spark job includes its start and, when it is the first of its kind, "
        "the compilation of its code; on so few records both count for more than the records."
    )
    chart = charts.bars("Seconds of each stage", said, drawn, charts.COLOURS[0]) if drawn else ""
    return parts.section("Where the time went", text, chart + parts.folded(NUMBERS, table), "time")


def books(contents: Contents) -> str:
    """The records of each topic and month in every place."""
    heads = ["Topic", *(column.capitalize() for column in COLUMNS)]
    totals = [[book.topic, *_counts([getattr(book, column).records for column in COLUMNS])] for book in contents.books]
    body = parts.table("Records by topic", heads, totals)
    for book in contents.books:
        if not book.source.months:
            continue
        rows = [
            [MONTHS[month - 1], *_counts([getattr(book, column).months.get(month, 0) for column in COLUMNS])]
            for month in sorted(book.source.months)
        ]
        table = parts.table(f"{book.topic} by month of the source", ["Month", *heads[1:]], rows)
        body += parts.folded(f"{book.topic.capitalize()} by month", table)
    text = (
        "Source: rows of the data files. Produced: acknowledged by the broker. Stored: read back from the broker's "
        "log. Loaded: read from the tables of values as produced, by pyarrow alone. Decoded: read from the tables of "
        "decoded columns, each partition and offset once. Except for decoded columns, which no longer have the values, "
        "a sum of 64-bit hashes of key and value is compared with each total, so that one lost and one doubled record "
        "do not balance."
    )
    audited = (
        '<p>The <a href="audit.html">audit</a> compares broker and warehouse, day by day of event time, with what the '
        "producer reported. All records count as replayed there, since the flights of 2013 are older than the "
        "producer, and their delays are left out.</p>"
    )
    return parts.section("The books", text, audited + body, "books")


def _counts(counts: Sequence[int]) -> list[str]:
    return [f"{count:,}" if count == counts[0] else f"{count:,} {parts.DIFFERENT}" for count in counts]
