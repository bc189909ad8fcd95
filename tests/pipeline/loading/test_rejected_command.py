"""`moldau pipeline rejected` counts and prints the records that loads could not decode."""

import json
from pathlib import Path

import pytest

from moldau.cli.main import run
from moldau.pipeline.audit.warehouse_tier import WarehouseTier
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.tables.columns import TableError
from tests.pipeline.loading.tables_by_hand import TOPIC, ByHand

DECODING = Decoding("json", "id INT, at TIMESTAMP")


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.check)])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The command on a warehouse with rejected records of two loads."""
    lake = ByHand(tmp_path, request.param)
    lake.produce(0, b'{"id": 1}', b"{", b'{"id": "x"}')
    lake.produce(1, b'{"id": 2}', b"\xff\xfe")
    lake.load(DECODING)
    lake.produce(0, b'{"id": "y"}')
    lake.load(DECODING)
    given = ["pipeline", "rejected", "--topics", TOPIC, "--warehouse", str(tmp_path)]
    if request.param == "iceberg":
        given[-1] = f"file://{tmp_path}/w"
        given += ["--format", "iceberg", "--catalog", "test", "--namespace", "lake"]
        given += ["--catalog-property", f"uri=sqlite:///{tmp_path}/catalog.db"]
    return given


def test_rejected_records_are_counted_by_rule_and_field(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command) == 0
    said = capsys.readouterr()
    assert said.err == ""
    first, *rows = said.out.splitlines()
    assert first.split() == ["TOPIC", "RULE", "FIELD", "RECORDS", "FIRST", "LAST", "REASON"]
    assert [row.split()[:4] for row in rows] == [
        ["t", "wrong_type", "id", "2"],
        ["t", "not_json", "-", "1"],
        ["t", "not_utf8", "-", "1"],
    ]
    assert run([*command, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts[0] == {
        "topic": TOPIC,
        "rule": "wrong_type",
        "field": "id",
        "records": 2,
        "first": "1970-01-03T00:00:00.000Z",
        "last": "1970-01-04T00:00:00.000Z",
        "reason": 'field id is the text "x", not a whole number of 32 bits',
    }
    assert [one["field"] for one in counts] == ["id", None, None]


def test_rejected_records_are_printed_as_lines_of_json(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--records"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {(one["partition"], one["offset"]): one for one in lines}
    assert set(found) == {(0, 1), (0, 2), (0, 3), (1, 1)}
    one = found[0, 2]
    assert (one["topic"], one["rule"], one["field"], one["key"], one["value"]) == (
        TOPIC,
        "wrong_type",
        "id",
        "k2",
        '{"id": "x"}',
    )
    assert one["timestamp"] == "1970-01-03T00:00:00.000Z" and one["reason"].startswith("field id is ")
    assert found[1, 1]["value_base64"] == "//4=", "bytes that are no text"
    assert run([*command, "--records", "-n", "1"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_a_topic_without_rejected_records_is_a_note(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    other = ["other" if word == TOPIC else word for word in command]
    assert run([*other, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == [] and said.err == "no record of topic other was ever rejected\n"


def test_no_topic_and_no_warehouse_are_refused_in_a_sentence(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command[:3], ",", *command[4:]]) != 0
    assert "--topics names no topic" in capsys.readouterr().err


def test_a_table_of_decoded_columns_is_not_audited(tmp_path: Path) -> None:
    lake = ByHand(tmp_path, "delta")
    lake.produce(0, b'{"id": 1}')
    lake.load(DECODING)
    with pytest.raises(TableError, match=r"decoded columns and no value, .*: load its topic into another warehouse"):
        WarehouseTier(str(tmp_path)).digests(TOPIC, 60_000)
