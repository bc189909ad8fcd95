"""Decoded columns as their table has them: numbers that fit, structs that grow, event times inside of structs."""

import datetime
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.errors import ConfigError
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.ddl import columns_of
from moldau.pipeline.decoding.fitting import fit, fitted
from moldau.pipeline.decoding.json_inference import inferred
from moldau.pipeline.decoding.json_values import JsonValues
from moldau.pipeline.decoding.topic_decoder import TopicDecoder
from tests.pipeline.decoding.fetching import decoded, sample

NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())


@pytest.mark.parametrize("known", NUMBERS, ids=str)
@given(
    st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, 1, 127, 128, 1 << 24, 1 << 53]))
)
def test_whole_numbers_fit_if_their_column_holds_them_exactly(known: pa.DataType, numbers: list[int | None]) -> None:
    made, unfit = fit(pa.array(numbers, pa.int64()), known)
    wrong = [False] * len(numbers) if unfit is None else unfit.to_pylist()
    for number, one, bad in zip(numbers, made.to_pylist(), wrong, strict=True):
        assert bad == (number is not None and not holds(known, number))
        assert bad or one == number


def holds(kind: pa.DataType, number: int) -> bool:
    if pa.types.is_integer(kind):
        return -(1 << (kind.bit_width - 1)) <= number < 1 << (kind.bit_width - 1)
    found = pa.array([float(number)], pa.float64()).cast(kind).to_pylist()[0]
    return int(found) == number


def test_fractions_fit_floating_columns_only() -> None:
    values = pa.array([1.0, 1.5, float("nan"), float(1 << 63), -float(1 << 63), None])
    whole, unfit = fit(values, pa.int64())
    assert unfit.to_pylist() == [False, True, True, True, False, False]
    assert [whole[at].as_py() for at in (0, 4, 5)] == [1, -(1 << 63), None]
    assert fit(values, pa.float32())[1] is None
    assert fit(pa.array([0.1]), pa.float32())[1].to_pylist() == [True]


def test_structs_and_lists_keep_the_fields_of_the_table_and_get_new_ones() -> None:
    known = pa.list_(pa.struct([("a", pa.int32()), ("gone", pa.string())]))
    values = [[{"new": "x", "a": 1}], None, [], [{"new": None, "a": 1 << 40}, None]]
    column = pa.array(values, pa.list_(pa.struct([("new", pa.string()), ("a", pa.int64())])))
    kind = fitted(column.type, known)
    assert kind == pa.list_(pa.struct([("a", pa.int64()), ("gone", pa.string()), ("new", pa.string())]))
    kind = pa.list_(pa.struct([("a", pa.int32()), ("gone", pa.string()), ("new", pa.string())]))
    for cut, first in ((column, 0), (column.slice(1), 1)):
        made, unfit = fit(cut, kind)
        assert unfit.to_pylist() == [False, False, False, True][first:]
        assert made.to_pylist()[: 3 - first] == [[{"a": 1, "gone": None, "new": "x"}], None, []][first:]


@pytest.mark.parametrize("at", range(4))
def test_a_wider_type_stays_so_that_the_table_widens_its_column_and_a_narrower_one_becomes_the_tables(at: int) -> None:
    def nested(number: pa.DataType) -> pa.DataType:
        lists = pa.list_(number)
        return (number, pa.struct([("n", number)]), pa.struct([("l", lists)]), pa.map_(pa.string(), lists))[at]

    for narrow, wide in (pa.int32(), pa.int64()), (pa.int8(), pa.int16()), (pa.float32(), pa.float64()):
        assert fitted(nested(wide), nested(narrow)) == fitted(nested(narrow), nested(wide)) == nested(wide)
    for kind, known in (pa.float64(), pa.int64()), (pa.int64(), pa.float64()), (pa.int64(), pa.float32()):
        assert fitted(nested(kind), nested(known)) == nested(known)
    values = [1, {"n": 1}, {"l": [1, None]}, [("a", [1]), ("b", None)]]
    made, unfit = fit(pa.array([values[at], None], nested(pa.int32())), nested(pa.int64()))
    assert made.to_pylist() == [values[at], None] and made.type == nested(pa.int64()) and unfit is None


def test_numbers_of_maps_that_do_not_fit_are_found() -> None:
    column = pa.array([[("a", 1)], None, [], [("a", 1), ("b", 1 << 40)]], pa.map_(pa.string(), pa.int64()))
    for cut in (column, column.slice(1)):
        made, unfit = fit(cut, pa.map_(pa.string(), pa.int32()))
        assert made.to_pylist()[:-1] == cut.to_pylist()[:-1]
        assert unfit.to_pylist() == [False] * (len(cut) - 1) + [True]


def test_records_whose_numbers_do_not_fit_are_rejected() -> None:
    values = JsonValues(columns_of("id BIGINT, o STRUCT<n: DOUBLE>"))
    known = pa.schema([("id", pa.float32()), ("o", pa.struct([("n", pa.int64())])), ("_offset", pa.int64())])
    rows, reasons = decoded(
        TopicDecoder(values, known=known),
        [b'{"id": 1, "o": {"n": 2.0}}', None, b'{"id": 16777217}', b"[", b'{"id": 2, "o": {"n": 0.5}}', b'{"id": 3}'],
    )
    assert rows == [{"id": 1, "o": {"n": 2}}, {"id": None, "o": None}, {"id": 3, "o": None}]
    assert list(reasons) == [2, 3, 4]
    assert reasons[2] == "field id has a number that its column (float) cannot hold exactly"
    assert reasons[4].startswith("field o has a number that its column (struct<n: long>)")


def test_inferred_structs_get_new_fields_and_columns_keep_their_types() -> None:
    known = pa.schema(
        [("id", pa.int64()), ("o", pa.struct([("a", pa.string())])), ("l", pa.list_(pa.struct([("a", pa.int64())])))]
    )
    found = inferred(sample([b'{"o": {"b": 1, "a": 1}, "l": [{"c": true}], "id": 7.0}']), known)
    assert found.columns == pa.schema(
        [
            ("id", pa.int64()),
            ("o", pa.struct([("a", pa.string()), ("b", pa.int64())])),
            ("l", pa.list_(pa.struct([("a", pa.int64()), ("c", pa.bool_())]))),
        ]
    )


def test_an_event_time_may_be_a_field_inside_of_structs() -> None:
    values = [
        {"o": {"at": "2024-02-29T12:00:00Z"}},
        None,
        {"o": None},
        {"o": {"at": "soon"}},
        {"o": {"at": 1709208000}},
    ]
    given_values = [None if one is None else json.dumps(one).encode() for one in values]
    decoder = decoder_of("t", Decoding("json", "o STRUCT<at: STRING>", event_time="o.at"), list)
    assert decoder is not None and decoder.event_time == "_event_time"
    rows, reasons = decoded(decoder, given_values)
    assert [row["_event_time"] for row in rows if row["o"]] == [NOON, NOON]
    assert rows[0]["o"] == {"at": "2024-02-29T12:00:00Z"} and rows[1]["_event_time"] is not None
    assert list(reasons) == [2, 3] and "the event time o.at is missing" in reasons[2]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("o.b", "--event-time o.b: the values have no such field; o has at"),
        ("x.at", "--event-time x.at: the values have no such field; they have o, id"),
        ("id.at", "--event-time id.at: the values have no such field; id has none"),
        ("o", "--event-time o: the field is struct<at: string>, which is neither a time nor a number nor text"),
    ],
)
def test_an_event_time_that_cannot_be_is_a_sentence(path: str, sentence: str) -> None:
    values: Any = JsonValues(columns_of("o STRUCT<at: STRING>, id INT"))
    with pytest.raises(ConfigError, match=sentence):
        TopicDecoder(values, path)
