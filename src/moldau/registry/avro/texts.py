"""The one way to write an Avro schema: attributes in the order of Avro's own library, JSON without white space.

Ids belong to texts, so a topic of another registry can be taken over only if both write a schema alike. `normalized` is
for `normalize=true`: full names, sorted attributes and aliases.
"""

from typing import Any

from moldau.registry.avro.nodes import ABSENT, AvroField, AvroNode
from moldau.registry.topic_records import compact


def canonical_text(node: AvroNode, referenced: set[str]) -> str:
    """The schema as it is stored. Types named in `referenced` are written as their names."""
    return compact(_canonical(node, "", set(referenced)))


def _canonical(node: AvroNode, namespace: str, written: set[str]) -> Any:
    if node.kind == "union":
        return [_canonical(part, namespace, written) for part in node.parts]
    if node.kind in ("array", "map"):
        part = "items" if node.kind == "array" else "values"
        return {"type": node.kind, part: _canonical(node.parts[0], namespace, written), **node.props}
    if not node.name:
        return {"type": node.kind, **node.props} if node.props else node.kind
    space, _, short = node.name.rpartition(".")
    if node.name in written:
        return short if space == namespace else node.name
    written.add(node.name)
    tree: dict[str, Any] = {"type": node.kind, "name": short}
    if space != namespace:
        tree["namespace"] = space
    if node.doc is not None:
        tree["doc"] = node.doc
    if node.kind == "enum":
        tree["symbols"] = node.symbols
        if node.default is not ABSENT:
            tree["default"] = node.default
    elif node.kind == "fixed":
        tree["size"] = node.size
    else:
        tree["fields"] = [_canonical_field(one, space, written) for one in node.fields]
    tree |= node.props
    if node.aliases:
        tree["aliases"] = [_relative(one, space) for one in node.aliases]
    return tree


def _canonical_field(field: AvroField, namespace: str, written: set[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": field.name, "type": _canonical(field.type, namespace, written)}
    if field.doc is not None:
        tree["doc"] = field.doc
    if field.default is not ABSENT:
        tree["default"] = field.default
    if field.order != "ascending":
        tree["order"] = field.order
    if field.aliases:
        tree["aliases"] = field.aliases
    return {**tree, **field.props}


def _relative(name: str, namespace: str) -> str:
    space, _, short = name.rpartition(".")
    return short if space == namespace else name


def normalized_text(node: AvroNode, referenced: set[str]) -> str:
    """The schema for `normalize=true`."""
    return compact(_normalized(node, set(referenced)))


def _normalized(node: AvroNode, written: set[str]) -> Any:
    if node.kind == "union":
        return [_normalized(part, written) for part in node.parts]
    props = dict(sorted(node.props.items()))
    logical = {name: props.pop(name) for name in ("logicalType",) if name in props}
    if logical.get("logicalType") == "decimal":
        logical |= {name: props.pop(name) for name in ("precision", "scale") if props.get(name)}
        props.pop("scale", None)
    if node.kind in ("array", "map"):
        part = "items" if node.kind == "array" else "values"
        return {"type": node.kind, part: _normalized(node.parts[0], written), **logical, **props}
    if not node.name:
        return {"type": node.kind, **logical, **props} if node.props else node.kind
    if node.name in written:
        return node.name
    written.add(node.name)
    tree: dict[str, Any] = {"name": node.name, "type": "record" if node.kind == "error" else node.kind}
    if node.kind == "enum":
        tree["symbols"] = node.symbols
    elif node.kind == "fixed":
        tree["size"] = node.size
    else:
        tree["fields"] = [_normalized_field(one, written) for one in node.fields]
    tree |= logical
    if node.doc:
        tree["doc"] = node.doc
    if node.aliases:
        tree["aliases"] = sorted(node.aliases)
    if node.kind == "enum" and node.default is not ABSENT:
        tree["default"] = node.default
    return {**tree, **props}


def _normalized_field(field: AvroField, written: set[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": field.name, "type": _normalized(field.type, written), "order": field.order}
    if field.doc is not None:
        tree["doc"] = field.doc
    if field.aliases:
        tree["aliases"] = sorted(field.aliases)
    if field.default is not ABSENT:
        tree["default"] = field.default
    return {**tree, **dict(sorted(field.props.items()))}
