"""Rejected records are decoded again and moved: each is in one of the tables, wherever a requeue dies or meets
others."""

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from deltalake import DeltaTable

from moldau.cli.main import run
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading import requeueing, topic_tables
from moldau.pipeline.tables import committing, requeued
from moldau.pipeline.tables.columns import TableError, in_files, of_table
from moldau.pipeline.tables.committing import Conflict
from moldau.pipeline.tables.iceberg_table import IcebergTable
from moldau.pipeline.tables.removals import RowsRemoved
from moldau.pipeline.tables.table import Table
from tests.pipeline.loading.tables_by_hand import TOPIC, ByHand, Died

DATED, UNDATED = Decoding("json", "id INT, at STRING", event_time="at"), Decoding("json", "id INT, at TIMESTAMP")
MOVED, LEFT = {(0, 1), (1, 0)}, {(0, 2), (1, 2)}
"""The rejected records that pass without the event time, and those that do not."""


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.check)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> ByHand:
    return ByHand(tmp_path, request.param)


def loaded(lake: ByHand) -> ByHand:
    """Good and bad records of two partitions, in three loads. What has `at` passes only without the event time."""
    at = b', "at": "2024-02-29T12:00:00Z"}'
    lake.produce(0, b'{"id": 1' + at, b'{"id": 2}', b"{", None)
    lake.produce(1, b'{"id": 3}')
    lake.load(DATED)
    lake.produce(1, b'{"id": 4' + at, b'{"id": 5, "at": "soon"}')
    lake.load(DATED)
    lake.produce(0, b'{"id": 6' + at)
    lake.load(DATED)
    assert lake.check_each_record_once()[1] == {(0, 1), (0, 2), (1, 0), (1, 2)}
    return lake


def test_what_passes_moves_with_its_place_time_key_and_headers_and_the_rest_stays(lake: ByHand) -> None:
    loaded(lake)
    counted = lake.requeue(UNDATED, dry_run=True)
    assert (counted.moved, counted.rejected.records, counted.version) == (2, 2, None)
    assert len(lake.check_each_record_once()[1]) == 4, "a dry run changes nothing"
    done = lake.requeue(UNDATED)
    assert (done.moved, done.rejected.records, done.waiting, done.already) == (2, 2, 0, 0) and done.version is not None
    assert lake.check_each_record_once()[1] == LEFT
    [row] = [row for row in lake.loaded_rows() if (row["_partition"], row["_offset"]) == (0, 1)]
    assert (row["id"], row["at"], row["_key"], row["_timestamp"].day) == (2, None, b"k1", 2)
    assert row["_headers"] == [{"key": "h", "value": b"1"}] and str(row["_date"]) == "1970-01-02"
    if lake.of == "delta":  # pyiceberg reads null lists as empty ones
        assert next(row["_headers"] for row in lake.loaded_rows() if row["id"] == 3) is None
    assert lake.rejected_rows("rule", "field") == [(0, 2, "not_json", None), (1, 2, "wrong_text", "at")]
    again = lake.requeue(UNDATED)
    assert (again.moved, again.version) == (0, None) and lake.quarantine().live_files() != []
    lake.produce(0, b'{"id": 7}')
    lake.load(UNDATED)
    assert lake.check_each_record_once()[1] == LEFT, "a load sees no lost rows"


def test_the_numbers_of_rows_and_versions_are_right_afterwards(lake: ByHand) -> None:
    loaded(lake)
    lake.requeue(UNDATED)
    table, quarantine = lake.table(), lake.quarantine()
    assert (table.count(), table.rows(TOPIC)) == (6, 6) and (quarantine.count(), quarantine.rows(TOPIC)) == (2, 2)
    assert requeued.requeues(table, TOPIC) == requeued.requeues(quarantine, TOPIC) == 1
    before = quarantine.version_of("none"), [file.path for file in quarantine.live_files()]
    lake.requeue(UNDATED)
    assert before[1] == [file.path for file in lake.quarantine().live_files()], "nothing was rewritten"


STEPS = {
    "the topic's files are written": (requeueing, "add_requeued"),
    "columns are added": (Table, "add_columns", IcebergTable, "add_columns"),
    "a table is committed to": (Table, "_write", IcebergTable, "_write"),
    "rejected records go": (requeueing, "replace_rejected"),
    "folders are flushed": (committing, "sync_folders"),
    "a table is read again": (Table, "refresh", IcebergTable, "refresh"),
}


CASES = [
    *(("delta", step) for step in STEPS),
    ("iceberg", "a table is committed to"),
]


@pytest.mark.check  # dozens of loads; `make test` has two that meet at one of these steps
@pytest.mark.parametrize(("of", "step"), CASES)
def test_a_requeue_that_dies_at_any_step_is_finished_by_the_next_requeue_or_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, step: str
) -> None:
    began = loaded(ByHand(tmp_path / "began", of))
    deaths = 0
    for after in (False, True):
        for death in itertools.count():
            lake = copied(began, tmp_path / f"{after}{death}")
            if not dies(lake, monkeypatch, step, after, death):
                break
            deaths += 1
            if death % 2:
                lake.produce(1, b'{"id": 8}')
                lake.load(UNDATED)
                assert lake.check_each_record_once()[1] in (LEFT, LEFT | MOVED), (
                    "a load has finished it, or it was none"
                )
            lake.requeue(UNDATED)
            assert lake.check_each_record_once()[1] == LEFT
            assert not requeued.unfinished(lake.table(), lake.quarantine(), TOPIC)
    assert deaths >= 2


def copied(began: ByHand, folder: Path) -> ByHand:
    """The same tables elsewhere; those of a catalog, which has their paths, are made anew."""
    if began.of == "iceberg":
        return loaded(ByHand(folder, began.of))
    shutil.copytree(began.folder, folder)
    lake = ByHand(folder, began.of)
    lake.log = {partition: list(values) for partition, values in began.log.items()}
    return lake


def dies(lake: ByHand, monkeypatch: pytest.MonkeyPatch, step: str, after: bool, death: int) -> bool:
    """Requeue, and die at the given call of a step; whether it was called so often."""
    left = [death]

    def mortal(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if left[0] == 0 and not after:
                raise Died
            found = real(*arguments, **named)
            if left[0] == 0:
                raise Died
            left[0] -= 1
            return found

        return call

    with monkeypatch.context() as patch:
        places = STEPS[step]
        for where, name in zip(places[::2], places[1::2], strict=True):
            patch.setattr(where, name, mortal(getattr(where, name)))
        try:
            lake.requeue(UNDATED)
        except Died:
            return True
    return False


def test_records_that_no_load_has_committed_yet_wait_for_it(lake: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(lake)
    lake.produce(0, b'{"id": 7}', b'{"id": 8}')
    real = topic_tables.commit

    def dying(table: Any, *arguments: Any, **named: Any) -> int:
        if "quarantine" in table.name:
            return real(table, *arguments, **named)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(topic_tables, "commit", dying)
        with pytest.raises(Died):
            lake.load(DATED)
    done = lake.requeue(UNDATED)
    assert (done.moved, done.waiting) == (2, 2)
    lake.load(UNDATED)
    assert lake.check_each_record_once()[1] == LEFT | {(0, 5), (0, 6)}, "the load left out what is in quarantine"
    assert lake.requeue(UNDATED).moved == 2
    assert lake.check_each_record_once()[1] == LEFT


def test_a_load_that_commits_in_the_middle_of_a_requeue_loses_and_doubles_nothing(
    lake: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(lake)
    for name in ("add_requeued", "replace_rejected"):
        real = getattr(requeueing, name)

        turn = itertools.count()

        def beside(*arguments: Any, real: Any = real, turn: Any = turn) -> Any:
            if next(turn) == 0:
                lake.produce(0, b'{"id": 9}', b'{"id": 10, "at": 1709200800}')
                lake.load(DATED)
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(requeueing, name, beside)
            done = lake.requeue(UNDATED)
        assert done.moved == 2 if name == "add_requeued" else done.moved == 1
        assert len(lake.check_each_record_once()[1]) == 3, "the new rejected record"
    assert lake.requeue(UNDATED).moved == 1 and lake.check_each_record_once()[1] == LEFT


def test_a_requeue_in_the_middle_of_a_load_loses_and_doubles_nothing(
    lake: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(lake)
    real, turn = topic_tables.commit, itertools.count()

    def beside(*arguments: Any, **named: Any) -> int:
        next(turn)
        lake.requeue(UNDATED)
        return real(*arguments, **named)

    lake.produce(1, b'{"id": 9}', b'{"id": 10, "at": 1709200800}')
    with monkeypatch.context() as patch:
        patch.setattr(topic_tables, "commit", beside)
        lake.load(DATED)
    assert next(turn) == 2, "before the commit of the rejected records, and before that of the others"
    assert lake.check_each_record_once()[1] == LEFT | {(1, 3)}
    assert lake.requeue(UNDATED).moved == 1 and lake.check_each_record_once()[1] == LEFT


def test_of_two_requeues_one_moves_the_records(lake: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(lake)
    real, turn = requeueing.add_requeued, itertools.count()

    def beside(*arguments: Any) -> int:
        if next(turn) == 0:
            assert lake.requeue(UNDATED).moved == 2
        return real(*arguments)

    monkeypatch.setattr(requeueing, "add_requeued", beside)
    with pytest.raises(Conflict, match=r"Another requeue has committed to .* meanwhile; nothing was added"):
        lake.requeue(UNDATED)
    assert lake.check_each_record_once()[1] == LEFT


def test_rejected_records_that_were_rewritten_meanwhile_are_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = loaded(ByHand(tmp_path, "delta"))
    real = requeueing.replace_rejected

    def beside(*arguments: Any) -> bool:
        monkeypatch.setattr(requeueing, "replace_rejected", real)
        DeltaTable(tmp_path / "_quarantine" / TOPIC).optimize.compact()
        return real(*arguments)

    monkeypatch.setattr(requeueing, "replace_rejected", beside)
    assert lake.requeue(UNDATED).moved == 2
    assert lake.check_each_record_once()[1] == LEFT


def test_a_table_that_was_set_back_is_refused_and_both_set_back_begin_again(tmp_path: Path) -> None:
    lake = loaded(ByHand(tmp_path, "delta"))
    versions = DeltaTable(tmp_path / TOPIC).version(), DeltaTable(tmp_path / "_quarantine" / TOPIC).version()
    lake.requeue(UNDATED)
    DeltaTable(tmp_path / TOPIC).restore(versions[0])
    for attempt in (lambda: lake.requeue(UNDATED), lambda: lake.load(UNDATED)):
        with pytest.raises(RowsRemoved, match=r"RESTORE in version .* removed 2 rows"):
            attempt()
    DeltaTable(tmp_path / "_quarantine" / TOPIC).restore(versions[1])
    lake.load(UNDATED, removed_rows="accept")
    assert lake.check_each_record_once()[1] == LEFT | MOVED
    assert lake.requeue(UNDATED).moved == 2
    assert lake.check_each_record_once()[1] == LEFT


def test_rejected_records_that_were_set_back_are_not_moved_twice(tmp_path: Path) -> None:
    lake = loaded(ByHand(tmp_path, "delta"))
    before = DeltaTable(tmp_path / "_quarantine" / TOPIC).version()
    lake.requeue(UNDATED)
    DeltaTable(tmp_path / "_quarantine" / TOPIC).restore(before)
    done = lake.requeue(UNDATED)
    assert (done.moved, done.already) == (0, 2)
    assert lake.check_each_record_once()[1] == LEFT


def test_rows_that_another_tool_removed_from_the_quarantine_are_noticed_beside_a_requeue(lake: ByHand) -> None:
    loaded(lake)
    lake.requeue(UNDATED)
    found: Any = lake.quarantine()
    if lake.of == "delta":
        DeltaTable(found.where.uri).delete("_offset = 2 AND _partition = 0")
    else:
        found._iceberg.delete("_offset = 2 and _partition = 0")
    with pytest.raises(RowsRemoved, match=r"has lost rejected records of earlier loads: .* removed 1 row;"):
        lake.requeue(UNDATED)


def test_without_rejected_records_there_is_nothing_to_do(lake: ByHand) -> None:
    with pytest.raises(TableError, match="no table of topic t: load it first"):
        lake.requeue(UNDATED)
    lake.produce(0, b'{"id": 1}')
    lake.load(UNDATED)
    assert lake.requeue(UNDATED) == requeueing.Requeued(TOPIC)


@pytest.mark.parametrize(
    ("columns", "partition_by", "key_columns", "why"),
    [
        (in_files(), "none", ("_key",), "has one row per key"),
        (in_files(), "region", (), "is partitioned by columns of its own"),
        (pyarrow.schema([one for one in in_files() if one.name != "_key"]), "none", (), "columns of decoded keys"),
    ],
)
def test_a_table_that_a_requeue_cannot_add_to_is_refused(
    lake: ByHand, columns: Any, partition_by: str, key_columns: tuple[str, ...], why: str
) -> None:
    columns = columns.append(pyarrow.field("region", pyarrow.string()))
    lake.warehouse().create(TOPIC, of_table(columns, partition_by), partition_by, key_columns)
    with pytest.raises(TableError, match=f"{why}.*, and a requeue cannot add to it yet: load its topic into a new"):
        lake.requeue(UNDATED)


def test_many_files_are_moved_batch_by_batch(tmp_path: Path) -> None:
    lake = ByHand(tmp_path, "delta")
    for turn in range(6):
        lake.produce(turn % 2, *[b'{"id": "x"}'] * 500, *[b'{"id": 5}'] * 10)
        lake.load(Decoding("json", "id INT"))
    known = lake.requeue(Decoding("json", "id INT"))
    assert known.moved == 0 and known.rejected.records == 3_000
    lake.check_each_record_once()


def test_the_command_says_what_it_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(ByHand(tmp_path, "delta"))
    (tmp_path / "ddl").write_text("id INT, at TIMESTAMP")
    command = ["pipeline", "requeue", "--topics", TOPIC, "--warehouse", str(tmp_path), "--decode", "json"]
    command += ["--schema", str(tmp_path / "ddl")]
    assert run([*command, "--dry-run"]) == 0
    assert capsys.readouterr().out == "t: 2 records would be moved, 2 still rejected\n"
    assert run(command) == 0
    said = capsys.readouterr()
    assert said.out == "t: 2 records moved, 2 still rejected\n"
    assert 't: still rejected: partition 1 offset 2: field at is the text "soon", not a time' in said.err
    assert run([*command, "--json"]) == 0
    found = {"moved": 0, "rejected": 2, "waiting": 0, "already_moved": 0, "version": None}
    assert json.loads(capsys.readouterr().out) == {TOPIC: found}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--topics", ","], "--topics names no topic"),
        (["--decode", "none"], "--decode none rejects nothing"),
        (["--decode", "avro"], "--decode avro needs --schema-registry"),
        (["--compression", "zip"], "--compression 'zip' is none of"),
        (["--topics", "other"], "The warehouse has no table of topic other: load it first."),
    ],
)
def test_what_cannot_be_requeued_is_one_sentence(
    tmp_path: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"--topics": TOPIC, "--warehouse": str(tmp_path), "--decode": "text"}
    given |= dict(zip(options[::2], options[1::2], strict=True))
    assert run(["pipeline", "requeue", *itertools.chain(*given.items())]) != 0
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_columns_of_requeued_records_are_inferred_from_those_that_pass(tmp_path: Path) -> None:
    lake = loaded(ByHand(tmp_path, "delta"))
    lake.produce(0, b'{"id": 8, "new": 1, "at": "never"}')
    lake.load(DATED)
    done = lake.requeue(UNDATED)
    assert done.moved == 2, "the column at stays a timestamp, which 'soon' and 'never' are not"
    names = lake.table().columns.names
    assert "new" not in names, "of a record that is rejected again"
