"""The columns of JSON objects, inferred from a sample of them beside the columns that a table has. Pure.

Only records that pass count. A record without an event time, or that does not fit the table's columns, says nothing.

A new field has the type that takes the values of all records. Whole numbers are a long, with others a double. If no
type takes them all, one that takes at least `type_share` of the records with that field wins, and the other records are
rejected by the load; otherwise the field is text, which holds JSON. All records that are rejected for new fields are at
most the share that is left of the sample, the fields with the fewest first. Records that lose say nothing, either: the
rest is looked at again, `ROUNDS` times at most, the last time without losers. So the result depends on nothing but the
sample.

A field that is null in all records has no column yet.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from moldau.errors import ConfigError
from moldau.pipeline.decoding.event_times import us_of
from moldau.pipeline.decoding.json_coercion import Coerce, NotCoercible, coercion
from moldau.pipeline.decoding.json_fields import (
    Disagreement,
    Field,
    Occurrences,
    Sampled,
    decided,
    disagreements,
    path_text,
)
from moldau.pipeline.decoding.json_numbers import Number, dumps, loads
from moldau.pipeline.decoding.json_shapes import FIELDS_MAX, Shape, decides, shape_of, size, takes
from moldau.pipeline.decoding.known_columns import MORE, columns_of_fields, decoded_columns, evolved

TYPE_SHARE: Final = 0.99
ROUNDS: Final = 3
PLACES_MAX: Final = 2_000_000
"""A sample ends when its different shapes have this many places: 200 MB."""


class Inferred(NamedTuple):
    """The columns, by the names of their fields, of `objects` JSON objects, `passing` of which pass; `notes` has a
    sentence for each new field whose values disagree."""

    columns: pa.Schema
    notes: tuple[str, ...]
    objects: int
    passing: int


def inferred(
    sample: Iterable[Sampled],
    known: pa.Schema | None = None,
    event_time: str = "",
    type_share: float = TYPE_SHARE,
) -> Inferred:
    """The columns of the objects in a sample; those of a table, `known`, come first. `event_time` is the field with it,
    or its path. Raises `ConfigError` for more than `FIELDS_MAX` fields."""
    objects, dated = _shapes(sample, event_time, _checks(known or pa.schema([]), event_time))
    there = columns_of_fields(
        dict.fromkeys(name for shape in dated for name, _ in shape.fields), known or pa.schema([])
    )
    types = {
        name: known.field(column).type for name, column in there.items() if known is not None and name != event_time
    }
    passing = {
        shape: seen
        for shape, seen in dated.items()
        if all(takes(types[name], one) for name, one in shape.fields if name in types)
    }
    count = sum(seen.records for seen in passing.values())
    left, notes, columns = (1 - type_share) * count, [], pa.schema([])
    there_already = [column.name for column in decoded_columns(known or pa.schema([]))]
    for number in range(ROUNDS):
        root = Field.of(passing)
        disputes = disagreements(root, types, event_time, type_share if number < ROUNDS - 1 else 1, left)
        columns = pa.schema(decided(root, types, {one.path for one in disputes if one.wins}, there_already))
        if len(columns) > FIELDS_MAX:
            raise ConfigError(f"the sample of values has {len(columns)} fields, more than {FIELDS_MAX}: give --schema")
        fitting = {shape: seen for shape, seen in passing.items() if takes(pa.struct(list(columns)), shape)}
        lost = sum(seen.records for seen in passing.values()) - sum(seen.records for seen in fitting.values())
        notes += [_sentence(one) for one in disputes if one.wins or not lost]
        if not lost:
            break
        passing, left = fitting, max(0.0, left - lost)
    whole = columns if known is None else evolved(known, columns, there)
    return Inferred(whole, tuple(notes), objects, count)


def _checks(known: pa.Schema, event_time: str) -> dict[str, Coerce]:
    """How to find out whether fields fit the columns of their names whose type a shape does not decide."""
    there = [column for column in decoded_columns(known) if column.name != event_time]
    return {column.name: coercion(column.type) for column in there if not decides(column.type)}


def _shapes(
    sample: Iterable[Sampled], event_time: str, checks: Mapping[str, Coerce]
) -> tuple[int, dict[Shape, Occurrences]]:
    """The number of objects, and the shapes of those that pass the checks and have an event time, in the order of their
    first records. Values that are not JSON objects in Unicode are passed over."""
    counts: dict[Shape, int] = {}
    first: dict[Shape, Sampled] = {}
    objects = places = 0
    for one in sample:
        tree = _object(one.value)
        if tree is None:
            continue
        objects += 1
        if (event_time and _time(tree, event_time) is None) or not _fits(tree, checks):
            continue
        tree.pop(MORE, None)  # it stays in the column of that name
        shape = shape_of(tree)
        if shape in counts:
            counts[shape] += 1
            continue
        counts[shape], first[shape] = 1, one
        places += size(shape)
        if places > PLACES_MAX:
            break
    return objects, {shape: Occurrences(count, first[shape]) for shape, count in counts.items()}


def _object(value: bytes) -> dict[str, Any] | None:
    """The JSON object in these bytes; None if there is none that a load would take."""
    try:
        tree = loads(value.decode())
        if isinstance(tree, dict) and b"\\u" in value:
            dumps(tree).encode()  # halves of surrogates are no Unicode
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


def _fits(tree: dict[str, Any], checks: Mapping[str, Coerce]) -> bool:
    try:
        for name, coerce in checks.items():
            coerce(tree.get(name), name, None)
    except NotCoercible:
        return False
    return True


def _time(tree: dict[str, Any], field: str) -> int | None:
    """The event time in us since 1970; None if there is none."""
    value: Any = tree
    for name in [field] if field in tree else field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    try:
        return us_of(value.value if isinstance(value, Number) else value)
    except ArithmeticError:
        return None


def _sentence(one: Disagreement) -> str:
    name, place = path_text(one.path), f"partition {one.odd.partition} offset {one.odd.offset}"
    has = " and ".join(sorted(one.odd_kinds))
    if one.wins:
        return (
            f"field {name} becomes {one.best.kind}, which {one.best.records:,} of {one.total:,} sampled records have; "
            f"the others are rejected, the first of them ({place}) has {has}"
        )
    counts = ", ".join(f"{kind} in {count:,}" for kind, count in sorted(one.kinds.items()))
    return (
        f"field {name} becomes string, because {one.total:,} sampled records disagree ({counts}); "
        f"{place} has {has}: give --schema for another type"
    )
