"""What the demo leaves: the tables with their schemas, queries to copy, and where everything is."""

from moldau.demo import queries as texts
from moldau.demo.inventory import Preview, commands
from moldau.demo.report.contents import Contents
from moldau.names import counted
from moldau.pipeline.pages import parts


def schemas(contents: Contents) -> str:
    """The columns and first rows of each table of decoded columns."""
    text = (
        "Delta tables of decoded columns: the fields of the Avro values, and behind them what the log knows of each "
        "record. The columns are those of the schemas in the registry."
    )
    return parts.section("Tables", text, "".join(_table(one) for one in contents.previews), "tables")


def _table(one: Preview) -> str:
    heads = [name for name, _ in one.columns]
    types = parts.table(f"Columns of {one.topic}", ["Column", "Type"], one.columns, of_text=True)
    rows = parts.table(f"{counted(len(one.first), 'row')} of {one.topic}", heads, one.first, of_text=True)
    return parts.folded(
        f"{one.topic}: {counted(one.rows, 'row')}, {counted(len(heads), 'column')}, {counted(one.files, 'file')}",
        rows + types,
    )


def queries(contents: Contents) -> str:
    """Queries over the decoded tables."""
    decoded = contents.places.decoded
    body = parts.heading("DuckDB")
    for title, statements in texts.duckdb(decoded, [one.topic for one in contents.previews]):
        body += parts.paragraph(f"{title}:") + parts.code(statements)
    body += parts.heading("Polars") + parts.code(texts.polars(decoded))
    body += parts.heading("Spark") + parts.code(texts.spark(decoded))
    text = "A click selects a whole query. The paths are those of this machine; nothing needs a network."
    return parts.section("Queries to copy", text, body, "queries")


def places(contents: Contents) -> str:
    """Where everything is, and how to start it again."""
    of = contents.places
    rows = [
        ["The broker's log", of.data],
        ["Its mirror, from which all tables were loaded", of.mirror],
        ["Tables of values as produced", of.warehouse],
        ["Tables of decoded columns", of.decoded],
        ["The audit", of.folder / "audit.html"],
        ["The numbers of this page, for programs", of.folder / "summary.json"],
        ["What the broker said", of.folder / "broker.log"],
    ]
    body = parts.table("What is where", ["What", "Where"], rows, of_text=True)
    for title, command in commands(of, [book.topic for book in contents.books]):
        body += parts.paragraph(f"{title}:") + parts.code(command)
    text = (
        "Both brokers were stopped at the end; their logs and all tables remain until the demo runs again. The first "
        "command starts the mirror on localhost:9092, with a registry that reads the mirrored schemas, and the others "
        "call them there."
    )
    return parts.section("What is where, and how to start it again", text, body, "places")
