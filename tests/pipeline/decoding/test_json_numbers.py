"""JSON numbers x column types: stored exactly or rejected, by the rules of `json_numbers`; in bulk and singly alike."""

import datetime
import decimal
import json
import math
import struct
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipeline.decoding.ddl import columns_of
from moldau.pipeline.decoding.json_inference import inferred
from moldau.pipeline.decoding.json_values import JsonValues
from moldau.pipeline.decoding.topic_decoder import TopicDecoder
from tests.pipeline.decoding.fetching import decoded, sample

REJECTED = "rejected"
LEAP_DAY = datetime.datetime(2024, 2, 29, 8, 0, 0, 123456, datetime.UTC)
BEFORE_1970 = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, datetime.UTC)
D = decimal.Decimal
TABLE: list[tuple[str, str, Any]] = [
    ("DECIMAL(20,6)", "12345678901234.123456", D("12345678901234.123456")),
    ("DECIMAL(20,6)", "99999999999999.999999", D("99999999999999.999999")),
    ("DECIMAL(20,6)", "1.50", D("1.500000")),
    ("DECIMAL(20,6)", "1.2345678", REJECTED),
    ("DECIMAL(20,6)", "100000000000000", REJECTED),
    ("DECIMAL(20,6)", "1e-6", D("0.000001")),
    ("DECIMAL(20,6)", "1e999999999999", REJECTED),
    ("DECIMAL(20,6)", "1e99999999999999999999", REJECTED),
    ("DECIMAL(38,0)", "99999999999999999999999999999999999999", D("9" * 38)),
    ("DECIMAL(38,0)", "1" + 38 * "0", REJECTED),
    ("DECIMAL(20,6)", '"12345678901234.123456"', D("12345678901234.123456")),
    ("DECIMAL(20,6)", '"NaN"', REJECTED),
    ("DECIMAL(20,6)", '"Infinity"', REJECTED),
    ("BIGINT", "9007199254740993", 9007199254740993),
    ("BIGINT", "9223372036854775807", 9223372036854775807),
    ("BIGINT", "9223372036854775808", REJECTED),
    ("BIGINT", "7.0", 7),
    ("BIGINT", "-7.000", -7),
    ("BIGINT", "1e2", 100),
    ("BIGINT", "9007199254740993.0", 9007199254740993),
    ("BIGINT", "9.223372036854775807e18", 9223372036854775807),
    ("BIGINT", "9.3e18", REJECTED),
    ("BIGINT", "7.5", REJECTED),
    ("BIGINT", "1e-1", REJECTED),
    ("BIGINT", "1e999999999999", REJECTED),
    ("BIGINT", "9" * 5000, REJECTED),
    ("SMALLINT", "3.2767e4", 32767),
    ("SMALLINT", "32768", REJECTED),
    ("DOUBLE", "9007199254740992", 2.0**53),
    ("DOUBLE", "9007199254740993", REJECTED),
    ("DOUBLE", "-9007199254740993", REJECTED),
    ("DOUBLE", "1152921504606846976", 2.0**60),
    ("DOUBLE", "1152921504606847000", 2.0**60),
    ("DOUBLE", "1152921504606847001", REJECTED),
    ("DOUBLE", "0.1", 0.1),
    ("DOUBLE", "0.10000000000000001", 0.1),
    ("DOUBLE", "48.858370000000000000001", 48.85837),
    ("DOUBLE", "1e23", 1e23),
    ("DOUBLE", "1e400", REJECTED),
    ("DOUBLE", "-1e400", REJECTED),
    ("DOUBLE", "1e-400", REJECTED),
    ("DOUBLE", "0." + "0" * 400 + "1", REJECTED),
    ("DOUBLE", "5e-324", 5e-324),
    ("DOUBLE", "0e-400", 0.0),
    ("DOUBLE", "-0.0", -0.0),
    ("DOUBLE", "9" * 400, REJECTED),
    ("DOUBLE", "9" * 5000, REJECTED),
    ("FLOAT", "16777216", 16777216.0),
    ("FLOAT", "16777217", REJECTED),
    ("FLOAT", "1152921500000000000", 2.0**60),
    ("FLOAT", "0.1", struct.unpack("f", struct.pack("f", 0.1))[0]),
    ("FLOAT", "1e39", REJECTED),
    ("FLOAT", "1e-50", REJECTED),
    ("STRING", "12345678901234.1234560", "12345678901234.1234560"),
    ("STRING", "1e400", "1e400"),
    ("STRING", '{"a": [1.50, 12345678901234567890, "x"]}', '{"a":[1.50,12345678901234567890,"x"]}'),
    ("STRING", "9" * 5000, "9" * 5000),
    ("TIMESTAMP", "1709193600.123456", LEAP_DAY),
    ("TIMESTAMP", "1709193600123456789", LEAP_DAY),
    ("TIMESTAMP", '"1709193600.123456"', LEAP_DAY),
    ("TIMESTAMP", '"2024-02-29T08:00:00.1234567Z"', LEAP_DAY),
    ("TIMESTAMP", '"2024-02-29T08:00:00.123456999Z"', LEAP_DAY),
    ("TIMESTAMP", '"1969-12-31T23:59:59.999999999Z"', BEFORE_1970),
    ("TIMESTAMP", "-0.0000001", BEFORE_1970),
    ("TIMESTAMP", "1e999999999999", REJECTED),
    *((kind, text, REJECTED) for kind in ("DOUBLE", "BIGINT", "STRING") for text in ("NaN", "Infinity", "-Infinity")),
]  # fmt: skip
IDS = [f"{kind} {text[:24]}" for kind, text, _ in TABLE]
PLACES = {
    "x {}": '{{"x": {}}}',
    "x STRUCT<a: ARRAY<STRUCT<b: {}>>>": '{{"x": {{"a": [{{"b": {}}}]}}}}',
}


def within(value: Any) -> Any:
    """The value at the one leaf."""
    while isinstance(value, dict | list):
        [value] = value.values() if isinstance(value, dict) else value
    return value


@pytest.mark.parametrize("place", PLACES, ids=["column", "nested"])
@pytest.mark.parametrize(("kind", "text", "expected"), TABLE, ids=IDS)
def test_a_number_is_stored_exactly_or_rejected(kind: str, text: str, expected: Any, place: str) -> None:
    value = PLACES[place].format(text).encode()
    for count in (1, 40):
        rows, reasons = decoded(TopicDecoder(JsonValues(columns_of(place.format(kind)))), [value] * count)
        assert len(rows) + len(reasons) == count
        if expected is REJECTED:
            assert rows == [] and len(reasons[0]) < 500
        else:
            assert [within(row) for row in rows] == [expected] * count and type(within(rows[0])) is type(expected)
            assert expected != 0 or str(within(rows[0])) == str(expected), "the sign of zero"


def test_a_number_that_is_not_json_rejects_its_record_in_a_field_without_a_column_too() -> None:
    values = [b'{"a": 1, "b": NaN}', b'{"a": 2, "b": "NaN"}', b'{"a": 3, "b": [-Infinity]}', b'{"a": 4}'] * 20
    rows, reasons = decoded(TopicDecoder(JsonValues(columns_of("a INT"))), values)
    assert [row["a"] for row in rows] == [2, 4] * 20
    assert reasons[0] == "the value is not JSON: NaN is not a number of JSON"


def test_what_has_no_column_keeps_the_digits_that_it_came_with() -> None:
    decoder = TopicDecoder(JsonValues(columns_of("a INT"), keeps_rest=True))
    rows, _ = decoded(decoder, [b'{"a": 1, "d": {"e": [12345678901234.1234560, 1e400], "f": "\xc5\xbe"}}'])
    assert rows == [{"a": 1, "_more": '{"d":{"e":[12345678901234.1234560,1e400],"f":"ž"}}'}]


def test_whole_numbers_that_no_double_has_become_text_beside_fractions() -> None:
    def columns(*values: bytes) -> pa.Schema:
        return inferred(sample(values)).columns

    assert columns(b'{"a": 9007199254740993}', b'{"a": 1.5}').field("a").type == pa.string()
    assert columns(b'{"a": 9007199254740993}', b'{"a": 1}').field("a").type == pa.int64()
    assert columns(b'{"a": 9007199254740992}', b'{"a": 1.5}').field("a").type == pa.float64()
    assert columns(b'{"a": NaN}', b'{"b": 1}').names == ["b"]


def literal(parts: tuple[int, int | None, int | None]) -> str:
    whole, fraction, exponent = parts
    return f"{whole}{'' if fraction is None else f'.{fraction}'}{'' if exponent is None else f'e{exponent:+}'}"


WHOLE = st.integers(-(10**24), 10**24) | st.integers(-20_000_000, 20_000_000)
LITERAL = st.tuples(WHOLE, st.none() | st.integers(0, 10**24), st.none() | st.integers(-350, 350)).map(literal)


@given(st.lists(LITERAL, min_size=17, max_size=20))
def test_numbers_in_bulk_and_one_by_one_are_the_same_and_none_loses_its_value(literals: list[str]) -> None:
    schema = columns_of("l BIGINT, d DOUBLE, f FLOAT")
    singly = JsonValues(schema)
    singly._bulk.possible = False
    for name in schema.names:
        values = [f'{{"{name}": {one}}}'.encode() for one in literals]
        rows, reasons = decoded(TopicDecoder(JsonValues(schema)), values)
        assert (rows, reasons) == decoded(TopicDecoder(singly), values)
        there = [one for at, one in enumerate(literals) if at not in reasons]
        for literal, row in zip(there, rows, strict=True):
            exact = D(literal)
            if name == "l":
                assert D(row["l"]) == exact
            else:
                assert math.isfinite(row[name]) and (row[name] == 0) == (exact == 0)
                assert math.isclose(row[name], float(literal), rel_tol=1e-7, abs_tol=1e-44)


def test_readers_find_the_numbers_that_were_produced(tmp_path: Path) -> None:
    schema = columns_of("d DECIMAL(20,6), l BIGINT, x DOUBLE, f FLOAT")
    value = b'{"d": 12345678901234.123456, "l": 9007199254740993, "x": 0.1, "f": 16777216}'
    found = JsonValues(schema).found(pa.array([value], pa.binary()))
    write_deltalake(tmp_path, pa.Table.from_arrays(found.columns, schema=schema))
    expected = (D("12345678901234.123456"), 9007199254740993, 0.1, 16777216.0)
    lake = DeltaTable(tmp_path).to_pyarrow_dataset()
    assert duckdb.sql("SELECT * FROM lake").fetchall() == [expected]
    assert polars.read_delta(str(tmp_path)).rows() == [expected]
    assert tuple(lake.to_table().to_pylist()[0].values()) == expected
    assert json.loads(value)["d"] != expected[0], "as a double it is another amount"


def test_spark_finds_the_numbers_that_were_produced(spark: Any, tmp_path: Path) -> None:
    stored = [(kind, text, value) for kind, text, value in TABLE if value is not REJECTED and kind != "TIMESTAMP"]
    schema = columns_of(", ".join(f"c{at} {kind}" for at, (kind, _, _) in enumerate(stored)))
    value = "{" + ", ".join(f'"c{at}": {text}' for at, (_, text, _) in enumerate(stored)) + "}"
    made = JsonValues(schema).found(pa.array([value.encode()], pa.binary()))
    assert not made.bad
    write_deltalake(tmp_path, pa.Table.from_arrays(made.columns, schema=schema))
    [row] = spark.read.parquet(*DeltaTable(tmp_path).file_uris()).collect()
    assert list(row) == [value for _, _, value in stored]
