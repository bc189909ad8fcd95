"""Compares two JSON Schemas, part by part, and finds the changes that the table does not allow."""

from collections.abc import Hashable
from decimal import Decimal
from typing import Any

from moldau.registry.json_schema.arrays import of_arrays
from moldau.registry.json_schema.combinations import combined
from moldau.registry.json_schema.objects import of_objects
from moldau.registry.json_schema.shapes import COMBINED, SchemaShape, Shapes
from moldau.registry.json_schema.table import BOUNDS, JsonChanges, changed
from moldau.registry.refusals import invalid_schema

PAIRS_MAX = 100_000
_OF_KIND = {
    "string": ("maxLength", "minLength"),
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"),
    "object": ("maxProperties", "minProperties"),
    "array": ("maxItems", "minItems", "maxContains", "minContains"),
}

_VALUES = {"const", "enum"}


class JsonComparison:
    """Compares two schemas: `old` is what values were written with, `new` what reads them.

    Every method returns the changes that the table does not allow. A pair of parts that is being compared counts as
    compatible; if it was not, all are compared again, until no more pairs fail.
    """

    def __init__(self, old: Shapes, new: Shapes, left: list[int] | None = None):
        self.old, self.new = old, new
        self._left = [PAIRS_MAX] if left is None else left
        """How many more pairs may be compared, also by comparisons that this one makes."""
        self._done: dict[tuple[int, int], JsonChanges] = {}
        self._failed: dict[tuple[int, int], JsonChanges] = {}

    def all_changes(self, old: Any, new: Any) -> JsonChanges:
        while True:
            before, self._done = len(self._failed), {}
            found = self.compare(old, new, "#")
            if len(self._failed) == before:
                return list(dict.fromkeys(found))

    def compare(self, old: Any, new: Any, path: str) -> JsonChanges:
        """The changes between two parts; None is a part that is not there."""
        if old is None or new is None:
            kind = "" if old is new else "SCHEMA_ADDED" if old is None else "SCHEMA_REMOVED"
            return changed(kind, path)
        one, two = self.old.of(old), self.new.of(new)
        pair = id(one), id(two)
        if pair in self._done:
            return self._done[pair]
        self._left[0] -= 1
        if self._left[0] < 0:
            raise invalid_schema(f"more than {PAIRS_MAX} pairs of its parts are to be compared")
        self._done[pair] = self._failed.get(pair, [])
        found = self._done[pair] = self._compare(one, two, path)
        if found:
            self._failed[pair] = found
        return found

    def _compare(self, old: SchemaShape, new: SchemaShape, path: str) -> JsonChanges:
        if new.kind in COMBINED and old.kind not in COMBINED:
            parts = new.parts if len(new.parts) == 1 or new.kind != "allOf" else []
            if any(not self.compare(old, part, path) for part in parts):
                return []
            # Values that fit each part fit all of them; Confluent's table misses that.
            if new.kind == "allOf" and not any(self.compare(old, part, path) for part in new.parts):
                return []
        if old.kind in COMBINED and new.kind not in COMBINED:
            parts = old.parts if len(old.parts) == 1 or old.kind == "allOf" else []
            if any(not self.compare(part, new, path) for part in parts):
                return []
            # The old value fitted one of the parts, and each of them can be read.
            if old.kind != "allOf" and not any(self.compare(part, new, path) for part in old.parts):
                return []
        if old.kind == "false" or new.kind == "empty":
            return []
        if old.kind in COMBINED and new.kind in COMBINED:
            return combined(self, old, new, path)
        if old.kind != new.kind and not {old.kind, new.kind} <= _VALUES:
            return changed("TYPE_CHANGED", path)
        return self._of_kind(old, new, path)

    def _of_kind(self, old: SchemaShape, new: SchemaShape, path: str) -> JsonChanges:
        found = [one for word in _OF_KIND.get(old.kind, ()) for one in _bound(word, old.tree, new.tree, path)]
        match old.kind:
            case "string":
                found += _pattern(old.tree, new.tree, f"{path}/pattern")
            case "number":
                found += _number(old, new, path)
            case "const" | "enum":
                found += _values(old, new, path)
            case "not":
                # What the new schema forbids must have been forbidden before.
                if JsonComparison(self.new, self.old, self._left).all_changes(new.parts[0], old.parts[0]):
                    found += changed("NOT_TYPE_EXTENDED", path)
            case "object":
                found += of_objects(self, old.tree, new.tree, path)
            case "array":
                found += of_arrays(self, old.tree, new.tree, path)
        return found


def _bound(word: str, old: dict[str, Any], new: dict[str, Any], path: str) -> JsonChanges:
    one, two = _limit(old, word), _limit(new, word)
    prefix = BOUNDS[word].prefix
    if one == two or (one is None and _is_implied(word, two, old)):
        return []
    if one is None or two is None:
        return changed(f"{prefix}_{'ADDED' if one is None else 'REMOVED'}", f"{path}/{word}")
    return changed(f"{prefix}_{'INCREASED' if one < two else 'DECREASED'}", f"{path}/{word}")


def _limit(tree: dict[str, Any], word: str) -> Any:
    """The number of a keyword. In draft 4 `exclusiveMaximum` is a flag of `maximum`."""
    value = tree.get(word)
    if word.startswith("exclusive") and isinstance(value, bool):
        return tree.get(word.removeprefix("exclusive").lower()) if value else None
    if word in ("maximum", "minimum") and tree.get(f"exclusive{word.title()}") is True:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_implied(word: str, limit: Any, old: dict[str, Any]) -> bool:
    """Whether the old schema has the limit by the other keyword of the pair: `minimum` by `exclusiveMinimum`."""
    excludes = word.startswith("exclusive")
    other = word.removeprefix("exclusive").lower() if excludes else f"exclusive{word.title()}"
    had = _limit(old, other) if other in BOUNDS else None
    if had is None:
        return False
    return bool(had == limit and not excludes) or bool(had < limit if BOUNDS[word].grows else had > limit)


def _pattern(old: dict[str, Any], new: dict[str, Any], path: str) -> JsonChanges:
    one, two = old.get("pattern"), new.get("pattern")
    if one == two:
        return []
    return changed("PATTERN_ADDED" if one is None else "PATTERN_REMOVED" if two is None else "PATTERN_CHANGED", path)


def _number(old: SchemaShape, new: SchemaShape, path: str) -> JsonChanges:
    found = []
    if old.is_integer != new.is_integer:
        found += changed("TYPE_EXTENDED" if old.is_integer else "TYPE_NARROWED", path)
    one, two = (Decimal(str(shape.tree.get("multipleOf") or 0)) for shape in (old, new))
    if one == two:
        return found
    if not one or not two:
        kind = "REMOVED" if one else "ADDED"
    elif _divides(one, two):
        kind = "EXPANDED"
    else:
        kind = "REDUCED" if _divides(two, one) else "CHANGED"
    return found + changed(f"MULTIPLE_OF_{kind}", f"{path}/multipleOf")


def _divides(one: Decimal, other: Decimal) -> bool:
    try:
        return other % one == 0
    except ArithmeticError:
        return False


def _values(old: SchemaShape, new: SchemaShape, path: str) -> JsonChanges:
    """`const` is an `enum` of one value."""
    one, two = (
        frozenset(map(_comparable, shape.tree["enum"] if shape.kind == "enum" else [shape.tree["const"]]))
        for shape in (old, new)
    )
    if one == two:
        return []
    return changed(
        f"ENUM_ARRAY_{'EXTENDED' if one <= two else 'NARROWED' if two <= one else 'CHANGED'}", f"{path}/{new.kind}"
    )


def _comparable(value: Any) -> Hashable:
    """Equal for values that are equal in JSON, where 1 and 1.0 are one value, and 1 and true are not."""
    if isinstance(value, list):
        return ("array", *map(_comparable, value))
    if isinstance(value, dict):
        return frozenset((name, _comparable(one)) for name, one in value.items())
    return isinstance(value, bool), value
