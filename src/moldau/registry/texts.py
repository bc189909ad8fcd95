"""Texts of schemas, before anything is known of them."""

import json
import math
from typing import Any

from moldau.client.registry.schemas import TEXT_CHARACTERS_MAX
from moldau.registry.refusals import invalid_schema


def check_length(text: str) -> None:
    """Raises `Refused`."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise invalid_schema(f"it has more than {TEXT_CHARACTERS_MAX} characters")


def json_in(text: str) -> Any:
    """The value of a text. Raises `Refused` if it is too long or nests too deeply, `ValueError` if it is not JSON."""
    check_length(text)
    try:
        return strict_json(text)
    except RecursionError:
        raise invalid_schema("it nests too deeply") from None


def strict_json(data: str | bytes) -> Any:
    """The value of a text that every other registry and client can read again: without what only Python takes for JSON
    (NaN, Infinity), numbers beyond a double, and halves of surrogate pairs. Raises `ValueError`, `RecursionError`."""
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))
    tree = _DECODER.decode(text.removeprefix("\ufeff"))
    if "\\u" in text or not text.isascii():
        json.dumps(tree, ensure_ascii=False).encode()
    return tree


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large for a number")
    return number


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
