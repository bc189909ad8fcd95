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
from moldau.pipeline.decoding.rejections import (
    NOT_UNICODE,
    TOO_DEEP,
    WRONG_NUMBER,
    WRONG_TEXT,
    WRONG_TYPE,
    Rejection,
    described,
)
from moldau.pipeline.type_names import type_name

Coerce = Callable[[Any, str, dict[str, Any] | None], Any]
"""From a value, its path and where unknown fields go (None: nowhere) to what `pyarrow.array` takes."""


class NotCoercible(ValueError):
    """A value that its column does not take."""

    def __init__(self, rejection: Rejection):
        super().__init__(rejection.reason)
        self.rejection = rejection


def coercion(kind: pa.DataType, field: str = "") -> Coerce:
    """The function for a type; it raises `NotCoercible`. `field` is the path of the values, with `[]` for any item."""
    if pa.types.is_struct(kind):
        return _struct(kind, field)
    if pa.types.is_list(kind):
        return _list(kind, field)
    if pa.types.is_map(kind):
        return _map(kind, field)
    wanted, accepts, convert = _plain(kind)

    def plain(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        try:
            return convert(value)
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            if isinstance(error, UnicodeEncodeError):
                reason = f"field {path} is {described(value)}, which is not Unicode"
                raise NotCoercible(Rejection(NOT_UNICODE, reason, field)) from None
            if isinstance(error, RecursionError):
                raise NotCoercible(Rejection(TOO_DEEP, f"field {path} nests too deeply", field)) from None
            rule = WRONG_TYPE
            if isinstance(value, accepts) and not isinstance(value, bool):
                rule = WRONG_TEXT if isinstance(value, str) else WRONG_NUMBER
            raise _not(rule, value, wanted, path, field) from None

    return plain


def _not(rule: str, value: Any, wanted: str, path: str, field: str) -> NotCoercible:
    return NotCoercible(Rejection(rule, f"field {path} is {described(value)}, not {wanted}", field))


NUMBERS = (int, Number)


def _plain(kind: pa.DataType) -> tuple[str, tuple[type, ...], Callable[[Any], Any]]:
    """What values of a type are called, the types of JSON that some of them have, and what converts them."""
    types = pa.types
    if types.is_boolean(kind):
        return "true or false", (), lambda value: _only(bool, value)
    if types.is_integer(kind):
        bits = kind.bit_width - 1
        return f"a whole number of {bits + 1} bits", NUMBERS, lambda value: whole(value, bits)
    if types.is_floating(kind):
        return f"a number that {type_name(kind)} has", NUMBERS, lambda value: floating(value, kind.bit_width)
    if types.is_string(kind):
        return "text", (), lambda value: _text(value if isinstance(value, str) else dumps(value))
    if types.is_timestamp(kind):
        return (
            "a time", (str, *NUMBERS),
            lambda value: _required(us_of(value.value if isinstance(value, Number) else value)),
        )  # fmt: skip
    if types.is_date(kind):
        return "a date", (str,), lambda value: datetime.date.fromisoformat(_only(str, value))
    if types.is_decimal(kind):
        return (
            f"a number of {kind.precision} digits, {kind.scale} of them decimals", (str, *NUMBERS),
            lambda value: exact(value, kind.precision, kind.scale),
        )  # fmt: skip
    if types.is_binary(kind):
        return "bytes in base64", (str,), lambda value: _bytes(_only(str, value))
    raise TypeError(f"JSON has no {kind}")


def _struct(kind: pa.DataType, field: str) -> Coerce:
    fields = {one.name: coercion(one.type, f"{field}.{one.name}" if field else one.name) for one in kind}

    def struct(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _not(WRONG_TYPE, value, "an object", path, field)
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


def _list(kind: pa.DataType, field: str) -> Coerce:
    coerce = coercion(kind.value_type, f"{field}[]")

    def items(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _not(WRONG_TYPE, value, "an array", path, field)
        made = []
        for at, one in enumerate(value):
            below: dict[str, Any] | None = None if rest is None else {}
            made.append(coerce(one, f"{path}[{at}]", below))
            if below and rest is not None:
                rest[str(at)] = below
        return made

    return items


def _map(kind: pa.DataType, field: str) -> Coerce:
    coerce = coercion(kind.item_type, f"{field}[]")

    def entries(value: Any, path: str, rest: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _not(WRONG_TYPE, value, "an object", path, field)
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
