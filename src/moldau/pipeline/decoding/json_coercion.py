"""One JSON value as an Arrow type wants it: the way of records that cannot be decoded in bulk.

Text takes any value, as JSON if it is not a string. `json_numbers` has the rules of numbers; nothing becomes null in
silence.
"""

import base64
import binascii
import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from moldau.pipeline.decoding.event_times import us_of
from moldau.pipeline.decoding.json_numbers import Number, dumps, exact, floating, whole
from moldau.pipeline.decoding.topic_decoder import short

Coerce = Callable[[Any, str, dict[str, Any] | None], Any]
"""From a value, its path and where unknown fields go (None: nowhere) to what `pyarrow.array` takes."""


class NotCoercible(ValueError):
    """A sentence that names the field."""


def coercion(kind: pa.DataType) -> Coerce:
    """The function for a type; it raises `NotCoercible`."""
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_list(kind):
        return _list(kind)
    if pa.types.is_map(kind):
        return _map(kind)
    name, convert = _plain(kind)

    def plain(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except (ValueError, TypeError, ArithmeticError, RecursionError):
            raise NotCoercible(f"field {path} is {short(value)}, not {name}") from None

    return plain


def _plain(kind: pa.DataType) -> tuple[str, Callable[[Any], Any]]:
    types = pa.types
    if types.is_boolean(kind):
        return "true or false", lambda value: _only(bool, value)
    if types.is_integer(kind):
        bits = kind.bit_width - 1
        return f"a whole number of {bits + 1} bits", lambda value: whole(value, bits)
    if types.is_floating(kind):
        return f"a number that {kind} has", lambda value: floating(value, kind.bit_width)
    if types.is_string(kind):
        return "text", lambda value: value.encode().decode() if isinstance(value, str) else _text(dumps(value))
    if types.is_timestamp(kind):
        return "a time", lambda value: _required(us_of(value.value if isinstance(value, Number) else value))
    if types.is_date(kind):
        return "a date", lambda value: datetime.date.fromisoformat(_only(str, value))
    if types.is_decimal(kind):
        return f"a number of {kind.precision} digits, {kind.scale} of them decimals", lambda value: exact(
            value, kind.precision, kind.scale
        )
    if types.is_binary(kind):
        return "bytes in base64", lambda value: _bytes(_only(str, value))
    raise TypeError(f"JSON has no {kind}")


def _struct(kind: pa.DataType) -> Coerce:
    fields = {kind.field(at).name: coercion(kind.field(at).type) for at in range(kind.num_fields)}

    def struct(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise NotCoercible(f"field {path} is {short(value)}, not an object")
        made = {}
        for name, coerce in fields.items():
            one = value.get(name)
            if one is not None:
                below: dict[str, Any] | None = None if rest is None else {}
                made[name] = coerce(one, f"{path}.{name}" if path else name, below)
                if below and rest is not None:
                    rest[name] = below
        if rest is not None and not value.keys() <= fields.keys():
            rest |= {name: one for name, one in value.items() if name not in fields and one is not None}
        return made

    return struct


def _list(kind: pa.DataType) -> Coerce:
    coerce = coercion(kind.value_type)

    def items(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise NotCoercible(f"field {path} is {short(value)}, not an array")
        made = []
        for at, one in enumerate(value):
            below: dict[str, Any] | None = None if rest is None else {}
            made.append(coerce(one, f"{path}[{at}]", below))
            if below and rest is not None:
                rest[str(at)] = below
        return made

    return items


def _map(kind: pa.DataType) -> Coerce:
    coerce = coercion(kind.item_type)

    def entries(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise NotCoercible(f"field {path} is {short(value)}, not an object")
        return [(_text(name), coerce(one, f"{path}.{name}", None)) for name, one in value.items()]

    return entries


def _only(kinds: Any, value: Any) -> Any:
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise TypeError
    return value


def _text(value: str) -> str:
    return value.encode().decode()


def _required(value: int | None) -> int:
    if value is None:
        raise ValueError
    return value


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError from None
