"""`pipeline load` into a local folder that this process may not write to: said before Spark starts. A Spark that cannot
start leaves nothing behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading.load import load
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.session import SparkFailed
from moldau.pipeline.tables import storage
from moldau.pipeline.tables.columns import TableError, in_files, of_table
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.warehouse import Warehouse

NewTopic = Callable[..., str]
Produce = Callable[..., None]


def without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, who may write anywhere: the mode decides here."""
    monkeypatch.setattr(storage.os, "access", lambda path, _: bool(path.stat().st_mode & 0o200))


def no_spark() -> Any:
    raise AssertionError("Spark was started")


def test_a_folder_without_permission_is_one_sentence_before_spark_starts(
    bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, parent, json_values = new_topic(), tmp_path / "ro", Settings(decoding=Decoding("json"))
    produce(topic, [(None, b"{}", 0)])
    parent.mkdir(mode=0o500)
    without_permission(monkeypatch)

    def refused(settings: Settings = Settings()) -> str:
        with pytest.raises(TableError) as failure:
            load(no_spark, bootstrap, [topic], Warehouse(parent / "w"), settings)
        return str(failure.value)

    table, why = parent / "w" / topic, "this process has no permission"
    assert refused() == f"{table} cannot be created: {why} to write to {parent}."
    parent.chmod(0o700)
    (parent / "w" / "_quarantine").mkdir(mode=0o500, parents=True)
    rejected = parent / "w" / "_quarantine" / topic
    assert refused(json_values) == f"{rejected} cannot be created: {why} to write to {rejected.parent}."
    table.mkdir(mode=0o500)
    assert refused() == f"{table} cannot be written to: {why}."
    table.chmod(0o700)
    (table / "_delta_log").mkdir(mode=0o500)
    assert refused() == f"{table / '_delta_log'} cannot be written to: {why}."
    (parent / "w" / "_quarantine").rename(parent / "q")
    (parent / "w").rename(parent / "x")
    (parent / "w").symlink_to(parent / "q" / "nowhere")
    assert refused() == f"{table} cannot be created: {parent / 'w'} is not a folder."


def test_an_iceberg_table_in_a_folder_without_permission_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/w"}
    warehouse = IcebergWarehouse("test", where, "lake")
    warehouse.check_writable("t", rejects=True)
    data = warehouse.create("t", of_table(in_files(), "none"), "none").where.path
    data.mkdir(mode=0o500, parents=True)
    without_permission(monkeypatch)
    with pytest.raises(TableError, match=f"^{data} cannot be written to: this process has no permission.$"):
        warehouse.check_writable("t", rejects=False)
    (tmp_path / "w").chmod(0o500)
    with pytest.raises(TableError, match=f"^{tmp_path}/w cannot be written to: this process has no permission.$"):
        warehouse.check_writable("u", rejects=False)


def test_an_iceberg_catalog_that_cannot_place_tables_is_one_sentence_before_spark_starts(
    bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic, uri = new_topic(), f"sqlite:///{tmp_path}/catalog.db"
    produce(topic, [(None, b"{}", 0)])
    said = "^The Iceberg catalog test does not say where new tables are: name their folder or URL with --warehouse.$"
    for settings in (Settings(), Settings(decoding=Decoding("json"))):
        with pytest.raises(TableError, match=said):
            load(no_spark, bootstrap, [topic], IcebergWarehouse("test", {"uri": uri}, "lake"), settings)
    with pytest.raises(TableError, match=r"pyiceberg ends the path at '#', so rename the folder\.$"):
        IcebergWarehouse("test", {"uri": uri, "warehouse": f"file://{tmp_path}/a#b"}, "lake")


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_spark_that_cannot_start_leaves_no_empty_table_that_would_keep_its_partitioning(
    bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path, table_format: str
) -> None:
    def cannot_start() -> Any:
        raise SparkFailed("Spark cannot start")

    topic, where = new_topic(), {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/w"}
    warehouse = Warehouse(tmp_path / "w") if table_format == "delta" else IcebergWarehouse("test", where, "lake")
    produce(topic, [(None, b"{}", 0)])
    with pytest.raises(SparkFailed):
        load(cannot_start, bootstrap, [topic], warehouse, Settings(partition_by="hour"))
    assert warehouse.table(topic) is None
    assert not (tmp_path / "w").exists()
