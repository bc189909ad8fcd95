"""Columns of a Delta table with wider types: what its schema becomes, and what a load says that meets one. Pure.

Delta's own type widening is a table feature that shuts out readers without it, and `deltalake` does not write it. So
`moldau pipeline widen` rewrites the files (`loading/widening.py`), and readers see an ordinary table.
"""

import copy
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow

from moldau.pipeline.tables.columns import DATE, HOUR, RECORD, TableError
from moldau.pipeline.tables.storage import Location
from moldau.pipeline.type_names import type_name
from moldau.pipeline.wider_types import ELEMENT, VALUE, wider

WIDENED: Final = "moldauWidened"
"""The key under which a commit names the columns that it has widened, in the table's history."""
IN_SCHEMA: Final = {
    "byte": "byte", "tinyint": "byte", "short": "short", "smallint": "short", "int": "integer", "integer": "integer",
    "long": "long", "bigint": "long", "float": "float", "real": "float", "double": "double",
}  # fmt: skip
"""What the command takes, Delta's names and those of SQL -> as the schema of a table has it."""
FAMILIES: Final = (("byte", "short", "integer", "long"), ("float", "double"))
Place = tuple[dict[str, Any], str]
"""Part of a schema, and the key under which it has a type."""


def refuse_wider(where: Location, there: pyarrow.Schema, wanted: Iterable[pyarrow.Field]) -> None:
    """Raise TableError if a column of `wanted` is wider than the table's; the sentence names the command."""
    names = there.names
    widened = [
        one for field in wanted if field.name in names
        for one in wider(field.name, there.field(field.name).type, field.type)
    ]  # fmt: skip
    if widened:
        changes = " ".join(shlex.quote(f"{one.path}={type_name(one.new)}") for one in widened)
        first, more = widened[0], f" and {len(widened) - 1} more" if len(widened) > 1 else ""
        raise TableError(
            f"Column {first.path}{more} of {where.uri} has type {type_name(first.old)}, and the schema of its "
            f"values now says {type_name(first.new)}: widen the table once with 'moldau pipeline widen "
            f"{shlex.quote(where.uri)} {changes}', then load again."
        )


def widened_schema(schema: Mapping[str, Any], changes: Mapping[str, str]) -> dict[str, Any]:
    """The schema of a table, as its log has it, with these types by path. A column that has the type already stays as
    it is. Raises TableError with a sentence."""
    made = copy.deepcopy(dict(schema))
    there: dict[str, list[Place]] = {}
    for path, place in _places(made, ""):
        there.setdefault(path, []).append(place)
    kept = {*RECORD.names, DATE.name, HOUR.name}
    for path, wanted in changes.items():
        new = IN_SCHEMA.get(wanted.lower())
        if new is None:
            raise TableError(f"{path}={wanted}: the type is none of {', '.join(IN_SCHEMA)}.")
        if path not in there or path in kept:
            known = ", ".join(sorted(name for name in there if name not in kept)[:20])
            raise TableError(f"{path}={wanted}: the table has no such column of numbers; it has {known or 'none'}.")
        if len(there[path]) > 1:
            raise TableError(f"{path}={wanted}: two columns of the table have this path.")
        [(part, key)] = there[path]
        family = next(one for one in FAMILIES if part[key] in one)
        if new not in family or family.index(new) < family.index(part[key]):
            raise TableError(
                f"{path}={wanted}: its type is {_shown(part[key])}, which becomes wider in {_wider_than(part[key])}."
            )
        part[key] = new
    return made


def _wider_than(kind: str) -> str:
    family = next(one for one in FAMILIES if kind in one)
    return " or ".join(map(_shown, family[family.index(kind) + 1 :])) or "no other type"


def _shown(kind: str) -> str:
    """A type of the schema, as sentences name it."""
    return "int" if kind == "integer" else kind


def _places(kind: Any, path: str) -> Iterator[tuple[str, Place]]:
    """Where a type has numbers, by path."""
    parts: list[tuple[str, dict[str, Any], str]] = []
    if isinstance(kind, dict) and kind.get("type") == "struct":
        parts = [(field["name"], field, "type") for field in kind["fields"]]
    elif isinstance(kind, dict) and kind.get("type") == "array":
        parts = [(ELEMENT, kind, "elementType")]
    elif isinstance(kind, dict) and kind.get("type") == "map":
        parts = [(VALUE, kind, "valueType")]
    for name, part, key in parts:
        below = f"{path}.{name}" if path else name
        if any(part[key] in family for family in FAMILIES if isinstance(part[key], str)):
            yield below, (part, key)
        yield from _places(part[key], below)
