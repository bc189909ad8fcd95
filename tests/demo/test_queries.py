"""The queries of the report: DuckDB, Polars and Spark answer them as they are shown, from small tables."""

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from moldau.demo import queries
from moldau.demo.flights import TOPICS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime.datetime(2013, 1, 1, 12, tzinfo=datetime.UTC)
FLIGHTS = [
    {"month": 1, "dep_time": 517, "dep_delay": 2, "carrier": "UA", "origin": "EWR", "_offset": 0},
    {"month": 1, "dep_time": None, "dep_delay": None, "carrier": "UA", "origin": "JFK", "_offset": 1},
    {"month": 2, "dep_time": 900, "dep_delay": 30, "carrier": "B6", "origin": "EWR", "_offset": 2},
]
ROWS: dict[str, list[dict[str, Any]]] = {
    "flights": [{**row, "time_hour": AT, "_partition": 0, "_key": b"UA-1"} for row in FLIGHTS],
    "weather": [{"origin": "EWR", "time_hour": AT, "visib": 1.5}],
    "airlines": [{"carrier": "UA", "name": "United"}, {"carrier": "B6", "name": "JetBlue"}],
    "planes": [{"tailnum": "N1"}],
    "airports": [{"faa": "EWR"}],
}


def tables_in(folder: Path) -> Path:
    """Tables, in one of which a compaction has replaced the files."""
    for topic, rows in ROWS.items():
        for row in rows:
            write_deltalake(folder / topic, pyarrow.Table.from_pylist([row], schema=schema_of(rows)), mode="append")
    DeltaTable(folder / "flights").optimize.compact()
    return folder


def schema_of(rows: list[dict[str, Any]]) -> pyarrow.Schema:
    return pyarrow.Table.from_pylist(rows).schema


def test_duckdb_answers_every_query_as_it_is_shown(tmp_path: Path) -> None:
    tables = tables_in(tmp_path / "it's here")
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        answers = [connection.execute(text).fetchall() for _, text in queries.duckdb(tables, TOPICS)]
    _, cancelled, airlines, fog, places = answers
    assert cancelled == [(1, 2, 1, 2.0), (2, 1, 0, 30.0)]
    assert airlines == [("JetBlue", 1, 30.0), ("United", 2, 2.0)]
    assert fog == [(True, 2, 16.0), (None, 1, None)]
    assert [row[:3] for row in places] == [(0, 0, "UA-1"), (0, 1, "UA-1"), (0, 2, "UA-1")]


def test_polars_runs_the_program_as_it_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = tables_in(tmp_path / "tables")  # Polars 2.1 does not find files below a folder with a blank in its name
    exec(queries.polars(tables), {})
    assert "2.0" in capsys.readouterr().out


@pytest.mark.check  # `make test` has a tenth of the demo in Spark, and the same question in Polars and DuckDB
def test_spark_runs_the_program_as_it_is_shown(
    tmp_path: Path, spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tables_in(tmp_path / "tables")
    exec(queries.spark(tables), {})
    assert [line.split() for line in capsys.readouterr().out.splitlines() if "|" in line][1:] == [
        ["|", "1|", "2|"],
        ["|", "2|", "1|"],
    ]
