"""Changes of what a JSON Schema says about arrays: one schema for all items, or one for each place and the rest."""

from typing import Any

from moldau.registry.json_schema.objects import Tree, more
from moldau.registry.json_schema.table import Compares, JsonChanges, changed


def of_arrays(comparison: Compares, old: Tree, new: Tree, path: str) -> JsonChanges:
    """The changes between the keywords of arrays."""
    before, after = _in_places(old), _in_places(new)
    found: JsonChanges = []
    for number in range(max(len(before), len(after))):
        at = f"{path}/items/{number}"
        if number >= len(after):
            found += _removed(comparison, before[number], new, at)
        elif number >= len(before):
            found += _added(comparison, after[number], old, at)
        else:
            found += comparison.compare(before[number], after[number], at)
    one, two = _rest(old), _rest(new)
    if before or after:
        found += more(comparison, "ADDITIONAL_ITEMS", {"items": one}, {"items": two}, "items", path)
    else:
        found += comparison.compare(one, two, f"{path}/items")
    found += more(comparison, "UNEVALUATED_ITEMS", old, new, "unevaluatedItems", path)
    if new.get("uniqueItems") is True and old.get("uniqueItems") is not True:
        found += changed("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems")
    return found


def _in_places(tree: Tree) -> list[Any]:
    """The schemas of the first items: `prefixItems`, or `items` as a list in older drafts."""
    for word in ("prefixItems", "items"):
        value = tree.get(word)
        if isinstance(value, list):
            return value
    return []


def _rest(tree: Tree) -> Any:
    """The schema of the items behind those."""
    items = tree.get("items", True)
    return tree.get("additionalItems", True) if isinstance(items, list) else items


def _removed(comparison: Compares, was: Any, new: Tree, path: str) -> JsonChanges:
    rest = comparison.new.of(_rest(new))
    if rest.kind == "false":
        is_false = comparison.old.of(was).kind == "false"
        return changed("" if is_false else "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    found = comparison.compare(was, rest, path)
    return found + changed("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL" if found else "", path)


def _added(comparison: Compares, made: Any, old: Tree, path: str) -> JsonChanges:
    rest = comparison.old.of(_rest(old))
    if rest.kind == "false":
        return []
    if rest.kind == "empty":
        is_empty = comparison.new.of(made).kind == "empty"
        return changed("" if is_empty else "ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path)
    found = comparison.compare(rest, made, path)
    return found + changed("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL" if found else "", path)
