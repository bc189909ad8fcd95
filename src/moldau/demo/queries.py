"""Queries over the decoded tables, to copy into DuckDB, Polars and Spark. Pure: paths in, text out.

DuckDB alone has no reader of Delta tables unless it may fetch an extension, so the first statements take the list of a
table's files from its log, as every reader of Delta does.
"""

from collections.abc import Sequence
from pathlib import Path

FILES = """CREATE OR REPLACE MACRO delta_files(folder) AS (
  SELECT list(folder || '/' || path) FROM (
    SELECT add.path FROM read_json(folder || '/_delta_log/*.json', columns = {add: 'STRUCT(path VARCHAR)'})
    WHERE add IS NOT NULL
    EXCEPT
    SELECT remove.path FROM read_json(folder || '/_delta_log/*.json', columns = {remove: 'STRUCT(path VARCHAR)'})
    WHERE remove IS NOT NULL));
"""

CANCELLED = """SELECT month, count(*) AS flights, count(*) FILTER (dep_time IS NULL) AS cancelled,
       round(avg(dep_delay), 1) AS mean_delay
FROM flights GROUP BY month ORDER BY month;"""

AIRLINES = """SELECT name AS airline, count(*) AS flights, round(avg(dep_delay), 1) AS mean_delay
FROM flights JOIN airlines USING (carrier) GROUP BY ALL ORDER BY mean_delay DESC LIMIT 5;"""

FOG = """SELECT visib < 2 AS fog, count(*) AS flights, round(avg(dep_delay), 1) AS mean_delay
FROM flights LEFT JOIN weather USING (origin, time_hour) GROUP BY ALL ORDER BY ALL;"""

PLACE = """SELECT _partition, _offset, _key::VARCHAR AS key, origin, carrier, dep_delay
FROM flights WHERE _partition = 0 AND _offset < 5 ORDER BY _offset;"""


def duckdb(tables: Path, topics: Sequence[str]) -> list[tuple[str, str]]:
    """Statements in the order in which they are to be run, each with what it does."""
    views = [
        f"SET VARIABLE {topic} = delta_files({_literal(str(tables / topic))});\n"
        f"CREATE OR REPLACE VIEW {topic} AS FROM read_parquet(getvariable('{topic}'), union_by_name = true);\n"
        for topic in topics
    ]
    return [
        ("First, name the tables", FILES + "".join(views)),
        ("Cancellations and delays by month", CANCELLED),
        ("The airlines with the longest delays", AIRLINES),
        ("Delays in fog, from a join of flights with the weather of their hour", FOG),
        ("Records by partition and offset", PLACE),
    ]


def polars(tables: Path) -> str:
    """A program that reads a table with Polars."""
    return _lines(
        "import polars",
        "",
        f"flights = polars.scan_delta({str(tables / 'flights')!r})",
        "by_month = flights.group_by('month').agg(polars.len(), polars.col('dep_delay').mean())",
        "print(by_month.sort('month').collect())",
    )


def spark(tables: Path) -> str:
    """A program that reads a table with Spark, without a jar for Delta."""
    return _lines(
        "from deltalake import DeltaTable",
        "from pyspark.sql import SparkSession",
        "",
        "spark = SparkSession.builder.getOrCreate()",
        f"flights = spark.read.parquet(*DeltaTable({str(tables / 'flights')!r}).file_uris())",
        "flights.groupBy('month').count().orderBy('month').show()",
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _lines(*lines: str) -> str:
    return "\n".join(lines)
