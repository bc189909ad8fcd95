"""Which column of a table a field of the values already has, and the columns of a table beside new fields. Pure.

A column may have another name than its field (`table_names`): `ID_` beside `id` is that of the field `ID`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

KEPT_NAMES: Final = frozenset(
    ("_event_time", "_key", "_partition", "_offset", "_timestamp", "_timestamp_type", "_headers", "_date", "_hour",
     "_topic", "reason")
)  # fmt: skip
"""Names that tables and quarantine keep for themselves."""
MORE: Final = "_more"
"""The column of fields that have no column, as JSON."""
FORBIDDEN: Final = " ,;{}()\n\t=\0"
"""Characters that Delta's column names cannot have, and the one that ends names in C."""


def table_names(names: Iterable[str], given: Mapping[str, str] | None = None) -> list[str]:
    """The names of the columns of a table for these fields; `given` are those of fields that have one. Characters that
    Delta forbids become `_`; a name that the table keeps for itself, or that differs from an earlier one in case only,
    gets as many `_` at its end as it needs."""
    given = given or {}
    made: list[str] = []
    taken = {*KEPT_NAMES, *(name.lower() for name in given.values())}
    for name in names:
        free = given.get(name) or _allowed(name)
        while name not in given and free.lower() in taken:
            free += "_"
        taken.add(free.lower())
        made.append(free)
    return made


def columns_of_fields(names: Iterable[str], known: pa.Schema) -> dict[str, str]:
    """The columns of a table that these fields have already, by the names of the fields: the one of the same name, else
    the first that `table_names` may have made of it."""
    there = {column.name for column in decoded_columns(known)}
    names = list(names)
    columns = {name: name for name in names if name in there}
    free, taken = there - columns.keys(), {name.lower() for name in there} | KEPT_NAMES
    for name in names:
        column = _allowed(name)
        while name not in columns and column not in free and column.lower() in taken:
            column += "_"
        if name not in columns and column in free:
            columns[name] = column
            free.remove(column)
    return columns


def decoded_columns(known: pa.Schema) -> list[pa.Field]:
    """The columns of a table that are fields of values."""
    return [column for column in known if column.name.lower() not in KEPT_NAMES and column.name != MORE]


def evolved(known: pa.Schema, sampled: pa.Schema, columns: Mapping[str, str]) -> pa.Schema:
    """The fields for a table that has columns: those first, then what is new. `sampled` are the fields of a sample,
    `columns` the names of those that have a column. A column of bytes that the sample does not show is left out: JSON
    has no bytes, so it is that of loads which decoded nothing."""
    of_column = {columns[field.name]: field for field in sampled if field.name in columns}
    old = [of_column.get(column.name, column) for column in decoded_columns(known)]
    there = [field for field in old if field.name in columns or not pa.types.is_binary(field.type)]
    return pa.schema([*there, *(field for field in sampled if field.name not in columns)])


def _allowed(name: str) -> str:
    return "".join("_" if sign in FORBIDDEN else sign for sign in name) or "_"
