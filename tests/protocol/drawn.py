"""Strategies for messages: every field of one version drawn from what the wire can hold, nulls where it can.

A field that kio reads as a time or an error code is drawn from the values that these types can hold; everything else
is drawn from the whole range of its kind.
"""

import uuid
from functools import cache
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from moldau.protocol.schema import Spec
from tests.protocol.kio_reference import KioField, kio_fields, our_fields

YEAR_2200_MS = 7_258_118_400_000
LONG_TEXT = st.integers(125, 135).map(lambda size: ("ab" * size)[:size])
LONG_DATA = st.integers(126, 130).map(lambda size: bytes(range(size)))
"""Around the size from which a length takes two bytes. To draw each letter would take most of these tests' time."""
TEXT = st.text(max_size=6) | LONG_TEXT
DATA = st.binary(max_size=8) | LONG_DATA
INTEGERS = {
    kind: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    for kind, bits in (("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64))
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **INTEGERS,
    "uint16": st.integers(0, 65535),
    "uint32": st.integers(0, 0xFFFFFFFF),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "string": TEXT,
    "bytes": DATA,
    "records": DATA,
    "uuid": st.just(uuid.UUID(int=0)) | st.uuids(),
}
OF_KIO_TYPES: dict[str, st.SearchStrategy[Any]] = {
    "error_code": st.sampled_from([code.value for code in ErrorCode]),
    "timedelta_i64": st.integers(-(10**15), 10**15),
    "datetime_i64": st.integers(0, YEAR_2200_MS) | st.just(-1),
}


@cache
def messages(message: type, kio_class: type, version: int) -> st.SearchStrategy[Any]:
    """Messages of ours that have every field of that version drawn, the others left at their defaults."""
    drawn = {
        name: _values(spec, theirs, version)
        for (name, spec, _), theirs in zip(our_fields(message, version), kio_fields(kio_class), strict=True)
    }
    return st.builds(message, **drawn)


def _values(spec: Spec, theirs: KioField, version: int) -> st.SearchStrategy[Any]:
    if isinstance(spec.kind, type):
        assert theirs.struct is not None
        values = messages(spec.kind, theirs.struct, version)
    elif theirs.kafka_type == "datetime_i64" and not theirs.nullable:
        values = st.integers(0, YEAR_2200_MS)
    else:
        values = OF_KIO_TYPES.get(theirs.kafka_type or "", VALUES[spec.kind])
    if spec.array:
        values = st.lists(values, max_size=3)
    if spec.nullable <= version <= spec.nullable_until:
        values = st.none() | values
    return values
