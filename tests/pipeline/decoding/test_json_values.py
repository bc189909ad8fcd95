"""JSON as columns: in bulk and singly alike, whatever the bytes are."""

import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipeline.decoding import json_values
from moldau.pipeline.decoding.ddl import columns_of
from moldau.pipeline.decoding.json_inference import inferred
from moldau.pipeline.decoding.json_values import JsonValues
from moldau.pipeline.decoding.topic_decoder import TopicDecoder
from tests.pipeline.decoding.fetching import decoded, sample

EVENT = columns_of("id BIGINT, name STRING, score DOUBLE, ok BOOLEAN, tags ARRAY<STRING>, geo STRUCT<lat: DOUBLE>")
GOOD = [b'{"id": 1, "name": "a", "score": 1.5, "ok": true, "tags": ["x", null], "geo": {"lat": 2.0}}'] * 40
ROW = {"id": 1, "name": "a", "score": 1.5, "ok": True, "tags": ["x", None], "geo": {"lat": 2.0}}


def test_objects_become_rows_and_what_is_missing_is_null() -> None:
    rows, reasons = decoded(TopicDecoder(JsonValues(EVENT)), [*GOOD, b"{}", b'{"id": null, "other": [1]}'])
    assert rows == [ROW] * 40 + [dict.fromkeys(ROW)] * 2 and not reasons


def test_a_record_without_a_value_is_a_row_of_nulls_at_its_place() -> None:
    rows, reasons = decoded(TopicDecoder(JsonValues(EVENT)), [None, *GOOD, None, b"[", None])
    assert rows == [dict.fromkeys(ROW), *([ROW] * 40), dict.fromkeys(ROW), dict.fromkeys(ROW)] and list(reasons) == [42]
    assert decoded(TopicDecoder(JsonValues(EVENT)), [None])[0] == [dict.fromkeys(ROW)]
    assert decoded(TopicDecoder(JsonValues(EVENT)), []) == ([], {})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "is not JSON"), (b"{", "is not JSON"), (b"nonsense", "is not JSON"), (b'{"id":1}{"id":2}', "is not JSON"),
        (b'{"id":1}\n{"id":2}', "is not JSON"), (b'{"id":1},"v":{"id":2}', "is not JSON"),
        (b"[" * 300_000, "nests too deeply"), (b'{"zz":' * 300_000, "nests too deeply"),
        (b'{"geo":' + b'{"lat":' * 300_000, "nests too deeply"),
        (b"null", "not a JSON object"), (b"[1]", "not a JSON object"), (b'"text"', "not a JSON object"),
        (b'{"name": "\xff"}', "is not UTF-8: invalid start byte at byte 10"), (b'{"name": "\\ud800"}', "field name is"),
        (b'{"id": 1.5}', "field id is the number 1.5, not a whole number of 64 bits"),
        (b'{"id": "1"}', 'field id is the text "1", not a whole'),
        (b'{"id": 9223372036854775808}', "not a whole number"),
        (b'{"ok": 1}', "field ok is the number 1, not true or false"),
        (b'{"tags": "x"}', 'field tags is the text "x", not an array'),
        (b'{"geo": {"lat": "x"}}', 'field geo.lat is the text "x", not a number'),
        (b'{"geo": []}', "field geo is the array [], not an object"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_decoded_says_why_and_leaves_its_neighbours(value: bytes, reason: str) -> None:
    rows, reasons = decoded(TopicDecoder(JsonValues(EVENT)), [*GOOD, value, *GOOD])
    assert rows == [ROW] * 80 and list(reasons) == [40] and reason in reasons[40]


def test_two_values_cannot_make_up_for_each_other() -> None:
    values = [*GOOD, b'{"id":1}{"id":2}', b'{"id":3', b"}", *GOOD]
    rows, reasons = decoded(TopicDecoder(JsonValues(EVENT)), values)
    assert len(rows) == 80 and list(reasons) == [40, 41, 42]


def test_text_takes_any_value_as_json() -> None:
    rows, _ = decoded(
        TopicDecoder(JsonValues(columns_of("a STRING"))), [b'{"a": 1}', b'{"a": {"b": ["\xc5\xbe"]}}'] * 20
    )
    assert rows == [{"a": "1"}, {"a": '{"b":["ž"]}'}] * 20


def test_types_that_json_does_not_have_are_made_of_text_and_numbers() -> None:
    schema = columns_of("t TIMESTAMP, d DATE, n DECIMAL(6,2), b BINARY, m MAP<STRING,INT>")
    value = {"t": "2024-02-29T10:00:00+02:00", "d": "2024-02-29", "n": 1.25, "b": "AAE=", "m": {"x": 1}}
    values = [json.dumps({**value, **other}).encode() for other in ({}, {"t": 1709193600}, {"n": 1.255}, {"d": "2024"})]
    rows, reasons = decoded(TopicDecoder(JsonValues(schema)), values)
    day = datetime.datetime(2024, 2, 29, 8, tzinfo=datetime.UTC)
    row = {"t": day, "d": day.date(), "n": decimal.Decimal("1.25"), "b": b"\0\1", "m": [("x", 1)]}
    assert rows == [row, row] and list(reasons) == [2, 3]
    plain = TopicDecoder(JsonValues(columns_of("t TIMESTAMP, d DATE")))
    assert [one["t"] for one in decoded(plain, [values[0]] * 40)[0]] == [day] * 40


def test_fields_that_an_inferred_schema_lacks_are_kept_as_json() -> None:
    values = [b'{"a": 1, "geo": {"x": 1}}'] * 40
    decoder = TopicDecoder(JsonValues(inferred(sample(values)).columns, keeps_rest=True))
    rows, _ = decoded(decoder, [*values, b'{"a": 2, "new": [1], "geo": {"y": 2}, "gone": null}'])
    assert rows[39] == {"a": 1, "geo": {"x": 1}, "_more": None}
    assert rows[40] == {"a": 2, "geo": {"x": None}, "_more": '{"geo":{"y":2},"new":[1]}'}


def test_framed_values_lose_their_frame_and_others_are_rejected() -> None:
    decoder = TopicDecoder(JsonValues(columns_of("a INT"), framed=True))
    rows, reasons = decoded(decoder, [b'\0\0\0\0\1{"a": 1}', b'{"a": 2}', b"\0\0", b"\0\0\0\0\1", b""] * 10)
    assert rows == [{"a": 1}] * 10 and len(reasons) == 40
    assert reasons[1] == "the value does not begin with the byte 0 and a schema id" and "is not JSON" in reasons[3]


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NAME = TEXT.map(lambda text: text.lower().replace(".", "").replace("\0", ""))
"""Names of fields that can all stand beside each other; those of the others are in `test_struct_names.py`."""
NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
ANY = st.recursive(
    st.none() | st.booleans() | NUMBER | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAME, below, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c", "d e", "_key"]), ANY, max_size=4), max_size=40)
EVENTS = st.fixed_dictionaries(
    {}, optional={"id": NUMBER, "name": TEXT, "score": st.floats(allow_nan=False, allow_infinity=False),
                  "ok": st.booleans(), "tags": st.lists(st.none() | TEXT, max_size=3),
                  "geo": st.none() | st.fixed_dictionaries({"lat": st.floats(-9, 9)})},
)  # fmt: skip


@given(st.lists(EVENTS, max_size=60))
def test_what_json_writes_comes_back_as_the_same_columns(events: list[dict[str, Any]]) -> None:
    rows, reasons = decoded(TopicDecoder(JsonValues(EVENT)), [json.dumps(event).encode() for event in events])
    assert rows == [{**dict.fromkeys(ROW), **event} for event in events] and not reasons


@given(OBJECTS)
def test_every_object_fits_the_columns_that_were_inferred_from_it(objects: list[dict[str, Any]]) -> None:
    values = [json.dumps(one, ensure_ascii=False).encode() for one in objects]
    schema = inferred(sample(values)).columns
    decoder = TopicDecoder(JsonValues(schema, keeps_rest=True))
    rows, reasons = decoded(decoder, values)
    assert not reasons
    for row, one in zip(rows, objects, strict=True):
        assert row["_more"] is None
        for at, name in enumerate(schema.names):
            assert (row[decoder.schema.names[at]] is None) == (one.get(name) is None)


@given(st.lists(st.binary(max_size=30) | OBJECTS.map(lambda one: json.dumps(one[:1])[1:-1].encode()), max_size=50))
def test_records_in_bulk_and_one_by_one_are_decoded_alike(values: list[bytes]) -> None:
    singly = JsonValues(EVENT, keeps_rest=True)
    singly._bulk.possible = False
    bulk = decoded(TopicDecoder(JsonValues(EVENT, keeps_rest=True)), [*values, *GOOD])
    assert bulk == decoded(TopicDecoder(singly), [*values, *GOOD])


def test_good_records_are_decoded_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values._Rows, "add", lambda self, value: pytest.fail("one by one"))
    assert len(decoded(TopicDecoder(JsonValues(EVENT)), GOOD * 10)[0]) == 400


ODD = [
    b"{", b"", b"null", b"[]", b'{"id": "x"}', b'{"id": 1.0}', b'{"id": 1e3}', b'{"id": 92233720368547758070}',
    b'{"name": "\xff"}', b'{"name": "\\ud800"}', b'{"geo": {"lat": 1, "long": 2}}', b'{"new": null}', b'{"new": {}}',
    b'{"new": [1]}', b'{"new": "x", "id": 7}', b'{"id": 1}{"id": 2}', b'{"tags": ["a", 1]}', b'{"tags": ["} {"]}',
    b'{"at": "soon"}', b'{"at": 1}', b'{"day": "2024-02-30"}', b'{"day": "20240229"}', b'{"few": 40000}',
    b'{"all": [1, 2.5]}', b'{"all": [1, 2]}', b'{"many": [{"n": 1, "more": 2}]}',
]  # fmt: skip
WIDE = columns_of(
    "id BIGINT, name STRING, tags ARRAY<STRING>, geo STRUCT<lat: DOUBLE>, at TIMESTAMP, day DATE, few SMALLINT,"
    " all ARRAY<INT>, many ARRAY<STRUCT<n: INT>>"
)


@given(st.lists(st.sampled_from([*ODD, GOOD[0]]), max_size=120), st.booleans())
def test_odd_values_are_decoded_as_if_they_were_alone(values: list[bytes], keeps_rest: bool) -> None:
    singly = JsonValues(WIDE, keeps_rest=keeps_rest)
    singly._bulk.possible = False
    assert decoded(TopicDecoder(JsonValues(WIDE, keeps_rest=keeps_rest)), values) == decoded(
        TopicDecoder(singly), values
    )


@pytest.mark.parametrize("odd", [one for one in ODD if one not in (b'{"tags": ["} {"]}', b'{"new": null}')])
def test_the_neighbours_of_an_odd_value_are_decoded_in_bulk(odd: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[bytes] = []
    add = json_values._Rows.add
    monkeypatch.setattr(json_values._Rows, "add", lambda self, value: alone.append(value) or add(self, value))
    values = ([b'{"id": 1, "at": "2024-02-29T12:00:00Z", "few": 1, "all": [1]}'] * 99 + [odd]) * 20
    decoded(TopicDecoder(JsonValues(WIDE, keeps_rest=True)), values)
    assert set(alone) <= {odd}


def test_a_schema_without_columns_has_rows() -> None:
    decoder = TopicDecoder(JsonValues(pa.schema([]), keeps_rest=True))
    assert decoded(decoder, [b"{}", b'{"a":1}'])[0] == [{"_more": None}, {"_more": '{"a":1}'}]
