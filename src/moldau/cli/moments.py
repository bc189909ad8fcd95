"""Durations and times as people write them on a command line."""

import re
from typing import Final

from moldau.client.administration.group_offsets import duration_ms as iso_duration_ms
from moldau.client.administration.group_offsets import time_ms
from moldau.errors import ConfigError
from moldau.runtime import RealClock

_DURATION: Final = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SINCE_1970: Final = re.compile(r"[0-9]{1,15}")


def short_duration_ms(text: str) -> int | None:
    """The ms of a duration such as 30s or 2h; None for another text."""
    parts = _DURATION.fullmatch(text)
    return int(parts[1]) * _UNITS_MS[parts[2]] if parts else None


def moment_ms(text: str, option: str) -> int:
    """The time in ms since 1970 of such a number, of an ISO 8601 time, or of a duration before now (2h, or PT2H as ISO
    8601 has it). `option` is named in the error. Raises `ConfigError`."""
    if _SINCE_1970.fullmatch(text):
        return int(text)
    try:
        ago_ms = iso_duration_ms(text) if text.startswith("P") else short_duration_ms(text)
        return max(0, time_ms(text) if ago_ms is None else RealClock().now_ms() - ago_ms)
    except (ConfigError, OverflowError):
        raise ConfigError(
            f"{option} {text!r} is neither a duration such as 2h nor a time such as 2026-11-21T08:00:00"
        ) from None
