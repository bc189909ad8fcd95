"""Changes of what a JSON Schema says about objects: properties, which are required, and what others there may be."""

from typing import Any

from moldau.registry.json_schema.patterns import matches
from moldau.registry.json_schema.shapes import Shapes
from moldau.registry.json_schema.table import Compares, JsonChanges, changed

Tree = dict[str, Any]


def of_objects(comparison: Compares, old: Tree, new: Tree, path: str) -> JsonChanges:
    """The changes between the keywords of objects."""
    found = _required(old, new, f"{path}/required")
    before, after, required = _mapping(old, "properties"), _mapping(new, "properties"), _required_in(new)
    for name in dict.fromkeys([*before, *after]):
        at = f"{path}/properties/{name}"
        if name not in after:
            found += _removed(comparison, before[name], name, new, at)
        elif name not in before:
            found += _added(comparison, name, old, after[name], name in required, at)
        else:
            found += comparison.compare(before[name], after[name], at)
    found += _dependencies(comparison, old, new, f"{path}/dependencies")
    found += more(comparison, "ADDITIONAL_PROPERTIES", old, new, "additionalProperties", path)
    return found + more(comparison, "UNEVALUATED_PROPERTIES", old, new, "unevaluatedProperties", path)


def more(comparison: Compares, prefix: str, old: Tree, new: Tree, word: str, path: str) -> JsonChanges:
    """The change of a keyword about further properties or items, which allows all (absent or true), none (false), or
    those that fit a schema."""
    one, two, at = comparison.old.of(old.get(word, True)), comparison.new.of(new.get(word, True)), f"{path}/{word}"
    if (one.kind == "false") != (two.kind == "false"):
        return changed(f"{prefix}_{'ADDED' if one.kind == 'false' else 'REMOVED'}", at)
    if (one.kind == "empty") != (two.kind == "empty"):
        return changed(f"{prefix}_{'NARROWED' if one.kind == 'empty' else 'EXTENDED'}", at)
    return comparison.compare(one, two, at)


def _required(old: Tree, new: Tree, path: str) -> JsonChanges:
    found: JsonChanges = []
    before, after = _mapping(old, "properties"), _mapping(new, "properties")
    newly = _required_in(new) - _required_in(old)
    for name in before:
        if name in after and name in newly:
            kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if _has_default(after[name]) else "REQUIRED_ATTRIBUTE_ADDED"
            found += changed(kind, f"{path}/{name}")
    return found


def _removed(comparison: Compares, was: Any, name: str, new: Tree, path: str) -> JsonChanges:
    if _is_open(comparison.new, new):
        return []
    covering = _covering(new, name, comparison.new)
    if covering is not None:
        found = comparison.compare(was, covering, path)
        not_covered = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        return found + changed(not_covered if found else "", path)
    is_false = comparison.old.of(was).kind == "false"
    return changed("" if is_false else "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _added(comparison: Compares, name: str, old: Tree, made: Any, is_required: bool, path: str) -> JsonChanges:
    if _is_open(comparison.old, old):
        if comparison.new.of(made).kind == "empty":
            return []
        with_default = "WITH_DEFAULT_" if _has_default(made) else ""
        kind = f"REQUIRED_PROPERTY_{with_default}" if is_required else "OPTIONAL_PROPERTY_"
        return changed(f"{kind}ADDED_TO_OPEN_CONTENT_MODEL", path)
    found: JsonChanges = []
    covering = _covering(old, name, comparison.old)
    if covering is not None:
        found = comparison.compare(covering, made, path)
        found += changed("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL" if found else "", path)
    if is_required and not _has_default(made):
        found = found + changed("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", path)
    return found


def _is_open(shapes: Any, tree: Tree) -> bool:
    """Whether an object may have any further property."""
    words = ("additionalProperties", "unevaluatedProperties")
    return not tree.get("patternProperties") and all(shapes.of(tree.get(word, True)).kind == "empty" for word in words)


def _covering(tree: Tree, name: str, shapes: Shapes) -> Any:
    """The schema for a property that is not among the named ones; None if it may not be there."""
    for pattern, schema in _mapping(tree, "patternProperties").items():
        if matches(pattern, name):
            return schema
    for word in ("additionalProperties", "unevaluatedProperties"):
        shape = shapes.of(tree.get(word, True))
        if shape.kind != "empty":
            return None if shape.kind == "false" else tree[word]
    return None


def _dependencies(comparison: Compares, old: Tree, new: Tree, path: str) -> JsonChanges:
    found: JsonChanges = []
    before, after = _dependent(old), _dependent(new)
    for name in dict.fromkeys([*before, *after]):
        one, two, at = before.get(name), after.get(name), f"{path}/{name}"
        if isinstance(one, list) or (one is None and isinstance(two, list)):
            if not isinstance(two, list):
                found += changed("" if two is None else "DEPENDENCY_ARRAY_CHANGED", at)
            elif one is None:
                found += changed("DEPENDENCY_ARRAY_ADDED", at)
            elif not set(two) <= set(one):
                found += changed(f"DEPENDENCY_ARRAY_{'EXTENDED' if set(one) <= set(two) else 'CHANGED'}", at)
        elif one is None:
            found += changed("DEPENDENCY_SCHEMA_ADDED", at)
        elif isinstance(two, list):
            found += changed("DEPENDENCY_ARRAY_ADDED", at)
        else:
            found += comparison.compare(one, two, at)
    return found


def _dependent(tree: Tree) -> Tree:
    return {
        **_mapping(tree, "dependencies"),
        **_mapping(tree, "dependentRequired"),
        **_mapping(tree, "dependentSchemas"),
    }


def _mapping(tree: Tree, word: str) -> Tree:
    value = tree.get(word)
    return value if isinstance(value, dict) else {}


def _required_in(tree: Tree) -> frozenset[str]:
    names = tree.get("required")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema
