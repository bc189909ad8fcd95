"""The columns of JSON objects, inferred from a sample and merged with those that a table has.

Whole numbers and others together are doubles, if doubles have these whole numbers; other types that disagree, numbers
above 64 bits, empty objects and what
nests deeper than `DEPTH_MAX` become text, which holds JSON. A field that is null in the whole sample has no column yet.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from moldau.errors import ConfigError
from moldau.pipeline.decoding.json_numbers import Number, floating, loads

DEPTH_MAX = 10
FIELDS_MAX = 1_000
INT64 = range(-(1 << 63), 1 << 63)


def inferred(sample: Iterable[bytes], known: pa.Schema | None = None) -> pa.Schema:
    """The columns of the objects in these values; those of `known` come first and keep their types. Values that are
    not JSON objects are passed over. Raises `ConfigError` for more than `FIELDS_MAX` fields."""
    found: dict[str, Any] = {}
    for value in sample:
        try:
            tree = loads(value.decode())
        except (ValueError, RecursionError):
            continue
        if isinstance(tree, dict):
            for name, one in tree.items():
                if _is_text(name):
                    found[name] = _merged(found.get(name), _type_of(one, 0))
    if len(found) > FIELDS_MAX:
        raise ConfigError(f"the sample of values has {len(found)} fields, more than {FIELDS_MAX}: give --schema")
    fields = list(known or ())
    there = {field.name for field in fields}
    for name, kind in found.items():
        if name not in there:
            arrow = _arrow(kind)
            if arrow is not None:
                fields.append(pa.field(name, arrow))
    return pa.schema(fields)


def _type_of(value: Any, depth: int) -> Any:
    """None, the name of a type, a list with the items' type, or a dict with the fields' types."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return ("int" if _has_double(value) else "long") if value in INT64 else "json"
    if isinstance(value, Number):
        return "float"
    if isinstance(value, str):
        return "text"
    if depth >= DEPTH_MAX:
        return "json"
    if isinstance(value, list):
        items: Any = None
        for one in value:
            items = _merged(items, _type_of(one, depth + 1))
        return [items]
    if len(value) > FIELDS_MAX or not all(map(_is_text, value)):
        return "json"
    return {name: _type_of(one, depth + 1) for name, one in value.items()}


def _merged(one: Any, other: Any) -> Any:
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        both = {name: _merged(one.get(name), other.get(name)) for name in {**one, **other}}
        return both if len(both) <= FIELDS_MAX else "json"
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(one[0], other[0])]
    return {frozenset(("int", "float")): "float", frozenset(("int", "long")): "long"}.get(
        frozenset((str(one), str(other))), "json"
    )


def _arrow(kind: Any) -> pa.DataType | None:
    """Arrow's type; None if only nulls were seen."""
    if kind is None:
        return None
    if isinstance(kind, list):
        return pa.list_(_arrow(kind[0]) or pa.string())
    if isinstance(kind, dict):
        below = [(name, _arrow(one)) for name, one in kind.items()]
        fields = [(name, one) for name, one in below if one is not None]
        return pa.struct(fields) if fields else pa.string()
    return {"bool": pa.bool_(), "int": pa.int64(), "long": pa.int64(), "float": pa.float64()}.get(kind, pa.string())


def _has_double(value: int) -> bool:
    try:
        floating(value, 64)
    except ValueError:
        return False
    return True


def _is_text(name: str) -> bool:
    """Whether the name is Unicode, without halves of surrogates."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)
