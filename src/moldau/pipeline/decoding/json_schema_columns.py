"""The columns of objects that a JSON Schema describes. What has no one type becomes text, which holds JSON."""

from typing import Any

import pyarrow as pa

from moldau.errors import ConfigError
from moldau.pipeline.decoding.event_times import TIMESTAMP

DEPTH_MAX = 20


def columns_of(tree: Any) -> pa.Schema:
    """The columns of the schema's `properties`. Raises `ConfigError` if it does not describe an object."""
    kind = _type(tree, tree, 0) if isinstance(tree, dict) else None
    if kind is None or not pa.types.is_struct(kind):
        raise ConfigError("the JSON Schema does not describe an object with properties")
    return pa.schema([kind.field(at) for at in range(kind.num_fields)])


def _type(node: Any, root: dict[str, Any], depth: int) -> pa.DataType:
    if not isinstance(node, dict) or depth > DEPTH_MAX:
        return pa.string()
    if isinstance(node.get("$ref"), str):
        return _type(_local(node["$ref"], root), root, depth + 1)
    for several in ("anyOf", "oneOf"):
        if isinstance(node.get(several), list):
            others = [one for one in node[several] if one != {"type": "null"}]
            return _type(others[0], root, depth + 1) if len(others) == 1 else pa.string()
    kind = node.get("type")
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        kind = "number" if set(map(str, others)) == {"integer", "number"} else others[0] if len(others) == 1 else None
    if kind == "object" and isinstance(node.get("properties"), dict) and node["properties"]:
        return pa.struct([(name, _type(one, root, depth + 1)) for name, one in node["properties"].items()])
    if kind == "object" and isinstance(node.get("additionalProperties"), dict):
        return pa.map_(pa.string(), _type(node["additionalProperties"], root, depth + 1))
    if kind == "array":
        return pa.list_(_type(node.get("items"), root, depth + 1))
    if kind == "string":
        return {"date-time": TIMESTAMP, "date": pa.date32()}.get(str(node.get("format")), pa.string())
    return {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}.get(str(kind), pa.string())


def _local(reference: str, root: dict[str, Any]) -> Any:
    """What `#/definitions/name` names; None for anything else."""
    node: Any = root
    if not reference.startswith("#"):
        return None
    for part in filter(None, reference[1:].split("/")):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node
