"""`pipeline load --upsert` from a real broker through Spark: the command, its refusals, and what other tools read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars
import pytest
from deltalake import DeltaTable

from moldau.cli import pipeline_load
from moldau.cli.main import run
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., tuple[int, str, str]]
Produce = Callable[..., None]


@pytest.fixture
def pipeline(
    spark: "SparkSession", bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:  # fmt: skip
    """Runs `moldau pipeline COMMAND` with the warehouse in `tmp_path`: exit code, standard output, standard error."""
    monkeypatch.setattr(pipeline_load, "_session", lambda stack, master: lambda: spark)

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["pipeline", *words, "--warehouse", str(tmp_path), "-b", bootstrap])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def row(key: int, **fields: object) -> tuple[bytes, bytes, int]:
    return b'{"id": %d}' % key, json.dumps(fields).encode(), 1_000


def test_a_table_has_the_newest_row_of_each_decoded_key_and_every_tool_reads_it(
    pipeline: Run, new_topic: Callable[..., str], produce: Produce, spark: "SparkSession", tmp_path: Path
) -> None:
    topic = new_topic(2)
    options = ("load", "--topics", topic, "--upsert", "--decode", "json", "--decode-key", "json")
    produce(topic, [row(1, name="a"), row(2, name="b"), row(1, name="c"), (None, b"{}", 1), (b"{", b"{}", 1)])
    produce(topic, [row(3, name="x")], 1)
    code, out, err = pipeline(*options, "--json")
    done = json.loads(out)
    assert (code, done["records"], done["rejected"], done["deleted"]) == (0, 3, 2, 0), err
    produce(topic, [row(2, name="d", seen=5), (b'{"id": 1}', None, 1), row(4, name="e")])
    code, out, err = pipeline(*options, "--max-records", "2")
    assert code == 0 and f"{topic} version 3, {topic} version 4; 1 row deleted" in out, (out, err)
    assert pipeline(*options) == (0, "nothing new to load\n", "")
    expected = [(2, "d", 5), (3, "x", None), (4, "e", None)]
    columns = ["_key_id", "name", "seen"]
    folder = str(tmp_path / topic)
    assert sorted(polars.scan_delta(folder).select(columns).collect().rows()) == expected
    customers = DeltaTable(folder).to_pyarrow_dataset()
    assert customers is not None
    assert duckdb.sql(f"SELECT {', '.join(columns)} FROM customers ORDER BY ALL").fetchall() == expected
    found = spark.read.format("moldau").option("table", folder).load().select(columns).toArrow().to_pylist()
    assert sorted(tuple(one.values()) for one in found) == expected
    rejected = Table.open(Warehouse(tmp_path).place_of_rejected(topic))
    assert rejected is not None
    reasons = sorted(rejected.dataset().to_table()["reason"].to_pylist())
    assert "the key is not JSON" in reasons[0] and reasons[1] == "the record has no key, which --upsert needs"


def test_tables_of_another_kind_or_with_another_key_are_refused_in_a_sentence(
    pipeline: Run, new_topic: Callable[..., str], produce: Produce
) -> None:
    latest, all_records = new_topic(), new_topic()
    for topic, option in ((latest, ["--upsert"]), (all_records, [])):
        produce(topic, [row(1, name="a")])
        assert pipeline("load", "--topics", topic, *option)[0] == 0
        produce(topic, [row(2, name="a")])
    for words, sentence in (
        (["load", "--topics", latest], "has one row per key, because it was begun with --upsert"),
        (["load", "--topics", latest, "--dry-run"], "has one row per key, because it was begun with --upsert"),
        (["load", "--topics", all_records, "--upsert"], "has every record, because it was begun without --upsert"),
        (
            ["load", "--topics", latest, "--upsert", "--decode-key", "json"],
            "is _key and would now be _key_id, _key__more: decode keys as before",
        ),
        (["audit", "--topics", latest], "has only the newest record of each key (--upsert), so it cannot be audited"),
        (["load", "--topics", latest, "--max-records", "5"], "--max-records needs --every or --upsert"),
    ):
        code, out, err = pipeline(*words)
        assert code != 0 and out == "" and sentence in err and err.count("\n") == 1, (words, out, err)
