"""Which columns of a table's schema become wider, and what is said of those that cannot."""

import copy
import json
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Schema

from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.storage import location
from moldau.pipeline.tables.widening import refuse_wider, widened_schema

PLACE = pa.struct([("lat", pa.float32()), ("hits", pa.list_(pa.struct([("n", pa.int16())])))])
COLUMNS = pa.schema(
    [
        pa.field("n", pa.int32(), nullable=False),
        ("place", PLACE),
        ("counts", pa.map_(pa.string(), pa.int8())),
        ("a.b", pa.int32()),
        ("a", pa.struct([("b", pa.int32())])),
        ("name", pa.string()),
        ("_offset", pa.int64()),
        ("_hour", pa.int32()),
    ]
)


def schema() -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(Schema.from_arrow(COLUMNS).to_json())
    tree["fields"][0]["metadata"] = {"comment": "kept"}
    return tree


def test_only_the_named_types_change_and_comments_stay() -> None:
    before = schema()
    changes = {"n": "BIGINT", "place.lat": "double", "place.hits.element.n": "int", "counts.value": "short"}
    made = widened_schema(before, changes)
    assert before == schema() and made["fields"][0]["metadata"] == {"comment": "kept"}
    found = pa.schema(Schema.from_json(json.dumps(made)).to_arrow())
    assert found.field("n") == pa.field("n", pa.int64(), nullable=False, metadata={"comment": "kept"})
    place = found.field("place").type
    assert place.field("lat").type == pa.float64() and place.field("hits").type.value_type.field("n").type == pa.int32()
    assert found.field("counts").type.item_type == pa.int16()
    expected = copy.deepcopy(made)
    assert widened_schema(made, changes) == expected, "what has the type already stays"


@pytest.mark.parametrize(
    ("path", "kind", "sentence"),
    [
        ("n", "text", "the type is none of byte, tinyint, short"),
        ("n", "double", "its type is int, which becomes wider in long"),
        ("n", "short", "its type is int, which becomes wider in long"),
        ("place.lat", "long", "its type is float, which becomes wider in double"),
        ("name", "long", r"the table has no such column of numbers; it has a\.b, counts\.value, n, place\.hits"),
        ("_offset", "long", "the table has no such column"),
        ("_hour", "long", "the table has no such column"),
        ("a.b", "long", "two columns of the table have this path"),
    ],
)
def test_what_cannot_be_widened_is_a_sentence(path: str, kind: str, sentence: str) -> None:
    with pytest.raises(TableError, match=f"{path}={kind}: {sentence}"):
        widened_schema(schema(), {path: kind})


def test_a_load_that_meets_wider_types_names_the_command() -> None:
    wider = pa.struct([("lat", pa.float64()), ("hits", pa.list_(pa.struct([("n", pa.int64())])))])
    wanted = [pa.field("n", pa.int64()), pa.field("place", wider), pa.field("new", pa.int64())]
    sentence = (
        r"^Column n and 2 more of /w/or ders has type int, and the schema of its values now says long: widen the table "
        r"once with 'moldau pipeline widen '/w/or ders' n=long place\.lat=double place\.hits\.element\.n=long', then "
        r"load again\.$"
    )
    with pytest.raises(TableError, match=sentence):
        refuse_wider(location("/w/or ders"), COLUMNS, wanted)
    refuse_wider(location("/w/orders"), COLUMNS, [pa.field("n", pa.int16()), pa.field("place", PLACE)])
