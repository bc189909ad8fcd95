"""What a sample of JSON objects says about each field: how many records have which kinds, and the type they decide.

Records are counted, not values: a record whose array has one item of another kind is one record that disagrees. Pure.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from moldau.pipeline.decoding.json_shapes import (
    ARRAY,
    BOOLEAN,
    DOUBLES,
    FIELDS_MAX,
    FRACTION,
    LONGS,
    OBJECT,
    TEXT,
    WHOLE,
    Shape,
)
from moldau.pipeline.decoding.struct_names import apart

ITEM: Final = "[]"
"""The items of an array, as a step of a path."""
ROUNDING: Final = 1e-9
Path = tuple[str, ...]
KnownTypes = Mapping[str, pa.DataType]
"""The types of fields that have a column."""


class Sampled(NamedTuple):
    """A record of a sample."""

    value: bytes
    partition: int
    offset: int


class Occurrences(NamedTuple):
    """How many records have something in common, and the first of them."""

    records: int
    first: Sampled


class Best(NamedTuple):
    """The type that takes the values of most records, by a word, and how many records it takes."""

    kind: str
    records: int


class Disagreement(NamedTuple):
    """A new field that no type but text fits in all `total` records. If the `best` type `wins`, the other records are
    rejected, else the field is text; `kinds` are what records have, and `odd` the first that the best does not take."""

    path: Path
    best: Best
    total: int
    kinds: Mapping[str, int]
    odd: Sampled
    odd_kinds: frozenset[str]
    wins: bool = False

    @property
    def others(self) -> int:
        return self.total - self.best.records


class Field:
    """A place in objects: the kinds of its values by record, the fields of its objects, the items of its arrays."""

    def __init__(self) -> None:
        self.kinds: dict[frozenset[str], Occurrences] = {}
        self.fields: dict[str, Field] = {}
        self.items: Field | None = None

    @classmethod
    def of(cls, shapes: Mapping[Shape, Occurrences]) -> "Field":
        """The objects of a sample."""
        root = cls()
        for shape, seen in shapes.items():
            root._add(shape, seen)
        return root

    def _add(self, shape: Shape, seen: Occurrences) -> None:
        if shape.kinds:
            before = self.kinds.get(shape.kinds)
            self.kinds[shape.kinds] = (
                seen if before is None else Occurrences(before.records + seen.records, before.first)
            )
        for name, below in shape.fields:
            self.fields.setdefault(name, Field())._add(below, seen)
        if shape.items is not None:
            self.items = self.items or Field()
            self.items._add(shape.items, seen)

    @property
    def total(self) -> int:
        """The number of records with a value that is not null."""
        return sum(seen.records for seen in self.kinds.values())

    def taken(self, kinds: frozenset[str]) -> int:
        """The number of records with nothing but these kinds."""
        return sum(seen.records for one, seen in self.kinds.items() if one <= kinds)

    def best(self) -> tuple[Best, frozenset[str]]:
        """The type, text apart, that takes most records, and the kinds that it takes."""
        numbers = [("long", LONGS), ("double", DOUBLES)]
        if any(kinds & {WHOLE, FRACTION} for kinds in self.kinds):
            numbers.reverse()
        one = [("boolean", BOOLEAN), ("struct", OBJECT), ("array", ARRAY)]
        candidates = [*numbers, *((name, frozenset((kind,))) for name, kind in one)]
        rated = [(Best(name, self.taken(kinds)), kinds) for name, kinds in candidates]
        return max(rated, key=lambda pair: pair[0].records)  # the first of equals


def disagreements(
    root: Field, known: KnownTypes, event_time: str, type_share: float, records_max: float
) -> list[Disagreement]:
    """The new fields whose values disagree. The best type of a field wins if it takes `type_share` of its records.
    Fields with the fewest other records win first, until the others are more than `records_max` in all. Any time is an
    event time, so the field `event_time` becomes text."""
    disputes: list[Disagreement] = []
    for name, field in root.fields.items():
        disputes += _disagreements(field, (name,), known.get(name), event_time, type_share)
    room, winners = records_max + ROUNDING, set()
    for one in sorted((one for one in disputes if one.wins), key=lambda one: one.others):
        if one.others <= room:
            room -= one.others
            winners.add(one.path)
    return [one._replace(wins=one.path in winners) for one in disputes]


def _disagreements(
    field: Field, path: Path, known: pa.DataType | None, event_time: str, type_share: float
) -> Iterator[Disagreement]:
    best, kinds = field.best()
    others_max = field.total * (1 - type_share) + ROUNDING
    if known is None and best.records < field.total:
        if field.total - field.taken(frozenset((TEXT,))) <= others_max:
            return  # nearly all is text, and text takes the rest
        odd_kinds, odd = next((one, seen.first) for one, seen in field.kinds.items() if not one <= kinds)
        counts: dict[str, int] = {}
        for one, seen in field.kinds.items():
            counts |= {kind: counts.get(kind, 0) + seen.records for kind in sorted(one)}
        wins = field.total - best.records <= others_max and path_text(path) != event_time
        yield Disagreement(path, best, field.total, counts, odd, odd_kinds, wins)
        if not wins:
            return
    if _is(known, best, "struct"):
        for name, below in field.fields.items():
            yield from _disagreements(below, (*path, name), _known_field(known, name), event_time, type_share)
    elif _is(known, best, "array") and field.items is not None:
        item = None if known is None else known.value_type
        yield from _disagreements(field.items, (*path, ITEM), item, event_time, type_share)


def decided(root: Field, known: KnownTypes, winners: Collection[Path], columns: Collection[str] = ()) -> list[pa.Field]:
    """The fields with their types; structs that are known get the new fields behind theirs. `columns` are the names of
    columns that the table has: a new field that cannot stand beside them is left out."""
    names = {*known, *apart(root.fields, columns, in_struct=False)}
    types = [
        (name, _type(field, (name,), known.get(name), winners)) for name, field in root.fields.items() if name in names
    ]
    return [pa.field(name, kind) for name, kind in types if kind is not None]


def _type(field: Field, path: Path, known: pa.DataType | None, winners: Collection[Path]) -> pa.DataType | None:
    """None if only nulls were seen."""
    best, _ = field.best()
    if known is None:
        if not field.total:
            return None
        if best.records < field.total and path not in winners:
            return pa.string()
    if _is(known, best, "struct"):
        if known is None and len(field.fields) > FIELDS_MAX:
            return pa.string()
        names = apart(field.fields, () if known is None else known.names)
        below = [(name, _below(field, path, known, name, winners)) for name in names]
        typed = [(name, one) for name, one in below if one is not None]
        return pa.struct(typed) if typed else pa.string()
    if _is(known, best, "array"):
        item = None if known is None else known.value_type
        kind = item if field.items is None else _type(field.items, (*path, ITEM), item, winners)
        return pa.list_(kind or pa.string())
    return known or {"boolean": pa.bool_(), "long": pa.int64(), "double": pa.float64()}[best.kind]


def _below(
    field: Field, path: Path, known: pa.DataType | None, name: str, winners: Collection[Path]
) -> pa.DataType | None:
    """The type of a field of a struct."""
    there = _known_field(known, name)
    return there if name not in field.fields else _type(field.fields[name], (*path, name), there, winners)


def _is(known: pa.DataType | None, best: Best, word: str) -> bool:
    """Whether a place is a struct, or an array: the column's if there is one."""
    if known is None:
        return best.kind == word
    return bool(pa.types.is_struct(known) if word == "struct" else pa.types.is_list(known))


def _known_field(known: pa.DataType | None, name: str) -> pa.DataType | None:
    return None if known is None or known.get_field_index(name) < 0 else known.field(name).type


def path_text(path: Path) -> str:
    """As sentences name a field: `geo.lat`, `tags[]`."""
    return ".".join(path).replace(f".{ITEM}", ITEM)
