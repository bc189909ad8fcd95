"""What a JSON number becomes in a column: its exact value, or nothing. Pure.

decimal      the exact value; more digits than the column has are refused
long ...     the exact value: 7, 7.0 and 7e0 are 7; 7.5 is refused
double,      a whole number (only digits) as it is, if the type has it or writes it so (2^60 is 1152921504606847000
float        in JavaScript), else refused: 2^53 + 1. With a fraction or an exponent: the nearest number of the type.
             What is beyond its greatest number, or would become zero, is refused
string       the digits as they came
timestamp    us since 1970; digits beyond microseconds are cut, as in text
NaN, Infinity and -Infinity are not JSON
"""

import decimal
import json
import math
import struct
from typing import Any, Final

DIGITS_MAX: Final = 4_000
"""Python refuses to make whole numbers of more digits (`sys.set_int_max_str_digits`)."""
FLOAT_DIGITS: Final = 9
"""So many digits tell any two numbers of 32 bits apart."""


class Number:
    """A number with a fraction or an exponent, or of very many digits, by its digits as they came."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    @property
    def value(self) -> decimal.Decimal:
        """The exact value. Raises `decimal.InvalidOperation` for an exponent of very many digits."""
        return decimal.Decimal(self.text)


def loads(text: str) -> Any:
    """As `json.loads`, with numbers as int or `Number`. Raises ValueError and RecursionError."""
    try:
        return _ORDINARY.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # a whole number of more digits than Python makes one of, or a constant
        return _ANY.decode(text)


def dumps(value: Any) -> str:
    """What `loads` returned as JSON, with its numbers as they came. Raises RecursionError."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except TypeError:
        return _text(value)


def whole(value: Any, bits: int) -> int:
    """The value as a whole number of that many bits besides the sign. Raises ValueError, TypeError and
    ArithmeticError."""
    if isinstance(value, Number):
        number = value.value
        if (number and number.adjusted() > bits) or number != number.to_integral_value():
            raise ValueError
        value = int(number)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError
    return value


def floating(value: Any, bits: int) -> float:
    """The value as a number of 64 or 32 bits. Raises ValueError, TypeError and ArithmeticError."""
    if isinstance(value, Number):
        made = float(value.text)
    elif isinstance(value, int) and not isinstance(value, bool):
        made = float(value)
    else:
        raise TypeError
    if bits < 64 and math.isfinite(made):
        made = struct.unpack("f", struct.pack("f", made))[0]
    if math.isinf(made) or (not made and isinstance(value, Number) and value.value):
        raise ValueError
    if isinstance(value, int) and value != made and value != _shortest(made, bits):
        raise ValueError
    return made


def exact(value: Any, precision: int, scale: int) -> decimal.Decimal:
    """The value, a number or its text, with that many digits, `scale` of them decimals. Raises ValueError, TypeError
    and ArithmeticError."""
    if isinstance(value, Number):
        number = value.value
    elif isinstance(value, (int, str)) and not isinstance(value, bool):
        number = decimal.Decimal(value)
    else:
        raise TypeError
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


_ORDINARY: Final = json.JSONDecoder(parse_float=Number, parse_constant=_refuse)
_ANY: Final = json.JSONDecoder(parse_float=Number, parse_int=_integer, parse_constant=_refuse)
