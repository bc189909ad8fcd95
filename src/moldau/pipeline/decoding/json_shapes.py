"""The shape of a JSON object: which kinds of values it has at each field, without the values. Pure.

A kind is one of `KINDS`. An array has one shape for all of its items, with every kind that one of them has; a null has
no kind. Records with the same fields have equal shapes, so a sample of many records has few.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import pyarrow as pa

from moldau.pipeline.decoding.json_numbers import Number, floating, whole

DEPTH_MAX: Final = 10
FIELDS_MAX: Final = 1_000
DOUBLE_WHOLE_MAX: Final = 1 << 53
"""Doubles have every whole number up to it."""
BOOLEAN, TEXT, OBJECT, ARRAY, OTHER = "true or false", "text", "objects", "arrays", "values of no one type"
SMALL, LARGE, WHOLE, FRACTION, NUMBER = (
    "whole numbers", "whole numbers that no double has", "whole numbers with a point or an exponent",
    "numbers with a fraction", "numbers that neither a long nor a double has",
)  # fmt: skip
KINDS: Final = (BOOLEAN, SMALL, LARGE, WHOLE, FRACTION, NUMBER, TEXT, OBJECT, ARRAY, OTHER)
"""By the words that sentences use. `OTHER` nests too deeply or has too many fields: only text takes it."""
LONGS: Final = frozenset((SMALL, LARGE, WHOLE))
DOUBLES: Final = frozenset((SMALL, WHOLE, FRACTION))
NUMBERS: Final = frozenset((SMALL, LARGE, WHOLE, FRACTION, NUMBER))


class Shape(NamedTuple):
    """The kinds at a place, the shapes of an object's fields in their order, and that of an array's items."""

    kinds: frozenset[str] = frozenset()
    fields: tuple[tuple[str, "Shape"], ...] = ()
    items: "Shape | None" = None


NULL: Final = Shape()
_PLAIN: Final = {kind: Shape(frozenset((kind,))) for kind in KINDS}


def shape_of(value: Any, depth: int = 0) -> Shape:
    """The shape of what `json_numbers.loads` returned; `depth` is the number of objects and arrays around it."""
    if value is None:
        return NULL
    if isinstance(value, str):
        return _PLAIN[TEXT]
    if isinstance(value, bool):
        return _PLAIN[BOOLEAN]
    if isinstance(value, (int, Number)):
        return _PLAIN[_number(value)]
    if depth > DEPTH_MAX or (isinstance(value, dict) and len(value) > FIELDS_MAX and depth):
        return _PLAIN[OTHER]
    if isinstance(value, list):
        return Shape(_PLAIN[ARRAY].kinds, (), _merged(shape_of(one, depth + 1) for one in value))
    fields = tuple((name, shape_of(one, depth + 1)) for name, one in value.items())
    return Shape(_PLAIN[OBJECT].kinds, fields)


def size(shape: Shape) -> int:
    """The number of places in a shape."""
    below = sum(size(one) for _, one in shape.fields)
    return 1 + below + (size(shape.items) if shape.items is not None else 0)


def takes(kind: pa.DataType, shape: Shape) -> bool:
    """Whether a column of this type takes values of a shape. Of what depends on the value (is the text a date, is the
    number small enough for an INT) it is assumed."""
    types = pa.types
    if not shape.kinds or types.is_string(kind):
        return True
    if types.is_struct(kind):
        known = {field.name: field.type for field in kind}
        return shape.kinds <= {OBJECT} and all(takes(known[name], one) for name, one in shape.fields if name in known)
    if types.is_list(kind):
        return shape.kinds <= {ARRAY} and (shape.items is None or takes(kind.value_type, shape.items))
    if types.is_map(kind):
        return shape.kinds <= {OBJECT} and all(takes(kind.item_type, one) for _, one in shape.fields)
    return shape.kinds <= _scalars(kind)


def decides(kind: pa.DataType) -> bool:
    """Whether `takes` says exactly what a column of this type takes."""
    types = pa.types
    if types.is_struct(kind):
        return all(decides(field.type) for field in kind)
    if types.is_list(kind):
        return decides(kind.value_type)
    if types.is_map(kind):
        return decides(kind.item_type)
    exact = (pa.bool_(), pa.int64(), pa.float64(), pa.string())
    return kind in exact


def _scalars(kind: pa.DataType) -> frozenset[str]:
    types = pa.types
    if types.is_boolean(kind):
        return frozenset((BOOLEAN,))
    if types.is_integer(kind):
        return LONGS
    if types.is_floating(kind):
        return DOUBLES
    return NUMBERS | {TEXT} if types.is_timestamp(kind) or types.is_decimal(kind) else frozenset((TEXT,))


def _number(value: Any) -> str:
    if isinstance(value, int) and -DOUBLE_WHOLE_MAX <= value <= DOUBLE_WHOLE_MAX:
        return SMALL
    try:
        whole(value, 63)
        is_whole = True
    except (ValueError, TypeError, ArithmeticError):
        is_whole = False
    try:
        floating(value, 64)
    except (ValueError, TypeError, ArithmeticError):
        return LARGE if is_whole else NUMBER
    if is_whole:
        return SMALL if isinstance(value, int) else WHOLE
    return FRACTION if isinstance(value, Number) else NUMBER


def _merged(shapes: Iterable[Shape]) -> Shape | None:
    """One shape for all of these; None for none."""
    different = list(dict.fromkeys(shapes))
    if len(different) < 2:
        return different[0] if different else None
    fields: dict[str, list[Shape]] = {}
    for shape in different:
        for name, one in shape.fields:
            fields.setdefault(name, []).append(one)
    return Shape(
        frozenset().union(*(shape.kinds for shape in different)),
        tuple((name, _merged(ones) or NULL) for name, ones in fields.items()),
        _merged(shape.items for shape in different if shape.items is not None),
    )
