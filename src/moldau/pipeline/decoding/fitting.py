"""Decoded columns as a table has them: its types stay unless they are to be widened, structs grow.

A type that is wider than the table's (`wider_types.py`) is left as it is: the table widens its column, or refuses. A
number goes into a column of any other numeric type if that holds it exactly; otherwise its record is rejected. A struct
gets the fields that the table's does not have, behind those, and its missing fields are null. Other types that differ
are left as they are, and the table refuses them. Pure.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moldau.pipeline.wider_types import is_wider

INT64_END = float(1 << 63)


def fitted(kind: pa.DataType, known: pa.DataType) -> pa.DataType:
    """The type that values of the type `kind` get in a column of the type `known`."""
    if pa.types.is_struct(kind) and pa.types.is_struct(known):
        fields = [
            (one.name, one.type if kind.get_field_index(one.name) < 0 else fitted(kind.field(one.name).type, one.type))
            for one in known
        ]
        return pa.struct([*fields, *((one.name, one.type) for one in kind if known.get_field_index(one.name) < 0)])
    if pa.types.is_list(kind) and pa.types.is_list(known):
        return pa.list_(fitted(kind.value_type, known.value_type))
    if pa.types.is_map(kind) and pa.types.is_map(known) and kind.key_type == known.key_type:
        return pa.map_(kind.key_type, fitted(kind.item_type, known.item_type))
    return known if _is_number(kind) and _is_number(known) and not is_wider(kind, known) else kind


def fit(column: Any, kind: pa.DataType) -> tuple[Any, Any]:
    """The column as the type that `fitted` gave, and a mask of the rows that cannot be, None if all can."""
    if column.type == kind:
        return column, None
    if pa.types.is_struct(kind):
        return _struct(column, kind)
    if pa.types.is_list(kind):
        return _list(column, kind)
    if pa.types.is_map(kind):
        return _map(column, kind)
    return _number(column, kind)


def _struct(column: Any, kind: pa.DataType) -> tuple[Any, Any]:
    made, unfit = [], None
    for field in kind:
        if column.type.get_field_index(field.name) < 0:
            made.append(pa.nulls(len(column), field.type))
            continue
        child, mask = fit(pc.struct_field(column, field.name), field.type)
        made.append(child)
        if mask is not None:
            unfit = mask if unfit is None else pc.or_(unfit, mask)
    return pa.StructArray.from_arrays(made, fields=list(kind), mask=column.is_null()), unfit


def _list(column: Any, kind: pa.DataType) -> tuple[Any, Any]:
    items, mask = fit(column.flatten(), kind.value_type)
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    made = pa.ListArray.from_arrays(offsets, items, type=kind, mask=column.is_null())
    if mask is None:
        return made, None
    rows = pc.list_parent_indices(column).filter(mask).cast(pa.int64())
    return made, pc.is_in(pa.array(range(len(column)), pa.int64()), rows)


def _map(column: Any, kind: pa.DataType) -> tuple[Any, Any]:
    whole = column.take(pa.array(range(len(column)), pa.int64()))  # a slice has the keys and items of the whole array
    entries = pa.StructArray.from_arrays([whole.keys, whole.items], ["key", "value"])
    lists = pa.ListArray.from_arrays(whole.offsets, entries, mask=whole.is_null())
    made, unfit = _list(lists, pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    keys, items = made.values.flatten()
    return pa.MapArray.from_arrays(made.offsets, keys, items, type=kind, mask=whole.is_null()), unfit


def _number(column: Any, kind: pa.DataType) -> tuple[Any, Any]:
    made = column.cast(kind, safe=False)
    same = pc.equal(made.cast(column.type, safe=False), column)
    if pa.types.is_floating(column.type):
        if pa.types.is_floating(kind):
            same = pc.or_(same, pc.is_nan(column))
        else:
            same = pc.and_(same, pc.and_(pc.greater_equal(column, -INT64_END), pc.less(column, INT64_END)))
    elif pa.types.is_floating(kind):
        same = pc.and_(
            same, pc.less(made, INT64_END)
        )  # which has no way back: processors differ in what they make of it
    unfit = pc.invert(pc.fill_null(same, True))
    return made, unfit if unfit.true_count else None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
