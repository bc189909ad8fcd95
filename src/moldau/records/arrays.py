"""Arrow arrays of Python values, built from buffers.

pyarrow loads pandas, where that is installed, the first time that it turns a Python value into Arrow (`pa.array`,
`pa.scalar`, `pa.repeat`, the arguments of `pyarrow.compute`): some 0.5 s in the first read of a process. What is on the
way of a read or a send uses these functions instead.
"""

import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

import pyarrow as pa

REPEATED_MAX: Final = 1 << 20
"""The most characters in a column of equal values that is kept."""
_CODES: Final = {pa.int32(): "i", pa.int64(): "q"}


def repeated(value: str | int, kind: pa.DataType, count: int) -> pa.Array:
    """A column of equal values, text or int32 or int64: slices of one that is kept."""
    rows = 1 << count.bit_length()
    most = max(REPEATED_MAX // max(len(str(value)), 1), 1)
    kept = _repeated(value, kind, min(rows, 1 << (most.bit_length() - 1)))
    if count <= len(kept):
        return kept.slice(0, count)
    whole, rest = divmod(count, len(kept))
    return pa.concat_arrays([*[kept] * whole, kept.slice(0, rest)])


@lru_cache(32)
def _repeated(value: str | int, kind: pa.DataType, rows: int) -> pa.Array:
    """`rows` is a power of two."""
    if isinstance(value, int):
        return filled(value, kind, rows)
    column = texts([value])
    while len(column) < rows:
        column = pa.concat_arrays([column, column])
    return column


def filled(value: int, kind: pa.DataType, count: int) -> pa.Array:
    """A column of equal integers, which is not kept."""
    return _of_buffers(kind, count, [None, array.array(_CODES[kind], [value]) * count])


def integers(values: Iterable[int], kind: pa.DataType) -> pa.Array:
    """A column of int32 or int64. Raises `OverflowError` for a value that the type does not hold."""
    numbers = array.array(_CODES[kind], values)
    return _of_buffers(kind, len(numbers), [None, numbers])


def binaries(values: Sequence[bytes | None], kind: pa.DataType = pa.binary()) -> pa.Array:
    """A column of byte strings; `kind` may say that they are text. Raises `OverflowError` for more than 2 GiB, and
    `TypeError` for values that are no bytes."""
    data = b"".join([value or b"" for value in values])
    ends = accumulate((0 if value is None else len(value) for value in values), initial=0)
    nulls = values.count(None)
    validity = _bits([value is not None for value in values]) if nulls else None
    return _of_buffers(kind, len(values), [validity, array.array("i", ends), data], nulls)


def texts(values: Sequence[str | None]) -> pa.Array:
    """A column of text. Raises as `binaries`, and `UnicodeEncodeError` for text that is no Unicode."""
    return binaries([None if value is None else value.encode() for value in values], pa.string())


def pairs(rows: Sequence[Sequence[tuple[str, bytes | str | None]] | None], kind: pa.ListType) -> pa.Array:
    """A column of headers: pairs of a name and a value in each row, of which text is encoded. `kind` is a list of
    structs of text and bytes. Raises as `binaries`."""
    every = [pair for row in rows for pair in row or ()]
    values = [value.encode() if isinstance(value, str) else value for _, value in every]
    columns = [texts([name for name, _ in every]), binaries(values)]
    within = pa.StructArray.from_arrays(columns, fields=list(kind.value_type))
    ends = array.array("i", accumulate((len(row or ()) for row in rows), initial=0))
    nulls = rows.count(None)
    buffers = [_bits([row is not None for row in rows]) if nulls else None, ends]
    return _of_buffers(kind, len(rows), buffers, nulls, [within])


def _bits(flags: Sequence[bool]) -> bytes:
    """A bitmap, least significant bit first."""
    padded = [*flags, *[False] * (-len(flags) % 8)]
    number = int("".join("1" if flag else "0" for flag in reversed(padded)) or "0", 2)
    return number.to_bytes(len(padded) // 8, "little")


def _of_buffers(
    kind: pa.DataType,
    count: int,
    buffers: "Sequence[bytes | array.array[int] | None]",
    nulls: int = 0,
    children: Sequence[pa.Array] | None = None,
) -> pa.Array:
    held = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
    return pa.Array.from_buffers(kind, count, held, nulls, 0, children)
