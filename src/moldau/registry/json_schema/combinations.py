"""Changes of `allOf`, `anyOf` and `oneOf`: parts are matched, each old one with a new one that reads it.

Combinations of hundreds of parts are usual, of which a new version changes a few. So parts that are written alike are
tried first, then those at the same place, and all others only for parts that are left over.
"""

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from moldau.registry.json_schema.shapes import SchemaShape
from moldau.registry.json_schema.table import Compares, JsonChanges, changed


def combined(comparison: Compares, old: SchemaShape, new: SchemaShape, path: str) -> JsonChanges:
    """The changes between two combinations."""
    if not _same_or_wider(old, new):
        return changed("COMBINED_TYPE_CHANGED", path)
    before = list({id(comparison.old.of(part)): part for part in old.parts}.values())
    after = list({id(comparison.new.of(part)): part for part in new.parts}.values())
    if len(before) < len(after):
        found = changed("PRODUCT_TYPE_EXTENDED" if new.kind == "allOf" else "SUM_TYPE_EXTENDED", path)
    elif len(before) > len(after):
        found = changed("PRODUCT_TYPE_NARROWED" if old.kind == "allOf" else "SUM_TYPE_NARROWED", path)
    else:
        found = []

    def fits(one: int, at: int) -> bool:
        return not comparison.compare(before[one], after[at], f"{path}/{old.kind}/{one}")

    if _matched(_guesses(before, after), len(before), len(after), fits) < min(len(before), len(after)):
        found = found + changed("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)
    return found


def _same_or_wider(old: SchemaShape, new: SchemaShape) -> bool:
    """Whether the new way of combining allows what the old one did."""
    if old.kind == new.kind or new.kind == "anyOf":
        return True
    if len(old.parts) == 1:
        return len(new.parts) == 1 or new.kind == "oneOf"
    return len(new.parts) == 1 and old.kind == "allOf"


def _guesses(before: list[Any], after: list[Any]) -> dict[int, int]:
    """The new part that an old one has probably become: the one that is written alike, else the next that is left."""
    texts = {_text(part): at for at, part in enumerate(after)}
    alike = {one: texts[_text(part)] for one, part in enumerate(before) if _text(part) in texts}
    taken = set(alike.values())
    left = (at for at in range(len(after)) if at not in taken)
    return {**alike, **dict(zip((one for one in range(len(before)) if one not in alike), left, strict=False))}


def _text(part: Any) -> object:
    """Equal for parts that are written alike. A `$ref` may lead elsewhere in the other schema, so this is a guess."""
    if isinstance(part, SchemaShape):
        return part.kind, part.is_integer
    return json.dumps(part, sort_keys=True)


def _matched(guesses: dict[int, int], before: int, after: int, fits: Callable[[int, int], bool]) -> int:
    """The most pairs of fitting parts that can be made so that none is in two."""
    owner: dict[int, int] = {}
    for one, at in guesses.items():
        if at not in owner and fits(one, at):
            owner[at] = one
    placed = set(owner.values())
    for one in range(before):
        if len(owner) == min(before, after):
            break
        if one not in placed:
            _place(one, owner, after, fits)
    return len(owner)


def _place(one: int, owner: dict[int, int], after: int, fits: Callable[[int, int], bool]) -> None:
    """Make a pair with this old part, if others can move to new parts that are free (an augmenting path)."""
    place = {old: at for at, old in owner.items()}
    reached: dict[int, int] = {}
    waiting = deque([one])
    while waiting:
        old = waiting.popleft()
        for at in range(after):
            if at in reached or not fits(old, at):
                continue
            reached[at] = old
            if at in owner:
                waiting.append(owner[at])
                continue
            free: int | None = at
            while free is not None:
                mover = reached[free]
                owner[free] = mover
                free = place.get(mover)
            return
