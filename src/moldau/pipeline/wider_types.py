"""Which types a column may change to without changing a value, and where two types differ so. Pure.

They are those that Iceberg's specification ("Schema Evolution") and Delta's type widening have in common: whole numbers
of more bits, and float to double. Not long to double, which has no exact value for most numbers above 2^53.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

ELEMENT, VALUE = "element", "value"
"""What a path calls the elements of a list and the values of a map, as Spark and Iceberg do."""


class Wider(NamedTuple):
    """A column, or a field by its path (`place.lat`, `tags.element`), with its type and the wider one."""

    path: str
    old: pa.DataType
    new: pa.DataType


def is_wider(new: pa.DataType, old: pa.DataType) -> bool:
    """Whether `new` is another type than `old` that holds all of its values, and a column may change to."""
    for numbers in (pa.types.is_signed_integer, pa.types.is_floating):
        if numbers(new) and numbers(old):
            return bool(new.bit_width > old.bit_width)
    return False


def wider(path: str, old: pa.DataType, new: pa.DataType) -> Iterator[Wider]:
    """The fields of `old` that are wider in `new`, depth first. Fields that one of them lacks are left out."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        for field in old:
            if new.get_field_index(field.name) >= 0:
                yield from wider(f"{path}.{field.name}", field.type, new.field(field.name).type)
    elif is_list(old) and is_list(new):
        yield from wider(f"{path}.{ELEMENT}", old.value_type, new.value_type)
    elif pa.types.is_map(old) and pa.types.is_map(new):
        yield from wider(f"{path}.{VALUE}", old.item_type, new.item_type)
    elif is_wider(new, old):
        yield Wider(path, old, new)


def is_list(kind: pa.DataType) -> bool:
    """Whether the type is a list, whatever its variant."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
