"""The names of types in sentences: those of Delta tables and of Spark (long, double, array<string>). Pure."""

from typing import Final

import pyarrow as pa

from moldau.pipeline.wider_types import is_list

PLAIN: Final = {
    "bool": "boolean", "int8": "byte", "int16": "short", "int32": "int", "int64": "long", "float": "float",
    "double": "double", "string": "string", "large_string": "string", "string_view": "string", "binary": "binary",
    "large_binary": "binary", "binary_view": "binary", "date32[day]": "date",
}  # fmt: skip
"""Arrow's name of a type -> the one that users know."""


def type_name(kind: pa.DataType) -> str:
    """The name of a type, with those of its parts; Arrow's name of one that no table has."""
    types = pa.types
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {type_name(field.type)}' for field in kind)}>"
    if is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if types.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp without a zone"
    return PLAIN.get(str(kind), str(kind))
