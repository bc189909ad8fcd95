"""Which column a field has, in a table and beside new fields."""

import pyarrow as pa

from moldau.pipeline.decoding.event_times import TIMESTAMP
from moldau.pipeline.decoding.json_inference import inferred
from moldau.pipeline.decoding.known_columns import columns_of_fields, table_names
from tests.pipeline.decoding.fetching import sample


def test_names_that_a_table_keeps_for_itself_get_an_underscore() -> None:
    names = ["id", "_key", "_Offset", "_date", "ID", "id_", "first name", "a=b", "", "reason"]
    made = table_names(names)
    assert made == ["id", "_key_", "_Offset_", "_date_", "ID_", "id__", "first_name", "a_b", "_", "reason_"]
    assert len({name.lower() for name in made}) == len(names)


def test_a_field_finds_the_column_that_was_made_of_it() -> None:
    known = pa.schema([(name, pa.int64()) for name in ("id", "ID_", "first_name", "_key_", "_key", "reason", "_more")])
    names = ["ID", "first name", "_key", "new", "id", "reason"]
    there = columns_of_fields(names, known)
    assert there == {"ID": "ID_", "first name": "first_name", "_key": "_key_", "id": "id"}
    assert table_names(names, there) == ["ID_", "first_name", "_key_", "new", "id", "reason_"]
    assert columns_of_fields(["Id", "a b", "a_b"], pa.schema([("id", pa.int64()), ("a_b", pa.int64())])) == {
        "a_b": "a_b"
    }, "a name of its own comes first, and one that differs in case is another field"


def test_a_table_keeps_its_columns_and_gets_new_ones_behind() -> None:
    known = pa.schema(
        [("a", pa.int64()), ("gone", pa.string()), ("at", TIMESTAMP), ("_more", pa.string()), ("_key", pa.binary())]
    )
    values = sample([b'{"new": true, "at": "2024-02-29", "a": 1, "d e": 1}'])
    assert inferred(values, known, "at").columns == pa.schema(
        [("a", pa.int64()), ("gone", pa.string()), ("at", pa.string()), ("new", pa.bool_()), ("d e", pa.int64())]
    )
    assert inferred(sample([b'{"d e": 2}']), pa.schema([("d_e", pa.int64())])).columns.names == ["d e"]
