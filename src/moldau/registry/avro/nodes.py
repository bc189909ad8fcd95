"""An Avro schema as nodes, read from JSON by the rules of the specification (1.12).

fastavro keeps no node for what a schema refers to by name, and accepts defaults that do not fit: a registry needs both.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from moldau.registry.refusals import invalid_schema
from moldau.registry.texts import json_in

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED = ("record", "error", "enum", "fixed")
DEPTH_MAX = 100
ABSENT: Any = object()
"""The default of a field that has none."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_RESERVED = frozenset(
    ("type", "name", "namespace", "doc", "fields", "items", "values", "symbols", "size", "aliases", "default")
)
_FIELD_RESERVED = frozenset(("name", "type", "doc", "default", "order", "aliases"))
_INT, _LONG = 1 << 31, 1 << 63


@dataclass(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    type: "AvroNode"
    doc: str | None
    default: Any
    order: str
    aliases: list[str]
    props: dict[str, Any]


@dataclass(eq=False)
class AvroNode:
    """A type. `kind` is `record`, `union`, a primitive ...; `name` is the full name of a named type; `parts` are the
    branches of a union, the items of an array, or the values of a map; `props` what the specification does not name."""

    kind: str
    name: str = ""
    doc: str | None = None
    aliases: list[str] = field(default_factory=list)
    fields: list[AvroField] = field(default_factory=list)
    parts: "list[AvroNode]" = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default: Any = ABSENT
    size: int = 0
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


def read_avro(text: str, known: dict[str, AvroNode], is_new: bool) -> AvroNode:
    """The schema in a text; `known` are the types of its references, and the new ones are added. A new schema must
    have defaults that fit. Raises `Refused`."""
    try:
        tree = json_in(text)
    except ValueError:
        # A primitive without quotes, which Avro's own parser takes too.
        if text.strip() not in PRIMITIVES:
            raise invalid_schema("it is not JSON") from None
        tree = text.strip()
    return _Reader(known, is_new).node(tree, "", 0)


class _Reader:
    def __init__(self, known: dict[str, AvroNode], is_new: bool):
        self._known = known
        self._is_new = is_new

    def node(self, tree: Any, namespace: str, depth: int) -> AvroNode:
        if depth > DEPTH_MAX:
            raise invalid_schema(f"it nests more than {DEPTH_MAX} levels deep")
        if isinstance(tree, str):
            return self._named(tree, namespace)
        if isinstance(tree, list):
            return self._union(tree, namespace, depth)
        if not isinstance(tree, dict) or "type" not in tree:
            raise invalid_schema(f"{_short(tree)} is not a type")
        kind = tree["type"]
        if not isinstance(kind, str):
            # {"type": {"type": "string", ...}}: the outer properties belong to the inner type.
            inner = self.node(kind, namespace, depth + 1)
            inner.props.update(_props(tree, _RESERVED) if inner.kind != "union" else {})
            return inner
        if kind in PRIMITIVES:
            return AvroNode(kind, props=_props(tree, frozenset(("type",))))
        if kind in NAMED:
            return self._definition(kind, tree, namespace, depth)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            if part not in tree:
                raise invalid_schema(f"the {kind} {_short(tree)} has no {part}")
            inner = self.node(tree[part], namespace, depth + 1)
            return AvroNode(kind, parts=[inner], props=_props(tree, frozenset(("type", part))))
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroNode:
        if name in PRIMITIVES:
            return AvroNode(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._known.get(full) or self._known.get(name)
        if found is None:
            raise invalid_schema(f'"{_short(full)}" is not a defined name')
        return found

    def _union(self, tree: list[Any], namespace: str, depth: int) -> AvroNode:
        parts = [self.node(one, namespace, depth + 1) for one in tree]
        seen = set[str]()
        for part in parts:
            if part.kind == "union":
                raise invalid_schema("a union directly in a union")
            label = part.name or part.kind
            if label in seen:
                raise invalid_schema(f"{label} is twice in a union")
            seen.add(label)
        return AvroNode("union", parts=parts)

    def _definition(self, kind: str, tree: dict[str, Any], namespace: str, depth: int) -> AvroNode:
        name, space = tree.get("name"), tree.get("namespace")
        if not isinstance(name, str) or (space is not None and not isinstance(space, str)):
            raise invalid_schema(f"the {kind} {_short(tree)} has no name")
        if "." not in name and (space if space is not None else namespace):
            name = f"{space if space is not None else namespace}.{name}"
        if not _FULL_NAME.fullmatch(name) or name in PRIMITIVES:
            raise invalid_schema(f"{_short(name)} is not a name")
        if name in self._known:
            raise invalid_schema(f"{name} is defined twice")
        namespace = name.rpartition(".")[0]
        doc = tree.get("doc")
        node = AvroNode(kind, name, doc if isinstance(doc, str) else None, _aliases(tree, namespace))
        self._known[name] = node
        if kind == "enum":
            self._enum(node, tree)
        elif kind == "fixed":
            size = tree.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < _INT:
                raise invalid_schema(f"the size of {name} is not a number")
            node.size = size
        else:
            node.fields = self._fields(name, tree.get("fields"), namespace, depth)
        own = {"enum": ("symbols", "default"), "fixed": ("size",)}.get(kind, ("fields",))
        node.props = _props(tree, frozenset(("type", "name", "namespace", "doc", "aliases", *own)))
        return node

    def _enum(self, node: AvroNode, tree: dict[str, Any]) -> None:
        symbols = tree.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(one, str) and _NAME.fullmatch(one) for one in symbols):
            raise invalid_schema(f"the symbols of {node.name} are not a list of names")
        if len(set(symbols)) != len(symbols):
            raise invalid_schema(f"{node.name} has a symbol twice")
        node.symbols = symbols
        if "default" in tree:
            if tree["default"] not in symbols:
                raise invalid_schema(f"the default of {node.name} is not among its symbols")
            node.default = tree["default"]

    def _fields(self, name: str, trees: Any, namespace: str, depth: int) -> list[AvroField]:
        if not isinstance(trees, list):
            raise invalid_schema(f"the record {name} has no fields")
        found = dict[str, AvroField]()
        for tree in trees:
            if not isinstance(tree, dict) or not isinstance(tree.get("name"), str) or "type" not in tree:
                raise invalid_schema(f"{name} has a field without a name or type: {_short(tree)}")
            own = tree["name"]
            if not _NAME.fullmatch(own):
                raise invalid_schema(f"{_short(own)} is not a name of a field")
            if own in found:
                raise invalid_schema(f"{name} has the field {own} twice")
            node, default, doc = (
                self.node(tree["type"], namespace, depth + 1),
                tree.get("default", ABSENT),
                tree.get("doc"),
            )
            if default is not ABSENT and self._is_new and not fits(node, default):
                raise invalid_schema(f"the default of {name}.{own} does not fit its type: {_short(default)}")
            order = tree.get("order", "ascending")
            if order not in ("ascending", "descending", "ignore"):
                raise invalid_schema(f"the order of {name}.{own} is not ascending, descending or ignore")
            aliases = _names(tree.get("aliases"))
            doc = doc if isinstance(doc, str) else None
            found[own] = AvroField(own, node, doc, default, order, aliases, _props(tree, _FIELD_RESERVED))
        return list(found.values())


def fits(node: AvroNode, value: Any) -> bool:
    """Whether a default fits a type; in a union any branch."""
    match node.kind:
        case "union":
            return any(fits(part, value) for part in node.parts)
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bound = _INT if node.kind == "int" else _LONG
            return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed" | "enum":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list) and all(fits(node.parts[0], one) for one in value)
        case "map":
            return isinstance(value, dict) and all(fits(node.parts[0], one) for one in value.values())
    return isinstance(value, dict) and all(
        fits(one.type, value[one.name]) if one.name in value else one.default is not ABSENT for one in node.fields
    )


def _aliases(tree: dict[str, Any], namespace: str) -> list[str]:
    return [one if "." in one or not namespace else f"{namespace}.{one}" for one in _names(tree.get("aliases"))]


def _names(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise invalid_schema(f"the aliases {_short(value)} are not a list of names")
    return list(dict.fromkeys(value))


def _props(tree: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in known}


def _short(tree: Any) -> str:
    text = tree if isinstance(tree, str) else repr(tree)
    return text if len(text) <= 80 else f"{text[:80]}..."
