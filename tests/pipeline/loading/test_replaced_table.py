"""A table that is removed, or made anew, between two commits of a load: one sentence, and nothing is mixed."""

import shutil
import uuid
from pathlib import Path

import pytest

from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.loading.topic_tables import TopicTables
from moldau.pipeline.positions import DataLost
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from tests.pipeline.loading.tables_by_hand import TOPIC, ByHand

GONE = (
    "{} was removed or made anew while this load ran: run the load again, which goes on with the table that is there, "
    "or makes one."
)
IN_COLUMNS = Decoding("json", "id INT")
ONE_TOPIC, ANOTHER_TOPIC = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100)


def drop(lake: ByHand) -> str:
    """Drop the table of the topic; returns its name."""
    warehouse = lake.warehouse()
    if isinstance(warehouse, IcebergWarehouse):
        warehouse._catalog.drop_table(("lake", TOPIC))
        return f"lake.{TOPIC}"
    shutil.rmtree(lake.folder / TOPIC)
    return str(lake.folder / TOPIC)


def drop_rejected(lake: ByHand) -> None:
    warehouse = lake.warehouse()
    if isinstance(warehouse, IcebergWarehouse):
        warehouse._catalog.drop_table((warehouse.quarantine, TOPIC))
    else:
        shutil.rmtree(lake.folder / "_quarantine" / TOPIC)


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


@pytest.mark.parametrize("of", ["delta", pytest.param("iceberg", marks=pytest.mark.check)])
def test_rejected_records_of_an_earlier_topic_keep_no_record_of_a_new_one_out(tmp_path: Path, of: str) -> None:
    lake = ByHand(tmp_path, of)
    lake.topic_id = ONE_TOPIC
    lake.produce(0, b'{"id": 1}', b"{", b"{")
    lake.load(IN_COLUMNS)
    assert lake.check_each_record_once()[1] == {(0, 1), (0, 2)}
    drop(lake)
    lake.topic_id, lake.log = ANOTHER_TOPIC, {0: [], 1: []}
    lake.produce(0, b'{"id": 1}', b'{"id": 2}', b'{"id": 3}')
    with pytest.raises(DataLost, match=f"has rejected records of an earlier topic {TOPIC}: .* move that table away"):
        lake.load(IN_COLUMNS)
    drop_rejected(lake)
    lake.load(IN_COLUMNS)
    assert [row["id"] for row in lake.loaded_rows()] == [1, 2, 3]


def test_rejected_records_of_an_earlier_topic_are_not_moved_to_the_table_of_a_new_one(tmp_path: Path) -> None:
    lake = ByHand(tmp_path, "delta")
    lake.topic_id = ONE_TOPIC
    lake.produce(0, b'{"id": "x"}')
    lake.load(IN_COLUMNS)
    kept = (tmp_path / "_quarantine").rename(tmp_path / "kept")
    drop(lake)
    lake.topic_id, lake.log = ANOTHER_TOPIC, {0: [b'{"id": 1}', b'{"id": 2}'], 1: []}
    lake.load(Decoding("json", "id STRING"))
    kept.rename(tmp_path / "_quarantine")
    with pytest.raises(TableError, match=f"has rejected records of another topic {TOPIC} than .*nothing was moved"):
        lake.requeue(Decoding("json", "id STRING"))
    assert [row["id"] for row in lake.loaded_rows()] == ["1", "2"]


def test_a_topic_that_is_loaded_anew_leaves_its_rejected_records_where_they_are(tmp_path: Path) -> None:
    lake = ByHand(tmp_path, "delta")
    lake.topic_id = ONE_TOPIC
    lake.produce(0, b'{"id": 1}', b"{")
    lake.produce(1, b'{"id": "x"}')
    lake.load(IN_COLUMNS)
    drop(lake)
    lake.produce(0, b'{"id": 2}')
    lake.load(Decoding("json", "id STRING"))
    assert lake.check_each_record_once() == ({(0, 0), (0, 2)}, {(0, 1), (1, 0)})
    drop(lake)
    drop_rejected(lake)
    lake.load(Decoding("json", "id STRING"))
    assert lake.check_each_record_once() == ({(0, 0), (0, 2), (1, 0)}, {(0, 1)}), "decoded as it is said now"
