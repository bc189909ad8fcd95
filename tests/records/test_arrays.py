"""Columns that are built from buffers are those that pyarrow makes of the same Python values."""

import random
from typing import Any

import pyarrow as pa
import pytest

from moldau.records import arrays
from moldau.records.arrow import HEADERS

CONTENTS: list[list[bytes | None]] = [
    [],
    [None],
    [b""],
    [b"a", None, b"", b"\x00\xff" * 40],
    [None] * 9,
    [bytes([number]) * number if number % 3 else None for number in range(70)],
]


def same(made: pa.Array, expected: pa.Array) -> None:
    made.validate(full=True)
    assert made.equals(expected) and made.type == expected.type and made.null_count == expected.null_count


@pytest.mark.parametrize("values", CONTENTS, ids=len)
def test_byte_strings_and_text(values: list[bytes | None]) -> None:
    same(arrays.binaries(values), pa.array(values, pa.binary()))
    text = [None if value is None else value.decode("latin-1") for value in values]
    same(arrays.texts(text), pa.array(text, pa.string()))


def test_values_that_are_no_bytes_are_refused() -> None:
    for values in (["text"], [5], [1.5]):
        with pytest.raises(TypeError):
            arrays.binaries(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
def test_integers(kind: pa.DataType) -> None:
    extreme = 1 << (kind.bit_width - 1)
    for values in ([], [0], [-1, extreme - 1, -extreme, 7]):
        same(arrays.integers(values, kind), pa.array(values, kind))
    for count in (0, 1, 1000):
        same(arrays.filled(-7, kind, count), pa.array([-7] * count, kind))
    with pytest.raises(OverflowError):
        arrays.integers([extreme], kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("t", pa.string()), ("a topic's name", pa.string()), ("", pa.string()), (3, pa.int32()), (-(2**40), pa.int64())],
    ids=repr,
)
def test_columns_of_equal_values_of_every_length(
    value: Any, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "REPEATED_MAX", 100)
    for count in (0, 1, 2, 3, 63, 64, 65, 100, 1000):
        same(arrays.repeated(value, kind, count), pa.array([value] * count, kind))


def test_a_short_column_of_equal_values_is_a_slice_of_one_that_is_kept() -> None:
    first, second = (arrays.repeated("rivers", pa.string(), count) for count in (1000, 1023))
    assert first.buffers()[2].address == second.buffers()[2].address


def test_headers() -> None:
    chance = random.Random(7)
    contents = [None, b"", b"v"]
    rows: list[list[tuple[str, bytes | None]] | None] = [
        None if chance.random() < 0.2 else [(f"n{at}", chance.choice(contents)) for at in range(chance.randrange(4))]
        for _ in range(100)
    ]
    for part in (rows, rows[:0], [None], [[]]):
        expected = [None if row is None else [{"key": name, "value": value} for name, value in row] for row in part]
        same(arrays.pairs(part, HEADERS), pa.array(expected, HEADERS))
    assert arrays.pairs([[("n", "é")]], HEADERS).to_pylist() == [[{"key": "n", "value": "é".encode()}]]
