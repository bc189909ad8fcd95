"""The defaults of a parsed Avro schema as the values that a record with the field would have.

In a schema a default is JSON: bytes are text, whose code points 0-255 stand for the bytes 0-255, and dates, times and
decimals are what they are stored as (Avro 1.12, "Schema Record"). fastavro gives that JSON to readers, and writes it.
"""

from typing import Any


def set_default_values(tree: Any) -> None:
    """Replace the defaults in this schema, which fastavro has parsed."""
    _Defaults().replace(tree)


class _Defaults:
    """Knows the named types that came up so far, in the schema's order."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def replace(self, node: Any) -> None:
        if isinstance(node, list):
            for one in node:
                self.replace(one)
        if not isinstance(node, dict):
            return
        if "name" in node:
            self._named[node["name"]] = node
        for part in ("items", "values", "type"):
            self.replace(node.get(part))
        for field in node.get("fields", ()):
            self.replace(field["type"])
            if "default" in field:
                field["default"] = self._value(field["type"], field["default"])

    def _value(self, node: Any, default: Any) -> Any:
        if isinstance(node, list):  # the default of a union is of its first type
            return self._value(node[0], default)
        if isinstance(node, str):
            named = self._named.get(node)
            return self._value(named, default) if named is not None else _plain(node, default)
        kind = node["type"]
        if kind in ("record", "error"):
            return {
                field["name"]: self._value(field["type"], default[field["name"]])
                if field["name"] in default
                else field["default"]
                for field in node["fields"]
                if field["name"] in default or "default" in field
            }
        if kind == "array":
            return [self._value(node["items"], one) for one in default]
        if kind == "map":
            return {key: self._value(node["values"], one) for key, one in default.items()}
        return _logical(node, _plain(kind, default) if isinstance(kind, str) else self._value(kind, default))


def _plain(kind: str, default: Any) -> Any:
    # What is beyond the code point 255 is "?", as for Java's library.
    return default.encode("latin-1", "replace") if kind in ("bytes", "fixed") and isinstance(default, str) else default


def _logical(node: Any, stored: Any) -> Any:
    """What fastavro reads where this is stored."""
    from fastavro.read import LOGICAL_READERS

    read = LOGICAL_READERS.get(f"{node['type']}-{node.get('logicalType')}")
    if read is None:
        return stored
    try:
        return read(stored, node, node)
    except (TypeError, ValueError, ArithmeticError):  # nothing of that type, such as a UUID that is none
        return stored
