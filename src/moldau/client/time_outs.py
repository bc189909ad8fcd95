"""Time-outs of calls: each call that takes one knows `timeout`, in seconds, and `timeout_ms` by name.

A number without a name has the unit of the call's first argument. Calls whose unit is the millisecond refuse a number
with a fraction: whoever writes `poll(1.0)` means a second.
"""

import math
import numbers
import operator
from typing import Any

from moldau.errors import ConfigError

S_MAX = 10.0**9
"""Longer time-outs are as good as none, and what event loops can count."""
SECONDS_MAX_MEANT = 100
"""A time-out with a fraction, up to here, was probably meant as seconds."""


def milliseconds(call: str, value: Any, name: str = "") -> float:
    """A number of milliseconds, in seconds; `call` is the call's name, and `name` the argument's if it must be named.
    Raises `ConfigError`."""
    try:
        ms = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        ms = None
    if ms is not None:
        return _checked(f"{name or 'timeout_ms'}={value}", max(-1000, min(ms, S_MAX * 1000)) / 1000)
    equals = f"{name}=" if name else ""
    if isinstance(value, float) and math.isfinite(value):
        meant = int(value * 1000) if value <= SECONDS_MAX_MEANT else int(value)
        seconds = "" if name else f", or {call}(timeout={meant / 1000:g}) in seconds"
        raise ConfigError(f"{call} takes milliseconds, a whole number: {call}({equals}{meant}){seconds}; not {value}")
    raise ConfigError(f"{call}({equals}{value!r}): a time-out is a whole number of milliseconds")


def time_out_s(
    call: str, timeout_ms: Any = None, timeout: Any = None, *, timeout_s: Any = None, usual_s: float | None = None
) -> float | None:
    """The time-out of a call in seconds, however it was given; `usual_s` if it was not. Raises `ConfigError`."""
    given = {"timeout_ms": timeout_ms, "timeout": timeout, "timeout_s": timeout_s}
    names = [name for name, value in given.items() if value is not None]
    if not names:
        return usual_s
    if len(names) > 1:
        raise ConfigError(f"{call} takes one time-out, not {' and '.join(names)}")
    if timeout_ms is not None:
        return milliseconds(call, timeout_ms)
    value = given[names[0]]
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or value != value:  # NaN
        raise ConfigError(f"{call}({names[0]}={value!r}): a time-out is a number of seconds")
    if value < -1:  # a whole number may be beyond a double
        value = -1
    return _checked(f"{names[0]}={value}", float(value) if value < S_MAX else S_MAX)


def _checked(given: str, seconds: float) -> float:
    if seconds < 0:
        raise ConfigError(f"{given}: a time-out is not negative; 0 does not wait")
    return seconds
