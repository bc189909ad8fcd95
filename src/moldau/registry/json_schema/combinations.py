"""Changes of `allOf`, `anyOf` and `oneOf`: parts are matched, each old one with a new one that reads it."""

from moldau.registry.json_schema.shapes import SchemaShape
from moldau.registry.json_schema.table import Compares, JsonChanges, changed


def combined(comparison: Compares, old: SchemaShape, new: SchemaShape, path: str) -> JsonChanges:
    """The changes between two combinations."""
    if not _same_or_wider(old, new):
        return changed("COMBINED_TYPE_CHANGED", path)
    before = list({id(one): one for one in map(comparison.old.of, old.parts)}.values())
    after = list({id(one): one for one in map(comparison.new.of, new.parts)}.values())
    if len(before) < len(after):
        found = changed("PRODUCT_TYPE_EXTENDED" if new.kind == "allOf" else "SUM_TYPE_EXTENDED", path)
    elif len(before) > len(after):
        found = changed("PRODUCT_TYPE_NARROWED" if old.kind == "allOf" else "SUM_TYPE_NARROWED", path)
    else:
        found = []
    fitting = [
        [at for at, two in enumerate(after) if not comparison.compare(one, two, f"{path}/{old.kind}/{number}")]
        for number, one in enumerate(before)
    ]
    if _matched(fitting) < min(len(before), len(after)):
        found = found + changed("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)
    return found


def _same_or_wider(old: SchemaShape, new: SchemaShape) -> bool:
    """Whether the new way of combining allows what the old one did."""
    if old.kind == new.kind or new.kind == "anyOf":
        return True
    if len(old.parts) == 1:
        return len(new.parts) == 1 or new.kind == "oneOf"
    return len(new.parts) == 1 and old.kind == "allOf"


def _matched(fitting: list[list[int]]) -> int:
    """The most pairs that can be made so that nobody is in two (Kuhn's algorithm)."""
    owner: dict[int, int] = {}

    def place(one: int, seen: set[int]) -> bool:
        for at in fitting[one]:
            if at not in seen:
                seen.add(at)
                if at not in owner or place(owner[at], seen):
                    owner[at] = one
                    return True
        return False

    return sum(place(one, set()) for one in range(len(fitting)))
