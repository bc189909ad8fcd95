"""An Avro schema made ready for fastavro: its references put in their places, and what hostile bytes could do to it.

fastavro decodes in C: bytes that nest a recursive type some thousand times overflow the stack and end the process, and
an array of items without bytes may claim any length. Bytes for such schemas are walked through first (`check`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from moldau.client.registry.avro_defaults import set_default_values
from moldau.errors import ConfigError, DoesNotFit, SchemaInvalid

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED = frozenset(("record", "error", "enum", "fixed"))
DEPTH_MAX = 200
ITEMS_MAX = 1_000_000


class ParsedSchema(NamedTuple):
    """`tree` is the schema as fastavro parses it. `codec` is the same with its marks: it is not parsed again for
    each value. `full_name` is None for a schema that is not a named type. `plain_bytes` is the schema `bytes`, which
    Confluent's serializers write without a length."""

    tree: Any
    codec: Any
    full_name: str | None
    plain_bytes: bool
    walked: bool


def need_fastavro(what: str) -> None:
    """Raise `ConfigError`, with how to install fastavro, if it is missing; `what` needs it."""
    import importlib.util

    if importlib.util.find_spec("fastavro") is None:
        raise ConfigError(f"{what} needs fastavro: install it with pip install 'moldau[avro]'")


def parse(tree: Any, referenced: dict[str, Any], changed: Callable[[Any], Any] | None = None) -> ParsedSchema:
    """The schema, with the trees that it refers to by full name in it, `changed` before fastavro sees it. Raises
    `SchemaInvalid`."""
    from fastavro import parse_schema

    try:
        whole = _placed(tree, "", referenced, set())
        codec: Any = parse_schema(changed(whole) if changed else whole)
        set_default_values(codec)
    except Exception as error:
        raise SchemaInvalid(f"the Avro schema is wrong: {error or type(error).__name__}") from None
    parsed = [_unmarked(one) for one in codec] if isinstance(codec, list) else _unmarked(codec)
    name = parsed.get("name") if isinstance(parsed, dict) else None
    plain = tree == "bytes" or (isinstance(tree, dict) and tree.get("type") == "bytes" and "logicalType" not in tree)
    return ParsedSchema(parsed, codec, name, plain, _Hazards().found(parsed))


def _unmarked(node: Any) -> Any:
    """The marks hold a recursive type in itself, so that schemas with them cannot be compared."""
    return {key: value for key, value in node.items() if key[:2] != "__"} if isinstance(node, dict) else node


def _placed(node: Any, namespace: str, others: dict[str, Any], seen: set[str]) -> Any:
    """The schema with each name from elsewhere replaced by its definition where it first comes up."""
    if isinstance(node, str):
        full = node if "." in node or not namespace or node in PRIMITIVES else f"{namespace}.{node}"
        name = full if full in others else node
        if name in seen or name not in others:
            return node
        other = others[name]
        if isinstance(other, dict) and "name" in other and "namespace" not in other and "." not in other["name"]:
            other = {**other, "namespace": ""}
        return _placed(other, "", others, seen)
    if isinstance(node, list):
        return [_placed(one, namespace, others, seen) for one in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if kind in NAMED and isinstance(node.get("name"), str):
        own = node["name"]
        namespace = own.rpartition(".")[0] if "." in own else node.get("namespace", namespace) or ""
        seen.add(own if "." in own or not namespace else f"{namespace}.{own}")
    made = dict(node)
    for part in ("items", "values"):
        if part in node:
            made[part] = _placed(node[part], namespace, others, seen)
    if isinstance(node.get("fields"), list):
        made["fields"] = [
            {**field, "type": _placed(field["type"], namespace, others, seen)} if "type" in field else field
            for field in node["fields"]
        ]
    elif isinstance(kind, dict | list) or (isinstance(kind, str) and kind in others):
        made["type"] = _placed(kind, namespace, others, seen)
    return made


class _Hazards:
    """Looks for recursive types and for arrays of items without bytes in a parsed schema."""

    def __init__(self) -> None:
        self._widths: dict[str, int] = {}
        self._open: list[str] = []
        self._dangerous = False

    def found(self, tree: Any) -> bool:
        self._width(tree)
        return self._dangerous

    def _width(self, node: Any) -> int:
        """The fewest bytes that a value takes; 1 stands for more."""
        if isinstance(node, str):
            if node in self._open:
                self._dangerous = True
                return 1
            return self._widths.get(node, int(node != "null"))
        if isinstance(node, list):
            return max([1, *map(self._width, node)])
        kind, name = node["type"], node.get("name")
        if kind == "fixed":
            self._widths[name] = int(node["size"] > 0)
            return self._widths[name]
        if kind == "enum":
            self._widths[name] = 1
            return 1
        if kind in ("record", "error"):
            self._open.append(name)
            self._widths[name] = max([0, *(self._width(field["type"]) for field in node["fields"])])
            self._open.pop()
            return self._widths[name]
        if kind == "array":
            self._dangerous |= not self._width(node["items"])
            return 1
        if kind == "map":
            self._width(node["values"])
            return 1
        return self._width(kind)


class _Walk:
    """Walks through encoded bytes as a schema says, and counts how deep they nest."""

    def __init__(self, data: bytes, at: int):
        self._data = data
        self._at = at
        self._named: dict[str, Any] = {}
        self._items = 0

    def value(self, node: Any, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise DoesNotFit(f"the value nests more than {DEPTH_MAX} levels deep")
        if isinstance(node, list):
            branch = self._long()
            if not 0 <= branch < len(node):
                raise DoesNotFit(f"the value has branch {branch} of a union of {len(node)} types")
            self.value(node[branch], depth)
        elif isinstance(node, str):
            self._plain(node, depth)
        elif node["type"] in ("record", "error"):
            self._named[node["name"]] = node
            for field in node["fields"]:
                self.value(field["type"], depth + 1)
        elif node["type"] == "enum":
            self._named[node["name"]] = "int"
            self._long()
        elif node["type"] == "fixed":
            self._named[node["name"]] = node
            self._skip(node["size"])
        elif node["type"] in ("array", "map"):
            self._blocks(node, depth)
        else:
            self.value(node["type"], depth)

    def _plain(self, name: str, depth: int) -> None:
        if name in ("int", "long"):
            self._long()
        elif name in ("string", "bytes"):
            self._skip(self._long())
        elif name in ("float", "double", "boolean"):
            self._skip({"float": 4, "double": 8, "boolean": 1}[name])
        elif name != "null":
            self.value(self._named[name], depth)

    def _blocks(self, node: Any, depth: int) -> None:
        while count := self._long():
            if count < 0:
                count = -count
                self._long()
            self._items += count
            if self._items > ITEMS_MAX and self._items > len(self._data):
                raise DoesNotFit(f"the value claims {self._items} items in {len(self._data)} bytes")
            for _ in range(count):
                if node["type"] == "map":
                    self._skip(self._long())
                self.value(node["items"] if node["type"] == "array" else node["values"], depth + 1)

    def _skip(self, count: int) -> None:
        self._at += count
        if count < 0 or self._at > len(self._data):
            raise DoesNotFit("the value ends too early")

    def _long(self) -> int:
        value = shift = 0
        while True:
            self._skip(1)
            byte = self._data[self._at - 1]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            if shift > 63:
                raise DoesNotFit("a number has more than 10 bytes")


def check(parsed: ParsedSchema, data: bytes, at: int) -> None:
    """Raise `DoesNotFit` for bytes that would make fastavro recurse or allocate without bound."""
    if parsed.walked:
        try:
            _Walk(data, at).value(parsed.tree, 0)
        except RecursionError:
            raise DoesNotFit("the value nests too deeply") from None
