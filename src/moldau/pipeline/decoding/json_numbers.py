"""What a JSON number becomes in a column: its exact value, or nothing. Pure.

    DECIMAL      the exact value; more digits than the column has are refused
    BIGINT ...   the exact value: 7, 7.0 and 7e0 are 7; 7.5 is refused
    DOUBLE,      a whole number (only digits) as it is, if the type has it or writes it so (2^60 is 1152921504606847000
    FLOAT        in JavaScript), else refused: 2^53 + 1. With a fraction or an exponent: the nearest number of the type.
                 What is beyond its greatest number, or would become zero, is refused
    STRING       the digits as they came
    TIMESTAMP    us since 1970; digits beyond microseconds are cut, as in text
    NaN, Infinity and -Infinity are not JSON
"""

import decimal
import json
import math
import struct
from typing import Any, Final, Self

DIGITS_MAX: Final = 4_000
"""Python refuses to make whole numbers of more digits (`sys.set_int_max_str_digits`)."""
FLOAT_DIGITS: Final = 9
"""So many digits tell any two numbers of 32 bits apart."""


class Number(decimal.Decimal):
    """A number with a fraction or an exponent, or of very many digits: its value, and its digits as they came."""

    text: str

    def __new__(cls, text: str) -> Self:
        try:
            made = super().__new__(cls, text)
        except decimal.InvalidOperation:
            raise ValueError(f"{text[:40]} has too large an exponent") from None
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


def loads(text: str | bytes) -> Any:
    """As `json.loads`, with numbers as int or `Number`. Raises ValueError and RecursionError."""
    return json.loads(text, parse_float=Number, parse_int=_integer, parse_constant=_refuse)


def dumps(value: Any) -> str:
    """What `loads` returned as JSON, with its numbers as they came. Raises RecursionError."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except TypeError:
        return _text(value)


def whole(value: Any, bits: int) -> int:
    """The value as a whole number of that many bits besides the sign. Raises ValueError and TypeError."""
    if isinstance(value, Number):
        if value and value.adjusted() > bits:
            raise ValueError
        if value != value.to_integral_value():
            raise ValueError
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError
    return value


def floating(value: Any, bits: int) -> float:
    """The value as a number of 64 or 32 bits. Raises ValueError, TypeError and ArithmeticError."""
    if not isinstance(value, int | Number) or isinstance(value, bool):
        raise TypeError
    text = value.text if isinstance(value, Number) else str(value)
    made = float(text)
    if bits < 64 and math.isfinite(made):
        made = struct.unpack("f", struct.pack("f", made))[0]
    if math.isinf(made) or (not made and value):
        raise ValueError
    if text.lstrip("-").isdecimal() and decimal.Decimal(text) not in (decimal.Decimal(made), _shortest(made, bits)):
        raise ValueError
    return made


def exact(value: Any, precision: int, scale: int) -> decimal.Decimal:
    """The value, a number or its text, with that many digits, `scale` of them decimals. Raises ValueError, TypeError
    and ArithmeticError."""
    if not isinstance(value, int | Number | str) or isinstance(value, bool):
        raise TypeError
    number = value if isinstance(value, Number) else decimal.Decimal(value)
    if not number.is_finite():
        raise ValueError
    made = number.quantize(decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=76))
    if made != number or len(made.as_tuple().digits) > precision:
        raise ValueError
    return made


def _shortest(made: float, bits: int) -> decimal.Decimal:
    """The number with the fewest digits that is read as this one."""
    if bits == 64:
        return decimal.Decimal(repr(made))
    for digits in range(1, FLOAT_DIGITS):
        text = f"{made:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", made):
            return decimal.Decimal(text)
    return decimal.Decimal(f"{made:.{FLOAT_DIGITS}g}")


def _integer(text: str) -> int | Number:
    return int(text) if len(text) < DIGITS_MAX else Number(text)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")


def _text(value: Any) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(name, ensure_ascii=False)}:{_text(one)}' for name, one in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)
