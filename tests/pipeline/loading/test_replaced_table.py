"""A table that is removed, or made anew, between two commits of a load: one sentence, and nothing is mixed."""

import shutil
from pathlib import Path

import pytest

from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.loading.topic_tables import TopicTables
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from tests.pipeline.loading.tables_by_hand import TOPIC, ByHand

GONE = (
    "{} was removed or made anew while this load ran: run the load again, which goes on with the table that is there, "
    "or makes one."
)


def drop(lake: ByHand) -> str:
    """Drop the table of the topic; returns its name."""
    warehouse = lake.warehouse()
    if isinstance(warehouse, IcebergWarehouse):
        warehouse._catalog.drop_table(("lake", TOPIC))
        return f"lake.{TOPIC}"
    shutil.rmtree(lake.folder / TOPIC)
    return str(lake.folder / TOPIC)


def grow(lake: ByHand) -> None:
    """A load of one more record, by a command of its own."""
    lake.produce(0, b"v%d" % len(lake.log[0]))
    lake.load(Decoding())


@pytest.mark.parametrize("of", ["delta", "iceberg"])
@pytest.mark.parametrize("commits", [0, 1, 4])
def test_a_load_that_goes_on_says_so_and_the_next_one_loads_what_is_missing(
    tmp_path: Path, of: str, commits: int
) -> None:
    """The new table has no, fewer or more versions than the load had read of the old one."""
    lake = ByHand(tmp_path, of)
    tables = TopicTables(TOPIC, lake.warehouse(), Settings())
    for number in range(2):
        lake.produce(0, b"v%d" % number)
        lake.load_into(tables, Decoding())
    name = drop(lake)
    for _ in range(commits):
        grow(lake)
    lake.produce(0, b"last")
    with pytest.raises(TableError) as said:
        lake.load_into(tables, Decoding())
    assert str(said.value) == GONE.format(name)
    lake.load(Decoding())
    assert [(row["_offset"], row["value"]) for row in lake.loaded_rows()] == list(enumerate(lake.log[0]))


def test_what_others_commit_to_the_same_table_is_no_other_table(tmp_path: Path) -> None:
    lake = ByHand(tmp_path, "delta")
    tables = TopicTables(TOPIC, lake.warehouse(), Settings())
    lake.load_into(tables, Decoding())
    for _ in range(3):
        grow(lake)
        lake.produce(0, b"x")
        lake.load_into(tables, Decoding())
    copy = shutil.copytree(tmp_path / TOPIC, tmp_path / "copy")
    drop(lake)
    copy.rename(tmp_path / TOPIC)
    lake.produce(0, b"a table that was brought back from a copy")
    lake.load_into(tables, Decoding())
    assert [row["value"] for row in lake.loaded_rows()] == lake.log[0]
