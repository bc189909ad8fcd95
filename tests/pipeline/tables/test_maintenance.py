"""Compaction, vacuum and history of tables, beside loads that go on; by the commands, as users run them."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.patience import wait_until
from moldau.cli.main import run
from moldau.names import TopicPartition
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.maintenance import compact, history, vacuum
from moldau.pipeline.tables.operation_records import noted
from moldau.pipeline.tables.storage import location
from moldau.pipeline.tables.table import Table
from tests.pipeline.tables.test_readers import commit

DAYS = 86_400


def offsets_in(folder: Path) -> list[int]:
    return sorted(DeltaTable(folder).to_pyarrow_table(columns=["_offset"])["_offset"].to_pylist())


def expected(until: int) -> list[int]:
    return sorted([*range(until), *range(until)])


def files_below(folder: Path) -> int:
    return len(list(folder.rglob("*.parquet"))) - len(list((folder / "_delta_log").rglob("*.parquet")))


def age(folder: Path) -> None:
    """Make all files eight days old."""
    for path in folder.rglob("*.parquet"):
        os.utime(path, (time.time() - 8 * DAYS,) * 2)


def test_a_compaction_changes_no_row_and_offsets_survive_it(tmp_path: Path) -> None:
    folder = tmp_path / "flights"
    for start in range(0, 40, 10):
        commit(folder, start, start + 10)
    assert compact(location(folder)) == (8, 2) and compact(location(folder)) == (0, 0)
    table = Table.open(location(folder))
    assert table is not None and offsets_in(folder) == expected(40)
    assert table.offsets([TopicPartition("flights", 0)]) == {TopicPartition("flights", 0): 40}
    commit(folder, 40, 50)
    assert offsets_in(folder) == expected(50)
    versions = history(location(folder), 3)
    assert [(one.version, one.operation, one.load_id, one.records) for one in versions] == [
        (6, "WRITE", "load-40", 20),
        (5, "OPTIMIZE", None, None),
        (4, "WRITE", "load-30", 20),
    ]


def test_a_vacuum_takes_old_orphans_only_and_leaves_what_a_running_load_has_written(tmp_path: Path) -> None:
    folder = tmp_path / "flights"
    commit(folder, 0, 10)
    (folder / "_date=1970-01-01" / "part-of-a-dead-load.parquet").write_text("x")
    age(folder)
    (folder / "_date=1970-01-01" / "part-of-a-running-load.parquet").write_text("x")
    assert vacuum(location(folder), dry_run=True) == 1 and files_below(folder) == 4
    assert vacuum(location(folder)) == 1
    assert files_below(folder) == 3 and offsets_in(folder) == expected(10)
    with pytest.raises(
        TableError, match=r"for longer than 0 hours, since a running load or a reader may .* add --force"
    ):
        vacuum(location(folder), 0)
    assert vacuum(location(folder), 200) == 0
    assert vacuum(location(folder), 0, force=True) == 1 and offsets_in(folder) == expected(10)


def test_compaction_and_vacuum_during_loads_lose_and_double_nothing(tmp_path: Path) -> None:
    folder, over = tmp_path / "flights", threading.Event()
    commit(folder, 0, 5)
    compactions = []

    def keep_compacting() -> None:
        while not over.is_set():
            compactions.append(compact(location(folder)))
            vacuum(location(folder))

    beside = threading.Thread(target=keep_compacting)
    beside.start()
    try:
        for start in range(5, 105, 5):
            commit(folder, start, start + 5)
        assert wait_until(lambda: any(one.removed for one in compactions))
    finally:
        over.set()
        beside.join()
    compact(location(folder))
    assert offsets_in(folder) == expected(105)


def test_the_commands_say_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("flights", "weather"):
        for start in (0, 10):
            commit(tmp_path / name, start, start + 10)
    warehouse = str(tmp_path)
    assert run(["pipeline", "compact", warehouse]) == 0
    assert capsys.readouterr().out == "flights: 4 files became 2\nweather: 4 files became 2\n"
    assert run(["pipeline", "compact", warehouse]) == 0
    assert capsys.readouterr().out == "flights: nothing to compact\nweather: nothing to compact\n"
    assert run(["pipeline", "vacuum", warehouse, "--dry-run", "--retention-hours", "0", "--force"]) == 0
    assert capsys.readouterr().out == "flights: 4 files would be removed\nweather: 4 files would be removed\n"
    assert run(["pipeline", "history", f"{warehouse}/flights", "--limit", "2"]) == 0
    said = capsys.readouterr().out
    assert "OPTIMIZE" in said and "load-10" in said and "weather" not in said
    assert run(["pipeline", "compact", str(tmp_path / "nothing")]) == 1
    assert "has no table" in capsys.readouterr().err


def test_a_folder_that_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("moldau.pipeline.tables.storage.os.scandir", refuse)
    for command in ("history", "compact", "vacuum"):
        assert run(["pipeline", command, str(tmp_path)]) == 1
        assert capsys.readouterr().err == f"error: {tmp_path} cannot be read: Permission denied.\n"


def test_the_history_says_how_many_records_other_tools_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "flights"
    commit(folder, 0, 10)
    DeltaTable(folder).delete("_offset < 3")
    DeltaTable(folder).update(updates={"_timestamp_type": "1"}, predicate="_offset = 5")
    rows = DeltaTable(folder).to_pyarrow_table(filters=[("_offset", "<", 6)])
    merge = DeltaTable(folder).merge(rows, "s._offset = t._offset AND s._partition = t._partition", "s", "t")
    merge.when_matched_delete("s._offset = 4").when_matched_update_all().execute()
    DeltaTable(folder).restore(2)
    write_deltalake(folder, rows, mode="append")
    write_deltalake(folder, rows.slice(0, 1), mode="overwrite", predicate="_offset = 3")
    DeltaTable(folder).delete()
    assert run(["pipeline", "history", str(folder), "--json"]) == 0
    versions = json.loads(capsys.readouterr().out)["flights"]
    assert [(one["operation"], one["records"], one["updated"], one["removed"]) for one in versions[::-1]] == [
        ("CREATE TABLE", None, None, None),
        ("WRITE", 20, None, None),
        ("DELETE", None, None, 6),
        ("UPDATE", None, 2, None),
        ("MERGE", 0, 4, 2),
        ("RESTORE", 14, None, 12),
        ("WRITE", 6, None, None),
        ("WRITE", 1, None, 4),
        ("DELETE", None, None, 17),
    ]


def test_an_overwrite_may_be_the_first_version_or_one_whose_version_before_is_gone(tmp_path: Path) -> None:
    rows = pyarrow.table({"id": [1, 2, 3]})
    for _ in range(2):
        write_deltalake(tmp_path, rows, mode="overwrite")
    versions = [(one.records, one.removed) for one in history(location(tmp_path), count=True)]
    assert versions == [(3, 3), (3, 0)]
    DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert [(one.records, one.removed) for one in history(location(tmp_path), count=True)] == [(3, None)]


@pytest.mark.parametrize(
    ("entry", "changes"),
    [
        ({"operation": "DELETE", "operationMetrics": {"numDeletedRows": "7"}}, (None, None, 7)),
        ({"operation": "UPDATE", "operationMetrics": {"numUpdatedRows": "7", "numCopiedRows": "1"}}, (None, 7, None)),
        (
            {
                "operation": "MERGE",
                "operationMetrics": {
                    "numTargetRowsInserted": "1",
                    "numTargetRowsUpdated": "2",
                    "numTargetRowsDeleted": "3",
                    "numOutputRows": "9",
                },
            },
            (1, 2, 3),
        ),
        ({"operation": "STREAMING UPDATE", "operationMetrics": {"numOutputRows": "7"}}, (7, None, None)),
        ({"operation": "DELETE", "operationMetrics": {"numDeletedRows": "many"}}, (None, None, None)),
        ({"operation": "DELETE", "operationMetrics": "none"}, (None, None, None)),
        ({"operation": "OPTIMIZE", "operationMetrics": {"numOutputRows": "7"}}, (None, None, None)),
        ({}, (None, None, None)),
    ],
)
def test_what_spark_and_other_writers_note_is_read(entry: dict[str, Any], changes: tuple[int | None, ...]) -> None:
    assert noted(entry) == changes
