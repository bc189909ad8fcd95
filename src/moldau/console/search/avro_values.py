"""Values of JSON as an Avro schema wants them: what the console shows of an Avro value, the other way round. Pure.

Bytes are base64; dates and times ISO 8601; decimals a number or its text; NaN and infinite numbers texts. A union takes
its first type that fits. A member that the schema does not have is an error, and so is a missing one without a default.
"""

import base64
import binascii
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from moldau.client.registry.json_texts import NOT_FINITE
from moldau.errors import DoesNotFit

DEPTH_MAX, STEPS_MAX = 200, 1_000_000
"""Unions in unions may be tried in more ways than there is time for."""
INT32, INT64 = 1 << 31, 1 << 63
_TIMES: Final[dict[str, Callable[[str], Any]]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
}
_MOMENTS: Final = ("timestamp-", "local-timestamp-")


class JsonToAvro:
    """Makes values for one schema; `tree` is fastavro's, whose names are full. Raises `DoesNotFit`."""

    def __init__(self, tree: Any):
        self._tree = tree
        self._named: dict[str, Any] = {}
        self._steps = 0
        self._collect(tree)

    def of(self, value: Any) -> Any:
        """The value as fastavro writes it."""
        self._steps = 0
        return self._made(self._tree, value, "the value", 0)

    def _collect(self, node: Any) -> None:
        if isinstance(node, list):
            for one in node:
                self._collect(one)
        elif isinstance(node, dict):
            if "name" in node:
                self._named[node["name"]] = node
            for part in ("items", "values"):
                self._collect(node.get(part))
            for field in node.get("fields", ()):
                self._collect(field["type"])
            if isinstance(node.get("type"), dict | list):
                self._collect(node["type"])

    def _made(self, node: Any, value: Any, at: str, depth: int) -> Any:
        self._steps += 1
        if depth > DEPTH_MAX or self._steps > STEPS_MAX:
            raise DoesNotFit(f"the value nests more than {DEPTH_MAX} levels deep, or has too many parts")
        if isinstance(node, list):
            return self._of_union(node, value, at, depth)
        if isinstance(node, str):
            known = self._named.get(node)
            return _plain(node, value, at) if known is None else self._made(known, value, at, depth)
        kind = node["type"]
        if kind in ("record", "error"):
            return self._record(node, value, at, depth)
        if kind == "array":
            items = _expected(list, "a list", value, at)
            return [self._made(node["items"], one, f"{at}[{n}]", depth + 1) for n, one in enumerate(items)]
        if kind == "map":
            members = _expected(dict, "an object", value, at)
            return {name: self._made(node["values"], one, f"{at}.{name}", depth + 1) for name, one in members.items()}
        if kind == "enum":
            if value not in node["symbols"]:
                raise DoesNotFit(f"{at} is one of {', '.join(node['symbols'][:20])}, not {str(value)[:40]!r}")
            return value
        if "logicalType" in node:
            return _logical(node, value, at)
        if kind == "fixed":
            data = _plain("bytes", value, at)
            if len(data) != node["size"]:
                raise DoesNotFit(f"{at} has {node['size']} bytes, as base64, and not {len(data)}")
            return data
        return self._made(kind, value, at, depth)

    def _of_union(self, node: list[Any], value: Any, at: str, depth: int) -> Any:
        # Any text might be bytes in base64: a type that is text comes first.
        late = ("bytes", "float", "double") if _is_not_finite(value) else ("bytes",)
        branches = sorted(node, key=lambda branch: isinstance(branch, str) and branch in late)
        reasons = []
        for branch in branches:
            try:
                return self._made(branch, value, at, depth + 1)
            except DoesNotFit as refused:
                reasons.append((branch == "null", str(refused)))
        raise DoesNotFit(min(reasons)[1] if reasons else f"{at} has a type of no values")

    def _record(self, node: Any, value: Any, at: str, depth: int) -> dict[str, Any]:
        members = _expected(dict, "an object", value, at)
        fields = {field["name"]: field for field in node["fields"]}
        for name in members:
            if name not in fields:
                raise DoesNotFit(f"{at} has {name[:60]!r}, which {node['name']} does not have")
        made = {}
        for name, field in fields.items():
            if name in members:
                made[name] = self._made(field["type"], members[name], f"{at}.{name}", depth + 1)
            elif "default" not in field:  # fastavro fills in the others
                raise DoesNotFit(f"{at} lacks {name!r}, which has no default in {node['name']}")
        return made


def _expected(kind: type[Any], name: str, value: Any, at: str) -> Any:
    if not isinstance(value, kind):
        raise DoesNotFit(f"{at} is {name}, not {type(value).__name__} {str(value)[:40]!r}")
    return value


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, str) and value in NOT_FINITE


def _plain(name: str, value: Any, at: str) -> Any:
    """A value of a primitive type."""
    if name == "null":
        return _expected(type(None), "null", value, at)
    if name == "boolean":
        return _expected(bool, "true or false", value, at)
    if name == "string":
        return _expected(str, "text", value, at)
    if name == "bytes":
        try:
            return base64.b64decode(_expected(str, "bytes as base64", value, at), validate=True)
        except (binascii.Error, ValueError):
            raise DoesNotFit(f"{at} is bytes as base64, not {value[:40]!r}") from None
    if name in ("float", "double") and _is_not_finite(value):
        return NOT_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DoesNotFit(f"{at} is a number, not {type(value).__name__} {str(value)[:40]!r}")
    if name in ("float", "double"):
        try:
            return float(value)
        except OverflowError:
            raise DoesNotFit(f"{at} is too large for {name}") from None
    bound = INT32 if name == "int" else INT64
    if not isinstance(value, int) or not -bound <= value < bound:
        raise DoesNotFit(f"{at} is a whole number of type {name}, not {str(value)[:40]}")
    return value


def _logical(node: Any, value: Any, at: str) -> Any:
    kind = node["logicalType"]
    try:
        if kind == "decimal":
            if isinstance(value, str | int) and not isinstance(value, bool):
                return Decimal(value)
            return Decimal(str(_expected(float, "a decimal number", value, at)))
        if isinstance(value, str) and kind in _TIMES:
            return _TIMES[kind](value)
        if isinstance(value, str) and kind.startswith(_MOMENTS):
            return datetime.fromisoformat(value)
    except (ValueError, InvalidOperation):
        raise DoesNotFit(f"{at} is not of the type {kind}: {str(value)[:40]!r}") from None
    return _plain("string" if kind == "uuid" else str(node["type"]), value, at)
