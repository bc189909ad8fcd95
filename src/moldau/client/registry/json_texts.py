"""Decoded values as JSON, which has no NaN: such numbers become texts, as in Protobuf's JSON. Pure."""

import json
import math
from collections.abc import Callable
from typing import Any, Final

NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The texts that stand for numbers."""


def json_text(value: Any, default: Callable[[Any], Any]) -> str:
    """The value as JSON; `default` returns what stands for a value that JSON has no form for. Raises
    `RecursionError`."""
    try:
        return json.dumps(value, ensure_ascii=False, default=default, allow_nan=False)
    except ValueError:  # it has such a number: others are written without a look at each part
        return json.dumps(_named(value), ensure_ascii=False, default=default)


def _named(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _named(one) for name, one in value.items()}
    return [_named(one) for one in value] if isinstance(value, list | tuple) else value
